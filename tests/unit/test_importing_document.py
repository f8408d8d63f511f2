# SPDX-License-Identifier: Apache-2.0
"""Documents that are none, and what no document may do."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halod.cli import halo
from halod.policy.importing import fetch
from halod.policy.importing.document import read
from halod.policy.importing.model import ImportRefused
from halod.policy.importing.strictjson import parse as parse_json
from halod.policy.load import parse
from tests.support.registry import (
    DIGEST,
    HTTP,
    MCPB,
    NUGET,
    PYPI,
    envelope,
    fed,
    loaded,
    npm,
    oci,
    server,
    why_not,
)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"server": 5}, "a server that is not an object"),
        ({"servers": 5}, "servers that are no list"),
        ({"servers": []}, "lists no server"),
        ({"servers": [5]}, "lists no server"),
        ({"servers": [{}, {}]}, "lists 2 servers"),
        (server(npm(), name="acme"), "a name that is none"),
        (server(npm(), name="a/b/c"), "a name that is none"),
        (server(npm(), name=5), "no name and version"),
        (server(npm(), version=""), "a version that is none"),
        (server(npm(), version=5), "a version that is no text"),
        (server(npm(), version="${VERSION}"), "a version that is none"),
        (server(npm(), version="x" * 300), "a version that is no text"),
        (server(packages="CANARY"), "packages that are no list"),
        (server(packages=[npm()] * 101), "packages that are no list"),
        ({"server": server(npm()), "_meta": 5}, "a _meta that is not an object"),
        (envelope(server(npm()), status=5), "a status that is unknown, nothing"),
        (envelope(server(npm()), status={}), "a status that is unknown, nothing"),
        (envelope(server(npm()), status=["active"]), "a status that is unknown, nothing"),
        (
            {"server": server(npm()), "_meta": {"io.modelcontextprotocol.registry/official": 5}},
            "registry's _meta",
        ),
    ],
)
def test_documents_that_are_none(document, said):
    """Each with what is wrong, and nothing quoted but names."""
    error = why_not(loaded, document)
    assert said in error.message
    assert "CANARY" not in error.message


def test_a_shape_of_tomorrow_is_read_with_a_note():
    """So is a $schema of somebody else."""
    assert "2027-01-01" in loaded(server(npm(), schema="2027-01-01")).notes[0]
    assert "not one of server.json" in loaded(server(npm(), **{"$schema": "https://x.example"})).notes[0]


def test_a_redirect_that_cannot_be_read():
    """What urllib refuses is refused in our words."""
    assert "cannot be read" in why_not(fetch._next, "https://acme.example/", "http://[::1").message


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def documents(draw):
    """A document of a valid shape with some values replaced by anything."""
    texts = st.sampled_from(
        ["1.0.0", "1.0", "${x}", "a@b", "ghcr.io/a/b:1", f"a/b@sha256:{DIGEST}", "\ud800", "\x1b[2J"]
    )
    item = draw(st.sampled_from([npm(), oci(), PYPI, NUGET, MCPB]))
    item = {**item, "runtimeArguments": [{"type": "named", "name": "-e", "value": "x"}]}
    for key in draw(
        st.lists(st.sampled_from([*item, "registryBaseUrl", "environmentVariables"]), max_size=2)
    ):
        item[key] = draw(texts | json_values)
    endpoint = {
        **HTTP,
        **draw(st.dictionaries(st.sampled_from(["url", "type", "headers"]), texts | json_values, max_size=1)),
    }
    document = server(item, remotes=[endpoint])
    for key in draw(st.lists(st.sampled_from([*document]), max_size=1)):
        document[key] = draw(texts | json_values)
    status = draw(st.sampled_from(["active", "deprecated", None]))
    return draw(
        st.sampled_from([document, envelope(document, status), {"servers": [envelope(document, status)]}])
    )


@given(documents(), st.sampled_from([[], ["--remote"], ["--package", "oci", "--sha256", DIGEST]]))
@settings(max_examples=150, deadline=None)
def test_no_document_gives_a_traceback(document, words):
    """Whatever it holds: an entry that is valid, or one error; never control characters."""
    with fed(json.dumps(document).encode()) as (out, err):
        code = halo.main(["mcp", "registry", "import", *words, "--allow-deprecated", "-"])
    said = out.getvalue() + err.getvalue()
    assert code in {0, 2}, said
    assert "\x1b" not in said
    assert "Traceback" not in said
    if code == 0:
        text = f"mcp:\n  servers:\n{out.getvalue()}"
        assert len(parse(text.encode(), "halos.yaml").entries) == 1
    else:
        assert out.getvalue() == ""


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=150, deadline=None)
def test_no_bytes_give_anything_but_a_refusal(data):
    """Whatever they are, `read` refuses them in its own words."""
    with pytest.raises(ImportRefused):
        read(data)


@given(json_values)
@settings(max_examples=100)
def test_what_is_accepted_is_what_json_says(value):
    """Strictness refuses; it changes nothing (numbers are not looked at)."""
    assert parse_json(json.dumps(value).encode()) == json.loads(json.dumps(value), parse_int=float)
