"""The pages about costs: the treemap fits every screen and theme, works without scripts and with the keyboard."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from playwright.sync_api import Page, expect
from tests.browser.paths import GROWING, LONGEST
from tests.browser.probes import wait_for_frame
from tests.browser.visitor import Visitor

# Of each treemap that is shown: its tiles, texts beyond their tile, and texts that are not readable.
_TREEMAP = """() => {
  const shown = [...document.querySelectorAll('.treemap')].filter(one => one.getClientRects().length);
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number)
      .map(part => part / 255).map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const links = shown.flatMap(map => [...map.querySelectorAll('a, g:has(> title)')]);
  const outside = [], pale = [];
  for (const link of links) {
    const tile = link.querySelector(':scope > rect');
    const box = tile.getBoundingClientRect();
    for (const clip of link.querySelectorAll(':scope > svg')) {
      const inside = clip.getBoundingClientRect();
      if (inside.right > box.right + 1 || inside.bottom > box.bottom + 1) outside.push(clip.textContent);
      const text = clip.querySelector('text');
      if (contrast(getComputedStyle(text).fill, getComputedStyle(tile).fill) < 4.5) pale.push(text.textContent);
    }
  }
  const screen = document.documentElement.clientWidth;
  return {
    maps: shown.length,
    links: links.length,
    untitled: links.filter(one => !one.querySelector(':scope > title')?.textContent).length,
    outside, pale,
    wide: shown.filter(one => one.getBoundingClientRect().right > screen).length,
    small: shown.flatMap(map => [...map.querySelectorAll('text')])
      .filter(one => one.getBoundingClientRect().height < 8).length,
  };
}"""


def _probe(page: Page) -> dict[str, object]:
    wait_for_frame(page)
    probe: dict[str, object] = page.evaluate(_TREEMAP)
    return probe


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 800, 390])
def test_treemap_fits_and_is_readable(visit: Visitor, width: int, theme: Literal["light", "dark"]) -> None:
    """One treemap is shown, without scripts: every tile has a title, and no text is cut off, pale or tiny."""
    page = visit(f"{LONGEST}/why", width=width, theme=theme, javascript=True)
    probe = _probe(page)
    assert probe["maps"] == 1
    assert isinstance(probe["links"], int)
    assert probe["links"] > 10
    faults = {name: value for name, value in probe.items() if name not in {"maps", "links"}}
    assert faults == {"untitled": 0, "outside": [], "pale": [], "wide": 0, "small": 0}


def test_rectangle_leads_to_its_place_without_scripts(visit: Visitor) -> None:
    """A click on a rectangle opens the session at the entry, or the group of causes."""
    page = visit(f"{GROWING}/why?by=tool", javascript=False)
    tile = page.locator(".treemap.wide a[href*='?at=']").first
    place = (tile.get_attribute("href") or "").partition("at=")[2].partition("#")[0]
    page.goto(visit.server.address + (tile.get_attribute("href") or ""))
    assert place.split("-")[0] in page.url
    visit.go(page, f"{GROWING}/why?by=tool")
    page.locator(".treemap.wide a[href*='group=']").first.dispatch_event("click")
    page.wait_for_url(re.compile("group="))
    expect(page.locator("main")).to_contain_text("Show everything")


def test_keyboard_reaches_everything(visit: Visitor) -> None:
    """`i` opens the page from anywhere, `j` and Enter open a row, and Tab reaches every link but those of tiles."""
    page = visit("/sessions")
    page.keyboard.press("i")
    page.wait_for_url("**/why")
    visit.go(page, f"{LONGEST}/why?by=tool")
    listed = set(page.locator("table a").evaluate_all("all => all.map(one => one.getAttribute('href'))"))
    drawn = set(page.locator(".treemap a").evaluate_all("all => all.map(one => one.getAttribute('href'))"))
    assert drawn - listed - {"#groups"} == set()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("group="))


def test_writers_of_lines_stay_beside_the_text(visit: Visitor) -> None:
    """On a phone, the text scrolls inside its box; a link to a line marks it."""
    page = visit("/files/blame?path=edge_stitch.py#L1", width=390, height=844)
    rows = page.locator(".blame-lines tbody tr")
    assert rows.count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(page.locator("tr:target")).to_have_count(1)
