"""Probes: what is measured inside a page, frame by frame where that matters."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

# The part of the page that scrolls: the document, or what holds the feed.
_SCROLLER = """() => {
  for (let one = document.querySelector('.feed'); one; one = one.parentElement) {
    const how = getComputedStyle(one).overflowY;
    if (/auto|scroll/.test(how) && one.scrollHeight > one.clientHeight + 1) return one;
  }
  return document.scrollingElement;
}"""
_FRAME = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
_COUNTING = """() => {
  window.mostElements = 0;
  const look = () => {
    window.mostElements = Math.max(window.mostElements, document.getElementsByTagName('*').length);
    requestAnimationFrame(look);
  };
  look();
}"""
# Scrolls by known steps and sees, frame by frame, by how much more than that an item moved that was in view before
# and after. What moves without being scrolled is a jump.
_JUMPS = """async ([step, steps, pause]) => {
  const box = (SCROLLER)();
  const frame = () => new Promise(done => requestAnimationFrame(done));
  const seen = [];
  const height = innerHeight;
  const inView = one => { const at = one.getBoundingClientRect(); return at.bottom > 40 && at.top < height - 40; };
  for (let at = 0; at < steps; at++) {
    const items = [...document.querySelectorAll('article.item[aria-posinset]')].filter(inView);
    const item = items[Math.floor(items.length / 2)];
    const before = item ? item.getBoundingClientRect().top : 0;
    const place = box.scrollTop;
    if (step < 0 && place <= -step) break;
    if (step > 0 && place + box.clientHeight >= box.scrollHeight - step) break;
    box.scrollTop = place + step;
    const waited = performance.now();
    do await frame(); while (performance.now() - waited < pause);
    const after = item && item.isConnected ? item.getBoundingClientRect().top : null;
    seen.push({jump: item && after !== null ? after - before + step : null, id: item ? item.id : null});
  }
  return seen;
}""".replace("SCROLLER", _SCROLLER)
# Whether items stand where one looks, and nothing that is still empty.
_FILLED = """() => [0.3, 0.5, 0.7].every(share => {
  const feed = document.querySelector('.feed').getBoundingClientRect();
  const from = Math.max(0, feed.top);  // at the start, the session's head stands above
  const one = document.elementFromPoint(feed.left + feed.width / 2, from + (innerHeight - from) * share);
  const section = one && one.closest('.section');
  return !!section && !!section.querySelector('article.item');
})"""


def settled(page: Page) -> None:
    """Wait until what was asked for is drawn."""
    page.evaluate(_FRAME)


def elements(page: Page) -> int:
    """How many elements the document has."""
    return int(page.evaluate("document.getElementsByTagName('*').length"))


def count_elements(page: Page) -> None:
    """From now on, look at every frame how many there are."""
    page.evaluate(_COUNTING)


def most_elements(page: Page) -> int:
    """The most that any frame had."""
    return int(page.evaluate("window.mostElements"))


def top(page: Page, anchor: str) -> float:
    """Where an item begins, in the window; a test fails where it is not there."""
    return float(page.evaluate("id => document.getElementById(id).getBoundingClientRect().top", anchor))


def margin(page: Page, anchor: str) -> float:
    """How far below the upper edge an item is to stand when a link leads to it."""
    return float(
        page.evaluate("id => parseFloat(getComputedStyle(document.getElementById(id)).scrollMarginTop) || 0", anchor)
    )


def scroll_to(page: Page, share: float) -> None:
    """Drag the scroll bar to a share of the whole, at once."""
    page.evaluate(
        f"share => {{ const box = ({_SCROLLER})(); box.scrollTop = share * (box.scrollHeight - box.clientHeight); }}",
        share,
    )


def scrolled(page: Page) -> float:
    """How far the page is scrolled, in pixels."""
    return float(page.evaluate(f"({_SCROLLER})().scrollTop"))


def jumps(page: Page, step: int, steps: int, pause: int = 0) -> list[dict[str, Any]]:
    """Scroll so often by so many pixels; each time, by how many more an item moved, and which."""
    found: list[dict[str, Any]] = page.evaluate(_JUMPS, [step, steps, pause])
    return found


def is_filled(page: Page) -> bool:
    """Whether items stand where one looks."""
    return bool(page.evaluate(_FILLED))


def filled(page: Page) -> None:
    """Wait until items stand where one looks."""
    page.wait_for_function(_FILLED)
    settled(page)
