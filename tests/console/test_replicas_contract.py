# SPDX-License-Identifier: Apache-2.0
"""The contract of reports and of enrolment once more: every request to the next of two consoles, over HTTP and a proxy.

The consoles run in this process, since the tests stop the clock; each has its own connections to the one PostgreSQL.
Left out are tests that make a console of their own, which are about one, the many cases of what a body may not be, and
bodies without a length, which this proxy does not pass on.
"""

import asyncio
import concurrent.futures
import contextlib
import inspect
import threading

import httpx
import msgspec
import pytest
import uvicorn

from halod.console import app, server
from halod.console.store.engine import Store
from tests.console import test_ingest_enroll, test_ingest_report
from tests.console.support_ingest import Clock, make_console
from tests.support.proxy import Proxy

pytestmark = pytest.mark.xdist_group("replicas")
_MODULES = (test_ingest_report, test_ingest_enroll)
token, key = test_ingest_report.token, test_ingest_enroll.key
for _module in _MODULES:
    for _name, _test in inspect.getmembers(_module, inspect.isfunction):
        _one = _name.startswith("test_") and "client" in inspect.signature(_test).parameters
        if _one and not hasattr(_test, "pytestmark") and _test is not test_ingest_report.test_size:
            globals()[_name] = _test


class Running:
    """A console that serves in a thread."""

    def __init__(self, console, bound):
        config = uvicorn.Config(
            app.build(console, jobs=False), http=server.Bounded, ws="none", lifespan="on", log_config=None,
            access_log=False, server_header=False, proxy_headers=False, timeout_graceful_shutdown=10,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, args=(bound,))
        self._thread.start()

    def _run(self, bound):
        asyncio.run(self._server.serve([bound]))

    def stop(self):
        self._server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()


class Client(httpx.Client):
    """Asks over the proxy. `together`: all of them at the same time."""

    def together(self, requests):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return [
                one.result()
                for one in [
                    pool.submit(self.request, method, path, **more) for method, path, more in requests
                ]
            ]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(postgres_url):
    opened = Store.open(postgres_url)
    yield opened
    opened.close()


@pytest.fixture
def client(store, postgres_url, clock):
    with contextlib.ExitStack() as stack:
        sockets = [server.bind("127.0.0.1:0") for _ in range(2)]
        proxy = stack.enter_context(Proxy([one.getsockname() for one in sockets]))
        for one in sockets:
            stack.callback(one.close)
            own = Store.open(postgres_url)
            stack.callback(own.close)
            console = make_console(own, clock, public_url=proxy.url, proxies=("127.0.0.1",))
            listen = f"127.0.0.1:{one.getsockname()[1]}"
            console = msgspec.structs.replace(
                console, settings=msgspec.structs.replace(console.settings, listen=listen)
            )
            stack.callback(Running(console, one).stop)
        yield stack.enter_context(Client(base_url=proxy.url, timeout=60))
        assert not proxy.failed
        served = [proxy.served[one.getsockname()] for one in sockets]
        assert max(served) - min(served) <= 1, "each has its share"
