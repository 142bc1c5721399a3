"""How a session of fifty thousand entries opens and scrolls in a browser, compared with agentsview on the same home.

    python bench/page.py --beside ../threadline-e7de355

Debian's chromium opens the session on each server. *First entry* is the time from the request until an entry is
painted: cold, when the server has just started, and warm. Then the whole page is scrolled by wheel, as fast as frames
are drawn.

With `--beside`, this checkout and another one are measured in turn on the same home, in several rounds; the best
round counts, because noise only adds time. CPU seconds are those of the server and of the browser's renderers.
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
from bench.processes import cpu_seconds, machine_info, peak_memory, process_tree
from bench.targets import Target, print_targets
from tests.browser import chromium, homes, long_session, probes
from tests.browser.server import start_server

TIMEOUT_MS = 120_000
SCREEN = {"width": 1280, "height": 900}
_WHOLE = "main:not([data-partial])"
MAX_FRAMES, WHEEL_FRAMES, WHEEL = 12_000, 400, 120
TURNS = 5
SETTLE_MS = 700
"""Milliseconds after the first entry that count as part of a visit."""
ROUNDS = 3
CHECKOUT = Path(__file__).parents[1]


# The scrollable element with the most to scroll.
_SCROLLER = """() => [document.scrollingElement, ...document.querySelectorAll('body *')]
  .map(element => [element.scrollHeight - element.clientHeight, element])
  .filter(([_, element]) => element === document.scrollingElement
    || /auto|scroll/.test(getComputedStyle(element).overflowY))
  .sort((a, b) => b[0] - a[0])[0][1]"""
# Scrolls by a step, or by most of a window, each frame. A frame without an entry in the middle is blank.
_SCROLL = """async ([entry, most, step]) => {
  const box = (SCROLLER)();
  const frame = () => new Promise(done => requestAnimationFrame(done));
  const at = box.getBoundingClientRect();
  const [x, y] = [Math.max(at.left, 0) + Math.min(at.width, innerWidth) / 2, innerHeight / 2];
  const seen = {frames: 0, elements: 0, blank: 0, longest: 0, kilopixels: 0};
  let before = performance.now();
  while (seen.frames < most && box.scrollTop + box.clientHeight < box.scrollHeight - 2) {
    box.scrollTop += step || Math.round(0.8 * box.clientHeight);
    await frame();
    const now = performance.now();
    seen.frames += 1;
    seen.longest = Math.max(seen.longest, now - before);
    seen.elements = Math.max(seen.elements, document.getElementsByTagName('*').length);
    const middle = document.elementFromPoint(x, y);
    if (!middle || !middle.closest(entry)) seen.blank += 1;
    before = now;
  }
  seen.kilopixels = (box.scrollTop + box.clientHeight) / 1000;
  seen.reached = box.scrollTop + box.clientHeight >= box.scrollHeight - 2;
  return seen;
}""".replace("SCROLLER", _SCROLLER)


class Contender(NamedTuple):
    """A page to be measured: its address, the CSS selector of an entry, and the server's process.

    `whole` is a selector that matches once the whole session can be scrolled to.
    """

    name: str
    address: str
    entry: str
    process: int
    cookies: list[dict[str, Any]]
    whole: str = "body"


def home_with_long_session(entries: int, *, shortened: bool) -> Path:
    """A home with the long session, generated once."""
    home = OUT / f"home-page-{entries}{'-shortened' if shortened else ''}"
    if not home.exists():
        print(f"generating {home} …", file=sys.stderr)
        homes.make_without_long_session(home)
        long_session.write(home, shortened=shortened, entries=entries)
    return home


@contextmanager
def serve_threadline(home: Path, name: str = "threadline", checkout: Path = CHECKOUT) -> Iterator[Contender]:
    """Start `threadline serve` of a checkout."""
    cache = OUT / f"cache-{home.name}{'' if checkout == CHECKOUT else f'-{checkout.name}'}"
    with start_server(home, cache, code=str(checkout / "src")) as server:
        path = f"{server.address}/session/{long_session.LONG}"
        yield Contender(name, path, "article.item", server.process, server.browser_cookies(), _WHOLE)


@contextmanager
def serve_agentsview(home: Path, programs: Path) -> Iterator[Contender]:
    """Start `agentsview serve`, after its sync."""
    peer = peers.Agentsview(programs, home)
    peer.refresh(home)
    with peer.serving(home) as (address, process):
        yield Contender("agentsview", f"http://{address}/sessions/{long_session.LONG}", ".virtual-row", process, [])


def new_page(browser: Browser, contender: Contender) -> Page:
    """An empty page in a new profile."""
    context = browser.new_context(viewport=SCREEN)  # type: ignore[arg-type] # a dict of that shape
    context.set_default_timeout(TIMEOUT_MS)
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


class CpuClock:
    """CPU seconds of a contender's server and of the browser's renderers since the last reading."""

    def __init__(self, browser: Browser, contender: Contender) -> None:
        self._session = browser.new_browser_cdp_session()
        self._server = contender.process
        self._last = self._totals()

    def read(self) -> tuple[float, float]:
        """Seconds of the server and of the renderers. A renderer that has ended does not count."""
        before, self._last = self._last, self._totals()
        server = sum(self._last[0].values()) - sum(before[0].values())
        renderers = sum(seconds - before[1].get(id_, 0.0) for id_, seconds in self._last[1].items())
        return server, renderers

    def _totals(self) -> tuple[dict[int, float], dict[int, float]]:
        processes = self._session.send("SystemInfo.getProcessInfo")["processInfo"]
        renderers = {process["id"]: process["cpuTime"] for process in processes if process["type"] == "renderer"}
        return {pid: cpu_seconds(pid) for pid in process_tree(self._server)}, renderers


def measure(browser: Browser, contender: Contender) -> dict[str, Any]:
    """Measure one contender."""
    clock = CpuClock(browser, contender)
    page = new_page(browser, contender)
    figures: dict[str, Any] = {"cold_seconds": first_entry(page, contender)}
    page.wait_for_selector(contender.whole)
    page.wait_for_timeout(SETTLE_MS)
    figures["cold_server_cpu"], figures["cold_renderer_cpu"] = clock.read()
    page.context.close()
    visits = [_warm_visit(browser, contender, clock) for _turn in range(TURNS)]
    figures["warm_seconds"] = median(seconds for seconds, _server, _renderer in visits)
    figures["warm_server_cpu"] = median(server for _seconds, server, _renderer in visits)
    figures["warm_renderer_cpu"] = median(renderer for _seconds, _server, renderer in visits)
    page = new_page(browser, contender)
    first_entry(page, contender)
    page.wait_for_selector(contender.whole)
    page.wait_for_timeout(SETTLE_MS)
    clock.read()
    figures |= scrolling(page, contender)
    figures["scroll_server_cpu"], figures["scroll_renderer_cpu"] = clock.read()
    figures |= memory(page, contender)
    page.context.close()
    return figures


def _warm_visit(browser: Browser, contender: Contender, clock: CpuClock) -> tuple[float, float, float]:
    """Seconds until the first entry, and CPU seconds of the server and the renderer until the page has settled."""
    page = new_page(browser, contender)
    clock.read()
    seconds = first_entry(page, contender)
    page.wait_for_timeout(SETTLE_MS)
    server, renderer = clock.read()
    page.context.close()
    return seconds, server, renderer


def scrolling(page: Page, contender: Contender) -> dict[str, Any]:
    """Scroll through the whole page, frame by frame."""
    at_rest = probes.element_count(page)
    slowly = page.evaluate(_SCROLL, [contender.entry, WHEEL_FRAMES, WHEEL])
    start = time.perf_counter()
    seen = page.evaluate(_SCROLL, [contender.entry, MAX_FRAMES, 0])
    seconds = time.perf_counter() - start
    return {"elements_at_rest": at_rest, "by_wheel": slowly, "scrolled": {**seen, "seconds": seconds}}


def memory(page: Page, contender: Contender) -> dict[str, float]:
    """The peak memory of the server, and what the page holds now, in MB."""
    session: CDPSession = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return {
        "server_megabytes": sum(map(peak_memory, process_tree(contender.process))) / 1024,
        "heap_megabytes": metrics["JSHeapUsedSize"] / 1e6,
        "nodes": metrics["Nodes"],
    }


def deep_links(browser: Browser, contender: Contender, address: str) -> dict[str, float]:
    """Open links to entries of the page: the time until the entry is shown, and how many pixels it is off its place."""
    shape = json.loads(_page_text(browser, contender, f"{address}/shape.json"))
    sections = shape["sections"] if isinstance(shape, dict) else shape
    seconds, off, cpu = [], [], []
    clock = CpuClock(browser, contender)
    for part in range(1, 8):
        anchor = sections[len(sections) * part // 8]["first"]
        page = new_page(browser, contender)
        clock.read()
        start = time.perf_counter()
        page.goto(f"{address}#{anchor}", wait_until="commit")
        page.wait_for_selector(f'[id="{anchor}"]')
        probes.wait_for_frame(page)
        seconds.append(time.perf_counter() - start)
        page.wait_for_timeout(800)
        cpu.append(clock.read()[0])
        off.append(abs(probes.top(page, anchor) - probes.margin(page, anchor)))
        page.context.close()
    return {"deep_seconds": median(seconds), "deep_pixels": max(off), "deep_server_cpu": median(cpu)}


def _page_text(browser: Browser, contender: Contender, address: str) -> str:
    """The body of a response. The browser requests it: nothing else resolves names under `.localhost`."""
    page = new_page(browser, contender)
    try:
        page.goto(address)
        return str(page.evaluate("fetch(location.href).then(response => response.text())"))
    finally:
        page.context.close()


def targets(figures: dict[str, Any]) -> list[Target]:
    """The targets and the figures measured."""
    return [
        Target("first entry, cold, s", "at most", 2, figures["cold_seconds"]),
        Target("elements while scrolling", "under", 5000, figures["scrolled"]["elements"]),
        Target("a deep link is off by, px", "at most", 2, figures["deep_pixels"]),
    ]


_ROWS = {
    "first entry, cold, s": ("{:.2f}", "cold_seconds"),
    "  server CPU, s": ("{:.2f}", "cold_server_cpu"),
    "  renderer CPU, s": ("{:.2f}", "cold_renderer_cpu"),
    "first entry, warm, s": ("{:.2f}", "warm_seconds"),
    "  server CPU, warm, s": ("{:.2f}", "warm_server_cpu"),
    "  renderer CPU, warm, s": ("{:.2f}", "warm_renderer_cpu"),
    "elements, at rest": ("{:,}", "elements_at_rest"),
    "elements, peak while scrolling": ("{:,}", "scrolled.elements"),
    f"by wheel, {WHEEL_FRAMES} frames: blank": ("{:,}", "by_wheel.blank"),
    "  longest frame, ms": ("{:.0f}", "by_wheel.longest"),
    "by page, thousands of px": ("{:,.0f}", "scrolled.kilopixels"),
    "  frames": ("{:,}", "scrolled.frames"),
    "  s": ("{:.1f}", "scrolled.seconds"),
    "  longest frame, by page, ms": ("{:.0f}", "scrolled.longest"),
    "  blank frames, by page": ("{:,}", "scrolled.blank"),
    "  server CPU, scrolling, s": ("{:.2f}", "scroll_server_cpu"),
    "  renderer CPU, scrolling, s": ("{:.2f}", "scroll_renderer_cpu"),
    "link to an entry, s": ("{:.2f}", "deep_seconds"),
    "  off by, px": ("{:.1f}", "deep_pixels"),
    "  server CPU, link, s": ("{:.2f}", "deep_server_cpu"),
    "server, peak MB": ("{:.0f}", "server_megabytes"),
    "page, JavaScript MB": ("{:.2f}", "heap_megabytes"),
    "page, DOM nodes": ("{:,.0f}", "nodes"),
}


def print_table(figures: dict[str, dict[str, Any]]) -> None:
    """All contenders side by side."""
    print(f"\n{'':<36}" + "".join(f"{name:>14}" for name in figures))
    for label, (form, key) in _ROWS.items():
        values = [flat(nested).get(key) for nested in figures.values()]
        print(f"{label:<36}" + "".join(f"{'-' if value is None else form.format(value):>14}" for value in values))


def flat(figures: dict[str, Any]) -> dict[str, float]:
    """Figures of one contender without nesting: `scrolled.frames`."""
    values: dict[str, float] = {}
    for name, value in figures.items():
        if isinstance(value, dict):
            values |= {f"{name}.{inner}": number for inner, number in value.items()}
        else:
            values[name] = value
    return values


def best(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The minimum of each figure."""
    return {name: min(figures[name] for figures in rounds) for name in rounds[0]}


def compare(browser: Browser, home: Path, other: Path, rounds: int) -> dict[str, dict[str, Any]]:
    """Measure another checkout and this one in turn."""
    checkouts = {"base": other, "here": CHECKOUT}
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
    for name, checkout in checkouts.items():
        with serve_threadline(home, name, checkout):  # builds the index
            pass
    for number in range(rounds):
        for name, checkout in checkouts.items():
            with serve_threadline(home, name, checkout) as contender:
                figures = measure(browser, contender) | deep_links(browser, contender, contender.address)
            measured[name].append(flat(figures))
            print(f"round {number + 1} of {rounds}: {name}", file=sys.stderr)
    return {name: dict(best(figures)) for name, figures in measured.items()}


def main() -> None:
    """Measure, print, and write the figures to bench/out/page.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=long_session.ENTRIES)
    parser.add_argument("--shortened", action="store_true", help="texts as short as those of the tests")
    parser.add_argument("--no-peer", action="store_true", help="skip agentsview")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="compare with another checkout instead")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of --beside")
    options = parser.parse_args()
    if why := chromium.missing():
        sys.exit(f"This needs a browser, and {why}.")
    home = home_with_long_session(options.entries, shortened=options.shortened)
    size = next(home.glob(f"projects/*/{long_session.LONG}.jsonl")).stat().st_size / 1e6
    print(f"{options.entries:,} entries, {size:.0f} MB")
    figures: dict[str, dict[str, Any]] = {}
    with chromium.launch() as browser:
        if options.beside is not None:
            print_table(compare(browser, home, options.beside.resolve(), options.rounds))
            return
        with serve_threadline(home) as contender:
            figures[contender.name] = measure(browser, contender) | deep_links(browser, contender, contender.address)
        if not options.no_peer and (programs := peers.install_package("agentsview")):
            with serve_agentsview(home, programs) as contender:
                figures[contender.name] = measure(browser, contender)
    print_table(figures)
    outcomes = print_targets(targets(figures["threadline"]))
    (OUT / "page.json").write_text(
        json.dumps({"machine": machine_info(), "figures": figures, "targets": outcomes}, indent=1)
    )


if __name__ == "__main__":
    main()
