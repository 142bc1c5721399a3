"""How a session of fifty thousand entries opens and scrolls in a browser, beside agentsview on the same home.

    python bench/page.py --beside ../threadline-e7de355

Debian's chromium opens the page that each server shows. *First entry* is from the request until an entry is painted;
cold, when the server has just been started, and warm. Scrolled is through everything by wheel, as fast as frames come.

With `--beside`, this checkout and another one are measured in turn on the same home, several rounds; the best round
counts, because noise only adds. CPU seconds are those of the server and of the browser's renderers.
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
from bench.processes import cpu_seconds, machine, peak_memory, process_tree
from bench.targets import Target, print_targets
from tests.browser import chromium, homes, long_session, probes
from tests.browser.server import start_server

PATIENCE = 120_000
SCREEN = {"width": 1280, "height": 900}
_WHOLE = "main:not([data-partial])"
MOST_FRAMES, WHEEL_FRAMES, WHEEL = 12_000, 400, 120
TURNS = 5
REST = 700
"""Milliseconds after the first entry that count as part of a visit."""
ROUNDS = 3
HERE = Path(__file__).parents[1]


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
  const seen = {frames: 0, elements: 0, blank: 0, longest: 0, kilopixels: 0};
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
  seen.kilopixels = (box.scrollTop + box.clientHeight) / 1000;
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
def ours(home: Path, name: str = "threadline", checkout: Path = HERE) -> Iterator[Contender]:
    """`threadline serve` of a checkout, freshly started, its index made before."""
    cache = OUT / f"cache-{home.name}{'' if checkout == HERE else f'-{checkout.name}'}"
    with start_server(home, cache, code=str(checkout / "src")) as server:
        path = f"{server.address}/session/{long_session.LONG}"
        yield Contender(name, path, "article.item", server.process, server.browser_cookies(), _WHOLE)


@contextmanager
def agentsview(home: Path, programs: Path) -> Iterator[Contender]:
    """`agentsview serve`, freshly started, after its sync."""
    peer = peers.Agentsview(programs, home)
    peer.refresh(home)
    with peer.serve(home) as (address, process):
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
        renderers = {each["id"]: each["cpuTime"] for each in processes if each["type"] == "renderer"}
        return {pid: cpu_seconds(pid) for pid in process_tree(self._server)}, renderers


def measure(browser: Browser, contender: Contender) -> dict[str, Any]:
    """Everything about one contender."""
    clock = CpuClock(browser, contender)
    page = opened(browser, contender)
    figures: dict[str, Any] = {"cold_seconds": first_entry(page, contender)}
    page.wait_for_selector(contender.whole)
    page.wait_for_timeout(REST)
    figures["cold_server_cpu"], figures["cold_renderer_cpu"] = clock.read()
    page.context.close()
    visits = [_warm_visit(browser, contender, clock) for _turn in range(TURNS)]
    figures["warm_seconds"] = median(seconds for seconds, _server, _renderer in visits)
    figures["warm_server_cpu"] = median(server for _seconds, server, _renderer in visits)
    figures["warm_renderer_cpu"] = median(renderer for _seconds, _server, renderer in visits)
    page = opened(browser, contender)
    first_entry(page, contender)
    page.wait_for_selector(contender.whole)
    page.wait_for_timeout(REST)
    clock.read()
    figures |= scrolling(page, contender)
    figures["scroll_server_cpu"], figures["scroll_renderer_cpu"] = clock.read()
    figures |= memory(page, contender)
    page.context.close()
    return figures


def _warm_visit(browser: Browser, contender: Contender, clock: CpuClock) -> tuple[float, float, float]:
    """Seconds until the first entry, and CPU seconds of the server and the renderer until the page is at rest."""
    page = opened(browser, contender)
    clock.read()
    seconds = first_entry(page, contender)
    page.wait_for_timeout(REST)
    server, renderer = clock.read()
    page.context.close()
    return seconds, server, renderer


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
        "server_megabytes": sum(map(peak_memory, process_tree(contender.process))) / 1024,
        "heap_megabytes": found["JSHeapUsedSize"] / 1e6,
        "nodes": found["Nodes"],
    }


def deep_links(browser: Browser, contender: Contender, address: str) -> dict[str, float]:
    """How long a link to an entry in the middle takes to get there, and how far from it the page stands then."""
    shape = json.loads(_page_text(browser, contender, f"{address}/shape.json"))
    sections = shape["sections"] if isinstance(shape, dict) else shape
    seconds, off, cpu = [], [], []
    clock = CpuClock(browser, contender)
    for part in range(1, 8):
        anchor = sections[len(sections) * part // 8]["first"]
        page = opened(browser, contender)
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
    page = opened(browser, contender)
    try:
        page.goto(address)
        return str(page.evaluate("fetch(location.href).then(response => response.text())"))
    finally:
        page.context.close()


def targets(figures: dict[str, Any]) -> list[Target]:
    """What was to be reached, and what was."""
    return [
        Target("first entry, cold, s", "at most", 2, figures["cold_seconds"]),
        Target("elements while scrolling", "under", 5000, figures["scrolled"]["elements"]),
        Target("a deep link stands, px", "at most", 2, figures["deep_pixels"]),
    ]


_ROWS = {
    "first entry, cold, s": ("{:.2f}", "cold_seconds"),
    "  server CPU, s": ("{:.2f}", "cold_server_cpu"),
    "  renderer CPU, s": ("{:.2f}", "cold_renderer_cpu"),
    "first entry, warm, s": ("{:.2f}", "warm_seconds"),
    "  server CPU, warm, s": ("{:.2f}", "warm_server_cpu"),
    "  renderer CPU, warm, s": ("{:.2f}", "warm_renderer_cpu"),
    "elements, at rest": ("{:,}", "elements_at_rest"),
    "elements, most while scrolling": ("{:,}", "scrolled.elements"),
    f"by wheel, {WHEEL_FRAMES} frames: blank": ("{:,}", "by_wheel.blank"),
    "  longest frame, ms": ("{:.0f}", "by_wheel.longest"),
    "flung, thousands of px": ("{:,.0f}", "scrolled.kilopixels"),
    "  frames": ("{:,}", "scrolled.frames"),
    "  s": ("{:.1f}", "scrolled.seconds"),
    "  longest frame flung, ms": ("{:.0f}", "scrolled.longest"),
    "  blank frames flung": ("{:,}", "scrolled.blank"),
    "  server CPU, scrolling, s": ("{:.2f}", "scroll_server_cpu"),
    "  renderer CPU, scrolling, s": ("{:.2f}", "scroll_renderer_cpu"),
    "link to an entry, s": ("{:.2f}", "deep_seconds"),
    "  off by, px": ("{:.1f}", "deep_pixels"),
    "  server CPU, link, s": ("{:.2f}", "deep_server_cpu"),
    "server, most MB": ("{:.0f}", "server_megabytes"),
    "page, JavaScript MB": ("{:.2f}", "heap_megabytes"),
    "page, DOM nodes": ("{:,.0f}", "nodes"),
}


def print_table(figures: dict[str, dict[str, Any]]) -> None:
    """All contenders side by side."""
    print(f"\n{'':<36}" + "".join(f"{name:>14}" for name in figures))
    for label, (form, key) in _ROWS.items():
        values = [flat(each).get(key) for each in figures.values()]
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
    """The least of each figure."""
    return {name: min(each[name] for each in rounds) for name in rounds[0]}


def compare(browser: Browser, home: Path, other: Path, rounds: int) -> dict[str, dict[str, Any]]:
    """Measure another checkout and this one in turn."""
    checkouts = {"base": other, "here": HERE}
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
    for name, checkout in checkouts.items():
        with ours(home, name, checkout):  # makes the index
            pass
    for number in range(rounds):
        for name, checkout in checkouts.items():
            with ours(home, name, checkout) as contender:
                figures = measure(browser, contender) | deep_links(browser, contender, contender.address)
            measured[name].append(flat(figures))
            print(f"round {number + 1} of {rounds}: {name}", file=sys.stderr)
    return {name: dict(best(each)) for name, each in measured.items()}


def main() -> None:
    """Measure all contenders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=long_session.ENTRIES)
    parser.add_argument("--shortened", action="store_true", help="texts as short as those of the tests")
    parser.add_argument("--no-peer", action="store_true", help="leave agentsview out")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="compare with another checkout instead")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of --beside")
    options = parser.parse_args()
    if why := chromium.missing():
        sys.exit(f"This needs a browser, and {why}.")
    home = made_home(options.entries, shortened=options.shortened)
    size = next(home.glob(f"projects/*/{long_session.LONG}.jsonl")).stat().st_size / 1e6
    print(f"{options.entries:,} entries, {size:.0f} MB")
    figures: dict[str, dict[str, Any]] = {}
    with chromium.launch() as browser:
        if options.beside is not None:
            print_table(compare(browser, home, options.beside.resolve(), options.rounds))
            return
        with ours(home) as contender:
            figures[contender.name] = measure(browser, contender) | deep_links(browser, contender, contender.address)
        if not options.no_peer and (programs := peers.install_peer("agentsview")):
            with agentsview(home, programs) as contender:
                figures[contender.name] = measure(browser, contender)
    print_table(figures)
    reached = print_targets(targets(figures["threadline"]))
    (OUT / "page.json").write_text(json.dumps({"machine": machine(), "told": figures, "targets": reached}, indent=1))


if __name__ == "__main__":
    main()
