"""How a session of fifty thousand entries opens and scrolls in a browser, beside agentsview on the same home.

Debian's chromium opens the page that each server shows. *First entry* is from the request until an entry is painted;
cold, when the server has just been started, and warm. Scrolled is through everything by wheel, as fast as frames come.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from playwright.sync_api import Browser, CDPSession, Page

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench import peers
from bench.homes import OUT
from bench.processes import family, high_water, machine
from bench.targets import Target, print_targets
from tests.browser import chromium, homes, long_session, probes
from tests.browser.server import start_server

PATIENCE = 120_000
SCREEN = {"width": 1280, "height": 900}
_WHOLE = "main:not([data-partial])"
MOST_FRAMES, WHEEL_FRAMES, WHEEL = 12_000, 400, 120
TURNS = 5


# What scrolls: of all that can, the one with most to scroll.
_BOX = """() => [document.scrollingElement, ...document.querySelectorAll('body *')]
  .map(one => [one.scrollHeight - one.clientHeight, one])
  .filter(([_, one]) => one === document.scrollingElement || /auto|scroll/.test(getComputedStyle(one).overflowY))
  .sort((a, b) => b[0] - a[0])[0][1]"""
# Scrolls on by a step, or most of a window, each frame. Frames in which no entry stands in the middle are blank.
_THROUGH = """async ([entry, most, step]) => {
  const box = (BOX)();
  const frame = () => new Promise(done => requestAnimationFrame(done));
  const at = box.getBoundingClientRect();
  const [x, y] = [Math.max(at.left, 0) + Math.min(at.width, innerWidth) / 2, innerHeight / 2];
  const seen = {frames: 0, elements: 0, blank: 0, longest: 0, pixels: 0};
  let before = performance.now();
  while (seen.frames < most && box.scrollTop + box.clientHeight < box.scrollHeight - 2) {
    box.scrollTop += step || Math.round(0.8 * box.clientHeight);
    await frame();
    const now = performance.now();
    seen.frames += 1;
    seen.longest = Math.max(seen.longest, now - before);
    seen.elements = Math.max(seen.elements, document.getElementsByTagName('*').length);
    const there = document.elementFromPoint(x, y);
    if (!there || !there.closest(entry)) seen.blank += 1;
    before = now;
  }
  seen.pixels = box.scrollTop + box.clientHeight;
  seen.reached = box.scrollTop + box.clientHeight >= box.scrollHeight - 2;
  return seen;
}""".replace("BOX", _BOX)


class Contender(NamedTuple):
    """A page to be measured: where its session lies, what an entry of it matches, and the server's process.

    `whole` matches once all of the session can be scrolled to.
    """

    name: str
    address: str
    entry: str
    process: int
    cookies: list[dict[str, Any]]
    whole: str = "body"


def made_home(entries: int, *, shortened: bool) -> Path:
    """A home with the long session in it, made once."""
    home = OUT / f"home-page-{entries}{'-shortened' if shortened else ''}"
    if not home.exists():
        print(f"generating {home} …", file=sys.stderr)
        homes.make_without_long_session(home)
        long_session.write(home, shortened=shortened, entries=entries)
    return home


@contextmanager
def ours(home: Path) -> Iterator[Contender]:
    """`threadline serve`, freshly started, its index made before."""
    with start_server(home, OUT / f"cache-{home.name}") as server:
        path = f"{server.address}/session/{long_session.LONG}"
        yield Contender("threadline", path, "article.item", server.process, server.browser_cookies(), _WHOLE)


@contextmanager
def agentsview(home: Path, programs: Path) -> Iterator[Contender]:
    """`agentsview serve`, freshly started, after its sync."""
    peer = peers.Agentsview(programs, home)
    peer.refresh(home)
    with peer.serving(home) as (address, process):
        yield Contender("agentsview", f"http://{address}/sessions/{long_session.LONG}", ".virtual-row", process, [])


def opened(browser: Browser, contender: Contender) -> Page:
    """A page of a fresh profile."""
    context = browser.new_context(viewport=SCREEN)  # type: ignore[arg-type] # a dict of that shape
    context.set_default_timeout(PATIENCE)
    if contender.cookies:
        context.add_cookies(contender.cookies)  # type: ignore[arg-type] # dicts of that shape
    return context.new_page()


def first_entry(page: Page, contender: Contender) -> float:
    """Seconds until an entry is painted."""
    start = time.perf_counter()
    page.goto(contender.address, wait_until="commit")
    page.wait_for_selector(contender.entry)
    probes.wait_for_frame(page)
    return time.perf_counter() - start


def measure(browser: Browser, contender: Contender) -> dict[str, Any]:
    """Everything about one contender."""
    page = opened(browser, contender)
    cold = first_entry(page, contender)
    page.context.close()
    warm = []
    for _turn in range(TURNS):
        page = opened(browser, contender)
        warm.append(first_entry(page, contender))
        page.context.close()
    page = opened(browser, contender)
    first_entry(page, contender)
    page.wait_for_selector(contender.whole)
    told: dict[str, Any] = {"cold_seconds": cold, "warm_seconds": median(warm)}
    told |= scrolling(page, contender)
    told |= memory(page, contender)
    page.context.close()
    return told


def scrolling(page: Page, contender: Contender) -> dict[str, Any]:
    """Through everything, frame by frame."""
    at_rest = probes.element_count(page)
    slowly = page.evaluate(_THROUGH, [contender.entry, WHEEL_FRAMES, WHEEL])
    start = time.perf_counter()
    seen = page.evaluate(_THROUGH, [contender.entry, MOST_FRAMES, 0])
    seconds = time.perf_counter() - start
    return {"elements_at_rest": at_rest, "by_wheel": slowly, "scrolled": {**seen, "seconds": seconds}}


def memory(page: Page, contender: Contender) -> dict[str, float]:
    """What the server has held at most, and what the page holds now, in MB."""
    session: CDPSession = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    found = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return {
        "server_megabytes": sum(map(high_water, family(contender.process))) / 1024,
        "heap_megabytes": found["JSHeapUsedSize"] / 1e6,
        "nodes": found["Nodes"],
    }


def deep_links(browser: Browser, contender: Contender, address: str) -> dict[str, float]:
    """How long a link to an entry in the middle takes to get there, and how far from it the page stands then."""
    shape = json.loads(_page_text(browser, contender, f"{address}/shape.json"))
    sections = shape["sections"] if isinstance(shape, dict) else shape
    seconds, off = [], []
    for part in range(1, 8):
        anchor = sections[len(sections) * part // 8]["first"]
        page = opened(browser, contender)
        start = time.perf_counter()
        page.goto(f"{address}#{anchor}", wait_until="commit")
        page.wait_for_selector(f'[id="{anchor}"]')
        probes.wait_for_frame(page)
        seconds.append(time.perf_counter() - start)
        page.wait_for_timeout(800)
        off.append(abs(probes.top(page, anchor) - probes.margin(page, anchor)))
        page.context.close()
    return {"deep_seconds": median(seconds), "deep_pixels": max(off)}


def _page_text(browser: Browser, contender: Contender, address: str) -> str:
    context = opened(browser, contender).context
    try:
        return context.request.get(address).text()
    finally:
        context.close()


def targets(told: dict[str, Any]) -> list[Target]:
    """What was to be reached, and what was."""
    return [
        Target("first entry, cold, s", "at most", 2, told["cold_seconds"]),
        Target("elements while scrolling", "under", 5000, told["scrolled"]["elements"]),
        Target("a deep link stands, px", "at most", 2, told["deep_pixels"]),
    ]


def print_table(told: dict[str, dict[str, Any]]) -> None:
    """All contenders side by side."""
    rows = {
        "first entry, cold, s": [f"{one['cold_seconds']:.2f}" for one in told.values()],
        "first entry, warm, s": [f"{one['warm_seconds']:.2f}" for one in told.values()],
        "elements, at rest": [f"{one['elements_at_rest']:,}" for one in told.values()],
        "elements, most while scrolling": [f"{one['scrolled']['elements']:,}" for one in told.values()],
        f"by wheel, {WHEEL_FRAMES} frames: blank": [f"{one['by_wheel']['blank']:,}" for one in told.values()],
        "  longest frame, ms": [f"{one['by_wheel']['longest']:.0f}" for one in told.values()],
        "flung, thousands of px": [f"{one['scrolled']['pixels'] / 1000:,.0f}" for one in told.values()],
        "  frames": [f"{one['scrolled']['frames']:,}" for one in told.values()],
        "  s": [f"{one['scrolled']['seconds']:.1f}" for one in told.values()],
        "  longest frame flung, ms": [f"{one['scrolled']['longest']:.0f}" for one in told.values()],
        "  blank frames flung": [f"{one['scrolled']['blank']:,}" for one in told.values()],
        "link to an entry, s": [
            f"{one['deep_seconds']:.2f}" if "deep_seconds" in one else "-" for one in told.values()
        ],
        "  off by, px": [f"{one['deep_pixels']:.1f}" if "deep_pixels" in one else "-" for one in told.values()],
        "server, most MB": [f"{one['server_megabytes']:.0f}" for one in told.values()],
        "page, JavaScript MB": [f"{one['heap_megabytes']:.1f}" for one in told.values()],
        "page, DOM nodes": [f"{one['nodes']:,.0f}" for one in told.values()],
    }
    print(f"\n{'':<36}" + "".join(f"{name:>14}" for name in told))
    for label, cells in rows.items():
        print(f"{label:<36}" + "".join(f"{cell:>14}" for cell in cells))


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=long_session.ENTRIES)
    parser.add_argument("--shortened", action="store_true", help="texts as short as those of the tests")
    parser.add_argument("--no-peer", action="store_true", help="leave agentsview out")
    options = parser.parse_args()
    if why := chromium.missing():
        sys.exit(f"This needs a browser, and {why}.")
    home = made_home(options.entries, shortened=options.shortened)
    size = next(home.glob(f"projects/*/{long_session.LONG}.jsonl")).stat().st_size / 1e6
    print(f"{options.entries:,} entries, {size:.0f} MB")
    told: dict[str, dict[str, Any]] = {}
    with chromium.launch() as browser:
        with ours(home) as one:
            told[one.name] = measure(browser, one) | deep_links(browser, one, one.address)
        if not options.no_peer and (programs := peers.fetched("agentsview")):
            with agentsview(home, programs) as one:
                told[one.name] = measure(browser, one)
    print_table(told)
    reached = print_targets(targets(told["threadline"]))
    (OUT / "page.json").write_text(json.dumps({"machine": machine(), "told": told, "targets": reached}, indent=1))


if __name__ == "__main__":
    main()
