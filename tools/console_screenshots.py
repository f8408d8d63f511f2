# SPDX-License-Identifier: Apache-2.0
"""Makes docs/images/console-*.png: every page of the console with the demonstration fleet, in a real browser.

    python tools/console_screenshots.py [NAME...]

The fleet and its clock are the same at every run, so a picture changes when the pages do. Pictures are written with at
most 256 colours, which needs nothing but the standard library and keeps each below 150 KB.
"""

import struct
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from halod.console.access import Role  # noqa: E402
from tests.console import support_pages as support  # noqa: E402

IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 150 * 1024
WIDE, NARROW = (1280, 860), (360, 740)
PLAIN = {
    "overview": "/",
    "findings": "/findings",
    "devices": "/devices",
    "coverage": "/coverage",
    "registry": "/registry",
    "entry": "/registry/wiki",
    "activity": "/activity",
    "enrolments": "/enrolments",
    "webhooks": "/webhooks",
    "tokens": "/tokens",
    "audit": "/audit",
    "account": "/account",
}
PASTED = '{"mcpServers": {"playwright": {"command": "npx", "args": ["-y", "@playwright/mcp@latest"]}}}'


def main(wanted: list[str]) -> int:
    """Make the pictures, or those named; give 0, or 1 if one is too large."""
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        url = support.filled(Path(directory) / "console.db", known=False)
        browser = playwright.chromium.launch(executable_path=support.CHROMIUM, args=list(support.FLAGS))
        with support.serving(url, directory, name="platform team") as site:
            shots = Shots(browser, site, wanted)
            for name, path in PLAIN.items():
                shots.take(name, path)
            for name in ("overview", "findings"):
                shots.take(f"{name}-dark", PLAIN[name], theme="dark")
                shots.take(f"{name}-narrow", PLAIN[name], size=NARROW)
            shots.take(
                "finding",
                "/findings?kind=version-drift&server=playwright",
                then=_ask_the_box,
                size=(1280, 1000),
            )
            shots.take("device", "/devices?state=partly&ring=ring3-ga", then=_first, size=(1280, 1000))
            shots.take("login", "/login", role=None, size=(1280, 620))
            shots.take("error", "/findings/999999", size=(1280, 620))
        empty = f"sqlite:///{Path(directory) / 'empty.db'}"
        _migrated(empty)
        with support.serving(empty, directory, name="platform team") as site:
            Shots(browser, site, wanted).take("first", "/")
        browser.close()
    return shots.failed


class Shots:
    """Takes pictures of one site."""

    def __init__(self, browser: object, site: support.Site, wanted: list[str]) -> None:
        self._browser, self._site, self._wanted = browser, site, wanted
        self.failed = 0

    def take(self, name, path, *, size=WIDE, theme="light", role=Role.ADMIN, then=None) -> None:  # noqa: ANN001
        """Take one picture."""
        if self._wanted and name not in self._wanted:
            return
        options = {"width": size[0], "height": size[1], "color_scheme": theme, "reduced_motion": "reduce"}
        with support.browsing(self._browser, self._site, role, **options) as window:
            page = window.page
            page.goto(self._site.base + path)
            if then is not None:
                then(page)
            data = fewer_colours(page.screenshot())
        target = IMAGES / f"console-{name}.png"
        target.write_bytes(data)
        print(f"{target.relative_to(ROOT)}  {len(data) / 1024:.0f} KB")
        self.failed |= len(data) > MOST_BYTES


def _migrated(url: str) -> None:
    store = support.Store.open(url)
    support.upgrade(store)
    store.close()


def _first(page: Page) -> None:
    page.locator("tbody th a").first.click()
    page.wait_for_url("**/devices/*")


def _ask_the_box(page: Page) -> None:
    page.get_by_role("link", name="playwright", exact=True).first.click()
    page.wait_for_url("**/findings/*")
    page.get_by_label("Candidate").fill(PASTED)
    page.get_by_role("button", name="Compare").click()
    page.locator("#outcome .notice").wait_for()


# --- PNG -----------------------------------------------------------------------------------------------------


def fewer_colours(png: bytes) -> bytes:
    """Give an RGB picture with a palette: its most frequent colours, every other as the nearest of them."""
    width, height, pixels = _pixels(png)
    coarse = [(red & 0xFC | 2, green & 0xFC | 2, blue & 0xFC | 2) for red, green, blue in _triples(pixels)]
    exact = dict(zip(coarse, _triples(pixels), strict=True))
    palette = [colour for colour, _ in Counter(coarse).most_common(256)]
    places = {colour: place for place, colour in enumerate(palette)}
    for colour in set(coarse) - set(palette):
        places[colour] = min(
            range(len(palette)),
            key=lambda place: sum((a - b) ** 2 for a, b in zip(colour, palette[place], strict=True)),
        )
    body = bytes(places[colour] for colour in coarse)
    rows = b"".join(b"\0" + body[at : at + width] for at in range(0, len(body), width))
    table = b"".join(bytes(exact[colour]) for colour in palette)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"PLTE", table), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*one) for one in chunks)


def _triples(pixels: bytes) -> list[tuple[int, int, int]]:
    return list(zip(pixels[0::3], pixels[1::3], pixels[2::3], strict=True))


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _pixels(png: bytes) -> tuple[int, int, bytes]:
    """Read an 8-bit RGB picture as a browser writes it (PNG 3, sections 9 and 11)."""
    at, data, width, height, channels = 8, b"", 0, 0, 3
    while at < len(png):
        (size,), name = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        chunk = png[at + 8 : at + 8 + size]
        if name == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", chunk[:10])
            channels = {2: 3, 6: 4}[colour]
            if depth != 8:
                raise ValueError("not eight bits a channel")
        elif name == b"IDAT":
            data += chunk
        at += size + 12
    plain = _unfiltered(zlib.decompress(data), width * channels, channels)
    if channels == 4:
        plain = bytes(value for place, value in enumerate(plain) if place % 4 != 3)
    return width, height, plain


def _unfiltered(data: bytes, stride: int, step: int) -> bytes:
    out, above = bytearray(), bytearray(stride)
    for at in range(0, len(data), stride + 1):
        kind, row = data[at], bytearray(data[at + 1 : at + 1 + stride])
        for place in range(stride) if kind else ():
            left = row[place - step] if place >= step else 0
            corner = above[place - step] if place >= step else 0
            guess = (0, left, above[place], (left + above[place]) // 2, _paeth(left, above[place], corner))[
                kind
            ]
            row[place] = (row[place] + guess) & 255
        out += row
        above = row
    return bytes(out)


def _paeth(left: int, above: int, corner: int) -> int:
    """Give the neighbour that is nearest to their gradient (PNG 9.4)."""
    gradient = left + above - corner
    return min((left, above, corner), key=lambda value: abs(gradient - value))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
