"""Measurements inside a page, frame by frame if necessary."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

# The element that scrolls: the document, or a container of the feed.
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
# Scrolls by known steps and measures, frame by frame, by how much more an item moved that was in view before and
# after. Movement without scrolling is a jump.
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
# Whether the viewport shows items and no empty sections.
_FILLED = """() => [0.3, 0.5, 0.7].every(share => {
  const feed = document.querySelector('.feed').getBoundingClientRect();
  const from = Math.max(0, feed.top);  // at the start, the session's head stands above
  const one = document.elementFromPoint(feed.left + feed.width / 2, from + (innerHeight - from) * share);
  const section = one && one.closest('.section');
  return !!section && !!section.querySelector('article.item');
})"""
# Waits until an element has been at the same place for half a second, and returns its rectangle.
_AT_REST = """async selector => {
  let last = null, since = performance.now();
  while (performance.now() - since < 500) {
    await new Promise(done => requestAnimationFrame(done));
    const element = document.querySelector(selector);
    const {x, y, width, height} = element.getBoundingClientRect();
    const rectangle = {x, y, width, height};
    if (JSON.stringify(rectangle) !== JSON.stringify(last)) since = performance.now();
    last = rectangle;
  }
  return last;
}"""


def rectangle_at_rest(page: Page, selector: str) -> dict[str, float]:
    """The rectangle of an element in the viewport, once it has not moved for half a second."""
    rectangle: dict[str, float] = page.evaluate(_AT_REST, selector)
    return rectangle


def wait_for_frame(page: Page) -> None:
    """Wait until the next frame is drawn."""
    page.evaluate(_FRAME)


def element_count(page: Page) -> int:
    """The number of elements in the document."""
    return int(page.evaluate("document.getElementsByTagName('*').length"))


def watch_element_count(page: Page) -> None:
    """From now on, count the elements in every frame."""
    page.evaluate(_COUNTING)


def max_element_count(page: Page) -> int:
    """The highest count of any frame."""
    return int(page.evaluate("window.mostElements"))


def top(page: Page, anchor: str) -> float:
    """The top of an item in the viewport. Fails if the item does not exist."""
    return float(page.evaluate("id => document.getElementById(id).getBoundingClientRect().top", anchor))


def margin(page: Page, anchor: str) -> float:
    """The distance from the top at which a link places an item, also without scripts."""
    return float(
        page.evaluate(
            """id => (parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0)
              + (parseFloat(getComputedStyle(document.getElementById(id)).scrollMarginTop) || 0)""",
            anchor,
        )
    )


def scroll_to(page: Page, share: float) -> None:
    """Drag the scroll bar to a share of its range, at once."""
    page.evaluate(
        f"share => {{ const box = ({_SCROLLER})(); box.scrollTop = share * (box.scrollHeight - box.clientHeight); }}",
        share,
    )


def scroll_position(page: Page) -> float:
    """How far the page is scrolled, in pixels."""
    return float(page.evaluate(f"({_SCROLLER})().scrollTop"))


def measure_jumps(page: Page, step: int, steps: int, pause: int = 0) -> list[dict[str, Any]]:
    """Scroll `steps` times by `step` pixels. For each step: how many more pixels an item moved, and which item."""
    steps_measured: list[dict[str, Any]] = page.evaluate(_JUMPS, [step, steps, pause])
    return steps_measured


def is_filled(page: Page) -> bool:
    """Whether the viewport shows items."""
    return bool(page.evaluate(_FILLED))


def wait_until_filled(page: Page) -> None:
    """Wait until the viewport shows items."""
    page.wait_for_function(_FILLED)
    wait_for_frame(page)
