"""Times: one zone on every page, which is said once and goes along."""

from __future__ import annotations

import re
from html import unescape
from zoneinfo import ZoneInfo

import pytest
from tests.transcripts import SESSION
from tests.web.client import Client
from tests.web.conftest import AGENT

_PAGE = f"/session/{SESSION}"
_AGENT = f"{_PAGE}/agent/{AGENT}"
_TIME = re.compile(r'<time datetime="([^"]+)"[^>]*>([^<]+)</time>')
_LINK = re.compile(r'(?:href|action)="(/[^"]*)"')


def _clock(text: str) -> str:
    return text[-5:]


@pytest.mark.parametrize("path", ["/sessions", "/calls", _PAGE, f"{_PAGE}?side=sessions"])
def test_a_page_tells_times_in_the_zone_that_is_asked_for(client: Client, path: str) -> None:
    """Clocks show the zone's time; what a program reads stays exact."""
    join = "&" if "?" in path else "?"
    there = _TIME.findall(client.get(f"{path}{join}tz=Asia/Kolkata").text)
    utc = _TIME.findall(client.get(f"{path}{join}tz=UTC").text)
    assert there
    assert [exact for exact, _shown in there] == [exact for exact, _shown in utc]
    assert all(exact.endswith("+00:00") for exact, _shown in there)
    minutes = [(int(_clock(two)[:2]) * 60 + int(_clock(two)[3:])) for _exact, two in there]
    before = [(int(_clock(two)[:2]) * 60 + int(_clock(two)[3:])) for _exact, two in utc]
    assert {(one - two) % 1440 for one, two in zip(minutes, before, strict=True)} == {330}


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", ["/", "/sessions", "/calls", "/files", "/usage", "/search?q=shelf", _PAGE, _AGENT])
def test_the_zone_is_named(client: Client, path: str) -> None:
    """Whoever looks at a page can tell whose clocks it shows."""
    join = "&" if "?" in path else "?"
    text = re.sub(r'="[^"]*"', "", client.get(f"{path}{join}tz=Asia/Kolkata").text)
    assert "Asia/Kolkata" in text


def test_without_one_it_is_the_machine_s(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists and sessions have the same clock."""
    monkeypatch.setattr("threadline.web.request.parse_zone", _kolkata)
    assert "Asia/Kolkata" in client.get(_PAGE).text
    assert "Asia/Kolkata" in client.get("/sessions").text


def _kolkata(_name: str | None) -> ZoneInfo:
    return ZoneInfo("Asia/Kolkata")


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "path", ["/", "/sessions", "/usage?by=project", "/calls", "/files", "/search?q=shelf", "/doctor", _PAGE]
)
def test_the_zone_goes_along(client: Client, path: str) -> None:
    """Every link to another page of ours keeps it, and so does every form."""
    join = "&" if "?" in path else "?"
    text = client.get(f"{path}{join}tz=Asia/Kolkata").text
    links = [unescape(one) for one in re.findall(r'href="(/[^"]*)"', text) if not one.startswith("/assets/")]
    assert links
    assert [link for link in links if "tz=Asia%2FKolkata" not in link] == []
    for form in re.findall(r"<form.*?</form>", text, re.DOTALL):
        assert 'name="tz" value="Asia/Kolkata"' in form


def test_what_is_no_zone_is_told_and_goes_nowhere(client: Client) -> None:
    """A sentence says so; the links on that page lead to pages that work."""
    answer = client.get("/sessions?tz=Nowhere/Town")
    assert answer.status_code == 400
    assert "tz=" not in "".join(_LINK.findall(answer.text))
