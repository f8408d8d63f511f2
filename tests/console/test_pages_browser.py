# SPDX-License-Identifier: Apache-2.0
"""Pages in a real browser before a real server.

Accessibility, keyboard, both themes, narrow screens, the policy of what a page may load, the box that computes hashes,
and everything without JavaScript.
"""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from halod.console.access import Role
from halod.console.store.engine import Store
from halod.definition import stdio_sha256, url_sha256
from tests.console import support_pages as support

pytestmark = pytest.mark.xdist_group("console-browser")

PAGES = (
    *(
        "/",
        "/findings",
        "/findings?kind=denied&order=last-seen",
        "/findings?server=nothing-like-it",
        "/devices",
    ),
    *(
        "/devices?state=silent",
        "/coverage",
        "/registry",
        "/registry/wiki",
        "/activity",
        "/enrolments",
        "/webhooks",
    ),
    *("/tokens", "/audit", "/account", "/nowhere", "/devices/known-1"),
)
ADMIN_ONLY = {"/tokens", "/audit"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """The address of a database that nobody opens."""
    return support.filled(tmp_path_factory.mktemp("fleet") / "console.db")


@pytest.fixture(scope="module")
def site(fleet, tmp_path_factory):
    directory = tmp_path_factory.mktemp("pages")
    with support.serving(support.copied(fleet, directory), directory) as made:
        yield made


@pytest.fixture(scope="module")
def hostile_site(fleet, tmp_path_factory):
    directory = tmp_path_factory.mktemp("hostile")
    url = support.copied(fleet, directory)
    store = Store.open(url)
    support.poison(store)
    store.close()
    with support.serving(url, directory) as made:
        yield made


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=support.CHROMIUM, args=list(support.FLAGS))
        yield started
        started.close()


def all_pages(window):
    """Go to every page, that of one finding and of one device among them."""
    for path in PAGES:
        window.go(path, 404 if path == "/nowhere" else 200)
        yield path
    window.go("/findings?server=odd-tool").get_by_role("link", name="odd-tool", exact=True).click()
    window.page.wait_for_url("**/findings/*")
    yield "/findings/…"


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


# --- every page ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", support.ROLES)
def test_every_page_as_every_role(browser, site, role):
    """No error, no violation of the policy, no request elsewhere: `browsing` asserts these when it closes."""
    with support.browsing(browser, site, role) as window:
        for path in PAGES:
            refused = path in ADMIN_ONLY and role < Role.ADMIN
            page = window.go(path, 404 if path == "/nowhere" else 403 if refused else 200)
            expect(page.get_by_role("heading", level=1)).to_have_count(1)
            expect(page.locator("main")).to_have_count(1)
            assert page.title().endswith(" · halo")
            ids = page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
            assert len(ids) == len(set(ids)), path


@pytest.mark.parametrize(
    ("theme", "width"),
    [("light", 1280), ("dark", 1280), ("light", 360)],
    ids=str,
)
def test_no_page_has_a_serious_fault_of_accessibility(browser, site, theme, width):
    axe, unlike = (
        Axe(),
        {"exclude": [["tbody tr:nth-child(n+7)"]]},
    )  # rows of a list are alike, and axe takes its time
    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
    with support.browsing(browser, site, width=width, color_scheme=theme, reduced_motion="reduce") as window:
        for path in all_pages(window):
            if "?" in path:
                continue
            if width == 360:
                assert overflow(window.page) <= 0, path
                if window.page.locator("details.narrow").count():
                    window.page.locator("details.narrow > summary").click()
            found = axe.run(window.page, context=unlike, options=options).response["violations"]
            bad = [
                (one["id"], one["nodes"][0]["html"][:120])
                for one in found
                if one["impact"] in ("serious", "critical")
            ]
            assert bad == [], path
            assert [one["id"] for one in found] == [], path


def test_no_page_is_wider_than_the_smallest_screen(browser, site):
    with support.browsing(browser, site, width=320) as window:
        for path in all_pages(window):
            assert overflow(window.page) <= 0, path


def test_a_chosen_theme_outranks_that_of_the_system(browser, site):
    def ground():
        return window.page.evaluate("getComputedStyle(document.body).backgroundColor")

    with support.browsing(browser, site, color_scheme="light") as window:
        page = window.go("/account")
        light = ground()
        page.get_by_label("Dark").check()
        page.get_by_role("button", name="Keep").click()
        expect(page.get_by_role("status")).to_contain_text("kept in this browser")
        dark = ground()
        assert dark != light
        window.go("/findings")
        assert ground() == dark
        window.go("/account")
        page.get_by_label("As the system").check()
        page.get_by_role("button", name="Keep").click()
        assert ground() == light


def test_colours_that_the_system_forces_leave_badges_their_border(browser, site):
    with support.browsing(browser, site, forced_colors="active") as window:
        page = window.go("/findings")
        width = page.locator(".badge").first.evaluate("(one) => getComputedStyle(one).borderTopWidth")
        assert width == "1px"


# --- keyboard ------------------------------------------------------------------------------------------------


def focused(page):
    return page.evaluate("document.activeElement.textContent.trim().replace(/\\s+/g, ' ').slice(0, 40)")


def test_the_first_key_offers_to_skip_to_the_content(browser, site):
    with support.browsing(browser, site) as window:
        page = window.go("/findings")
        page.keyboard.press("Tab")
        assert focused(page) == "Skip to content"
        assert page.locator(".skip").bounding_box()["y"] >= 0
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "f-kind"


def test_the_order_of_the_keyboard_is_that_of_the_page_and_focus_is_seen(browser, site):
    with support.browsing(browser, site) as window:
        page = window.go("/findings")
        order = []
        for _ in range(24):
            page.keyboard.press("Tab")
            order.append(focused(page) or page.evaluate("document.activeElement.id"))
            style = page.evaluate(
                "(() => { const s = getComputedStyle(document.activeElement);"
                " return [s.outlineStyle, parseFloat(s.outlineWidth)]; })()"
            )
            assert style[0] != "none"
            assert style[1] >= 2
        places = [
            "Overview",
            "Findings",
            "Devices",
            "Coverage gaps",
            "Registry",
            "Activity",
            "Enrolments",
            "Webhooks",
        ]
        assert order[1] == "halo console"
        assert order[2:10] == places
        controls = page.evaluate(
            "[...document.querySelectorAll('main select, main input, main button')].length"
        )
        assert order[13 : 13 + controls][-1] == "Apply"


def test_filters_work_by_keyboard(browser, site):
    with support.browsing(browser, site) as window:
        page = window.go("/findings")
        page.locator("#f-kind").focus()
        page.keyboard.type("Den")
        page.locator("#f-server").focus()
        page.keyboard.type("post")
        page.keyboard.press("Enter")
        page.wait_for_url("**kind=denied**")
        assert "server=post" in page.url
        expect(page.get_by_role("list", name="Filters in use").get_by_role("listitem")).to_have_count(3)
        page.get_by_role("link", name="Kind: Denied").focus()
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "kind" not in url)


def test_the_menu_of_a_narrow_screen_opens_by_keyboard(browser, site):
    with support.browsing(browser, site, width=360) as window:
        page = window.go("/")
        for _ in range(3):
            page.keyboard.press("Tab")
        assert focused(page) == "Menu"
        expect(page.get_by_role("link", name="Findings", exact=True)).to_have_count(0)
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Findings", exact=True).focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/findings")


# --- the box -------------------------------------------------------------------------------------------------

WORDS = support.STDIO
SAME_STDIO = (
    "npx -y '@acme/odd tool' --level 0.50 wörk",
    'npx -y "@acme/odd tool" --level 0.50 wörk\n',
    "npx -y @acme/odd\\ tool --level 0.50 wörk",
    '{"command": "npx", "args": ["-y", "@acme/odd tool", "--level", 0.50, "w\\u00f6rk"]}',
    '{"mcpServers": {"x": {"command": "npx", /* why */ "args": ["-y", "@acme/odd tool", "--level", "0.50", "wörk",],},}}',
    '"x": {"type": "local", "command": ["npx", "-y", "@acme/odd tool", "--level", "0.50", "wörk"]}',
    '["npx", "-y", "@acme/odd tool", "--level", "0.50", "wörk"]',
)
OTHER_STDIO = (
    "npx -y '@acme/odd tool' --level 0.5 wörk",
    "npx -y @acme/odd tool --level 0.50 wörk",
    '{"command": "npx", "args": ["-y", "@acme/odd tool", "--level", 0.5, "wörk"]}',
)
HASHED = (
    ("npx -y @playwright/mcp@latest", stdio_sha256("npx", ("-y", "@playwright/mcp@latest"))),
    ('{"command": "a", "args": [1e3, -0, true, null, "", 12345678901234567890]}',
     stdio_sha256("a", ("1e3", "-0", "true", "null", "", "12345678901234567890"))),
    ('{"command": "\\ud800x", "args": ["\\ud83d\\ude00"]}', stdio_sha256("\ud800x", ("\U0001f600",))),
    ('{"command": "run it now"}', stdio_sha256("run it now", ())),
    ("'' \"a'b\" 'c\"d' e\\\nf", stdio_sha256("", ("a'b", 'c"d', "ef"))),
    ("https://Mcp.Example/Ä?q=1#f", url_sha256("https://Mcp.Example/Ä?q=1#f")),
    ("  https://mcp.example/mcp  \n", url_sha256("https://mcp.example/mcp")),
    ('{"serverUrl": "https://mcp.example/ x"}', url_sha256("https://mcp.example/ x")),
    ('{"x": {"url": "http://a", "url": "http://b"}}', url_sha256("http://b")),
    ("${HOME}/bin/server --stdio", stdio_sha256("${HOME}/bin/server", ("--stdio",))),
)  # fmt: skip
UNREADABLE = (
    ("", "Paste something first."),
    ('{"command": "a", "args": [}', "Expected a value"),
    ("npx 'open", "A quote does not end."),
    ('{"args": ["x"]}', "There is no command and no address in it."),
    ('{"command": "a", "args": [{}]}', "An argument is neither text nor a number."),
    ('{"command": "a\\u0000b"}', "A NUL stands in it."),
    ("[" * 500, "It is nested too deeply."),
)


@pytest.fixture(scope="module")
def box(browser, site):
    """The page of a finding with a known definition, open in a browser."""
    with support.browsing(browser, site) as window:
        window.go("/findings?server=odd-tool").get_by_role("link", name="odd-tool", exact=True).click()
        window.page.wait_for_url("**/findings/*")
        window.requests.clear()
        yield window
        assert window.requests == []


def compared(box, text):
    box.page.get_by_role("button", name="Clear").click()
    box.page.get_by_label("Candidate").fill(text)
    box.page.get_by_role("button", name="Compare").click()
    expect(box.page.locator("#outcome .notice")).to_be_visible()
    return box.page.locator("#outcome").inner_text()


@pytest.mark.parametrize("text", SAME_STDIO)
def test_the_box_knows_this_definition_however_it_is_written(box, text):
    assert "Yes: it is this one." in compared(box, text)


@pytest.mark.parametrize("text", OTHER_STDIO)
def test_the_box_knows_another_definition(box, text):
    assert "No: it is another definition." in compared(box, text)


@pytest.mark.parametrize(("text", "sha256"), HASHED)
def test_the_box_computes_the_hash_that_halod_reports(box, text, sha256):
    assert sha256 in compared(box, text)


@pytest.mark.parametrize(("text", "said"), UNREADABLE)
def test_the_box_says_what_it_cannot_read(box, text, said):
    assert said in compared(box, text)


def test_the_box_knows_an_address(browser, site):
    with support.browsing(browser, site) as window:
        window.go("/findings?server=odd-url").get_by_role("link", name="odd-url", exact=True).click()
        window.page.wait_for_url("**/findings/*")
        assert "Yes: it is this one." in compared(window, support.URL)
        assert "Yes: it is this one." in compared(window, json.dumps({"url": support.URL}))
        assert "No: it is another" in compared(window, support.URL + "x")


def test_the_box_works_by_keyboard_and_its_page_can_send_nothing(browser, site):
    with support.browsing(browser, site) as window:
        window.go("/findings?server=odd-tool").get_by_role("link", name="odd-tool", exact=True).click()
        window.page.wait_for_url("**/findings/*")
        window.requests.clear()
        window.page.get_by_label("Candidate").focus()
        window.page.keyboard.type("npx -y '@acme/odd tool' --level 0.50 wörk")
        window.page.keyboard.press("Control+Enter")
        expect(window.page.get_by_role("status")).to_contain_text("Yes: it is this one.")
        assert window.requests == []
        blocked = window.page.evaluate("fetch('/healthz').then(() => 'sent', () => 'blocked')")
        assert blocked == "blocked"
        sent = (
            "document.body.insertAdjacentHTML('beforeend', '<form id=f action=/account></form>'); f.submit()"
        )
        window.page.evaluate(sent)
        assert "/findings/" in window.page.url
        violations = [one for one in window.wrong if "Content Security Policy" in one or "CSP" in one]
        assert len(violations) == len(window.wrong) > 0
        window.wrong.clear()


# --- without JavaScript --------------------------------------------------------------------------------------


def test_everything_but_the_box_works_without_javascript(browser, site):
    with support.browsing(browser, site, scripts=False) as window:
        page = window.go("/")
        page.get_by_role("link", name="Partly unread").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Devices")
        page.locator("#f-ring").select_option("ring3-ga")
        page.get_by_role("button", name="Apply").click()
        assert "state=partly" in page.url
        assert "ring=ring3-ga" in page.url
        page.locator("tbody tr").first.get_by_role("link").first.click()
        expect(page.get_by_role("heading", name="What was looked at")).to_be_visible()
        window.go("/findings")
        page.get_by_role("link", name="Next page").click()
        page.get_by_role("link", name="First page").click()
        page.locator("tbody tr").first.get_by_role("link").first.click()
        expect(page.get_by_text("This box needs JavaScript")).to_be_visible()
        expect(page.get_by_label("Candidate")).to_be_hidden()


def test_an_operator_decides_without_javascript(browser, site, tmp_path):
    with support.browsing(browser, site, Role.OPERATOR, scripts=False) as window:
        page = window.go("/enrolments")
        page.get_by_role("button", name="Accept").click()
        expect(page.get_by_role("status")).to_contain_text("Accepted")
        expect(page.get_by_role("heading", name="Nobody waits")).to_be_visible()


def test_signing_out_ends_in_the_page_for_signing_in(browser, site):
    settings = support.settings_for(str(site.store.engine.url))
    own = support.sign_in(site.store, settings, Role.VIEWER)
    with support.browsing(browser, site, None, scripts=False) as window:
        window.page.context.add_cookies([{"name": "halo", "value": own, "url": site.base}])
        page = window.go("/account")
        page.get_by_role("button", name="Sign out here").click()
        expect(page.get_by_role("status")).to_contain_text("You have signed out")
        window.go("/findings?kind=denied")
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        assert "next=" in page.url


# --- hostile text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [320, 760, 1220])
def test_hostile_text_is_inert_and_keeps_its_place(browser, hostile_site, width):
    with support.browsing(browser, hostile_site, width=width) as window:
        for path in (*PAGES, f"/devices/{support.HOSTILE_DEVICE}"):
            page = window.go(path, 404 if path == "/nowhere" else 200)
            assert overflow(page) <= 0, path
            assert page.evaluate("window.hit") is None
            assert page.evaluate("document.querySelectorAll('img[onerror], main script').length") == 0
        page.locator("details.long > summary").first.click()
        assert overflow(page) <= 0
        found = window.go(f"/devices/{support.HOSTILE_DEVICE}").locator("th a[href^='/findings/']").first
        found.click()
        window.page.wait_for_url("**/findings/*")
        assert overflow(window.page) <= 0
        assert window.page.evaluate("window.hit") is None
