"""An exported page is one file that runs and requests nothing, whatever it contains."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog
from tests.browser import chromium
from tests.cli.runner import CliRunner
from tests.transcripts import Pen, call, lines, prompt, reply, transcript

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</textarea></script></style><script>alert(1)</script>",
    "[click](javascript:alert(1)) ![](http://attacker.test/?q=1) [d](data:text/html,x)",
    "<iframe src=//attacker.test></iframe> <link rel=stylesheet href=//attacker.test/x.css>",
    "\x1b]8;;http://attacker.test\x07link\x1b]8;;\x07 \u202eevil\u202c </title><meta http-equiv=refresh content=0>",
)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two sessions full of text that would harm a page."""
    folder = tmp_path_factory.mktemp("hostile") / "home/projects/-w"
    folder.mkdir(parents=True)
    paths = []
    for number in (1, 2):
        name = f"5e551011-0000-4000-8000-00000000000{number}"
        parts = [
            part
            for text in HOSTILE
            for part in (
                prompt(text),
                reply(text, f"`{text}`"),
                call("Bash", text, result=text),
                call(text, text, result=text),
            )
        ]
        pen = Pen(name, cwd=f"/w/{HOSTILE[0]}", gitBranch=HOSTILE[1])
        title = {"type": "ai-title", "sessionId": name, "aiTitle": HOSTILE[3]}
        paths.append(folder / f"{name}.jsonl")
        paths[-1].write_bytes(lines(*transcript(*parts, title, pen=pen)))
    return paths


@pytest.fixture
def site(sessions: list[Path], cli: CliRunner) -> Path:
    """A site of them, with nothing folded."""
    result = cli("export", *map(str, sessions), "--out", "site", "--tools", "full", "--thinking", "full")
    assert (result.code, result.err) == (0, "")
    return Path("site").absolute()


def test_page_is_self_contained(site: Path) -> None:
    """A page contains its style, allowed by its hash, no script (the search: one), and no external address."""
    for path in sorted(site.rglob("*.html")):
        text = path.read_text()
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
        assert policy is not None
        assert policy[1].startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
        (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
        assert _hash(style) in policy[1]
        scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        assert len(scripts) == (path.name == "search.html")
        assert all(_hash(script) in policy[1] for script in scripts)
        assert not re.search(r"<(?:link|iframe|object|embed|form)\b|\son[a-z]+=[\"']| style=", text)
        assert "url(" not in style
        assert "@import" not in style


def test_every_link_has_a_target(site: Path) -> None:
    """Every internal link leads to an anchor in the same file or to another file of the site."""
    for path in sorted(site.rglob("*.html")):
        text = path.read_text()
        ids = set(re.findall(r'\sid="([^"]*)"', text))
        for link in re.findall(r'<a [^>]*?href="([^"]*)"', text):
            target, _, anchor = link.partition("#")
            if target.startswith("http"):
                continue
            assert not target or (path.parent / target).is_file(), link
            assert target or anchor in ids or link == "#main", link


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. It is closed with these tests, because its event loop would interfere with others."""
    with chromium.launch_for_tests() as started:
        yield started


def test_pages_run_and_request_nothing(site: Path, browser: Browser) -> None:
    """Opened from disk, no page shows a dialog, logs an error or requests anything. The search works."""
    events: list[str] = []
    page = browser.new_page()

    def dismiss(dialog: Dialog) -> None:
        events.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.on("console", lambda message: events.append(message.text))
    page.on("pageerror", lambda error: events.append(str(error)))
    page.on("request", lambda request: events.extend([request.url] * (not request.url.startswith("file:"))))
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        assert page.evaluate("document.querySelectorAll('script:not([type])').length") == (path.name == "search.html")
    page.goto((site / "search.html").as_uri())
    page.fill("#query", "onerror")
    page.wait_for_selector("#results a")
    links = page.locator("#results li a")
    assert links.count() >= 2
    # The kind of a hit is separate from its text, for readers and for copying.
    assert all(re.match(r"(?:prompt|reply|call) \S", words) for words in links.all_inner_texts())
    links.first.click()
    page.wait_for_url("**/sessions/*.html#*")
    assert page.locator(":target").count() == 1
    page.close()
    assert events == []


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
