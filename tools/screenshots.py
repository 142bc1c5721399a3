"""Take the screenshots of the README from the demo home: `python -m tools.screenshots`.

Needs Debian's `chromium` and playwright (extra `test`).
"""

from __future__ import annotations

import html
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
COMMANDS = ("threadline usage --by month,model --limit 4", "threadline list --limit 6")
COLUMNS = 112
_ESCAPE = re.compile(r"\x1b\[([\d;]*)m")
_COLOURS = {"31": "#f38ba8", "32": "#a6e3a1", "33": "#f9e2af", "34": "#89b4fa", "35": "#cba6f7", "36": "#94e2d5"}
_STYLES = {"1": "font-weight:bold", "2": "opacity:.6", "3": "font-style:italic", "4": "text-decoration:underline"}
_PAGE = """<body style="margin:0;background:#1e1e2e;color:#cdd6f4"><pre id="shot" style="display:inline-block;margin:0;
padding:16px 20px;font:14px/1.35 'DejaVu Sans Mono',monospace">{}</pre></body>"""


def main() -> int:
    """Write home.png, page.png and terminal.png to docs/images."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        environment = _environment(Path(folder))
        subprocess.run([*_threadline(), "demo", f"{folder}/.claude"], env=environment, check=True)  # noqa: S603 - our own command
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        _shoot_pages(browser, environment)
        _shoot_terminal(browser, environment)
        browser.close()
    return 0


def _environment(folder: Path) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if name != "CLAUDE_CONFIG_DIR"},
        "HOME": str(folder),
        "THREADLINE_CACHE": str(folder / "cache"),
        "THREADLINE_KEEP": "off",
        "TZ": "UTC",
        "TERM": "xterm-256color",
    }


def _threadline() -> list[str]:
    return [sys.executable, "-m", "threadline"]


def _shoot_pages(browser: Browser, environment: dict[str, str]) -> None:
    with _serving(environment) as url:
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light", reduced_motion="reduce")
        page.goto(url)
        address = url.split("?")[0].rstrip("/")
        page.goto(f"{address}/why?since=all")
        page.locator(".treemap.wide").wait_for(timeout=120_000)  # costs are attributed in the background
        page.goto(address)
        page.locator(".cause-list").first.wait_for()
        page.screenshot(path=IMAGES / "home.png")
        page.goto(f"{address}/sessions")
        page.get_by_role("link", name="Same voucher accepted twice").first.click()
        page.locator("article.item").first.wait_for()
        page.wait_for_load_state("networkidle")
        page.mouse.move(0, 0)
        page.screenshot(path=IMAGES / "page.png")


@contextmanager
def _serving(environment: dict[str, str]) -> Iterator[str]:
    command = [*_threadline(), "serve", "--no-open", "--port", "0"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own command
    try:
        for line in process.stdout or ():
            if match := re.search(r"http://\S+", line):
                yield match.group()
                break
    finally:
        process.terminate()
        process.wait()


def _shoot_terminal(browser: Browser, environment: dict[str, str]) -> None:
    text = "\n".join(f"$ {command}\n{_run_in_terminal(command, environment)}" for command in COMMANDS)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_content(_PAGE.format(_to_html(text.rstrip())))
    page.locator("#shot").screenshot(path=IMAGES / "terminal.png")


def _run_in_terminal(command: str, environment: dict[str, str]) -> str:
    """Run a command in a pseudo-terminal, so that it prints as it does for a person."""
    parent, child = pty.openpty()
    words = [*_threadline(), *command.split()[1:]]
    sized = {**environment, "COLUMNS": str(COLUMNS), "PAGER": "cat"}
    process = subprocess.Popen(words, env=sized, stdout=child, stderr=subprocess.DEVNULL, close_fds=True)  # noqa: S603 - our own command
    os.close(child)
    output = b""
    try:
        while chunk := os.read(parent, 65536):
            output += chunk
    except OSError:  # Linux reports the end of a pseudo-terminal as an error
        pass
    process.wait()
    os.close(parent)
    return output.decode().replace("\r\n", "\n")


def _to_html(text: str) -> str:
    """Turn ANSI colours into spans."""
    parts, opened, position = [], 0, 0
    for match in _ESCAPE.finditer(text):
        parts.append(html.escape(text[position : match.start()]))
        position = match.end()
        codes = [code for code in match.group(1).split(";") if code not in {"", "0"}]
        if not codes:
            parts.append("</span>" * opened)
            opened = 0
            continue
        styles = [f"color:{_COLOURS[code]}" for code in codes if code in _COLOURS]
        styles += [_STYLES[code] for code in codes if code in _STYLES]
        parts.append(f'<span style="{";".join(styles)}">')
        opened += 1
    return "".join([*parts, html.escape(text[position:]), "</span>" * opened])


if __name__ == "__main__":
    sys.exit(main())
