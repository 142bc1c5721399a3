"""Every page shows times in one zone, names the zone, and passes it on with its links."""

from __future__ import annotations

import re
from html import unescape
from zoneinfo import ZoneInfo

import pytest
from tests.transcripts import SESSION
from tests.web.client import PORT, Client
from tests.web.conftest import AGENT

from threadline.web import cookie_name

_PAGE = f"/session/{SESSION}"
_AGENT = f"{_PAGE}/agent/{AGENT}"
_TIME = re.compile(r'<time datetime="([^"]+)"[^>]*>([^<]+)</time>')
_LINK = re.compile(r'(?:href|action)="(/[^"]*)"')


def _clock_time(text: str) -> str:
    return text[-5:]


@pytest.mark.parametrize("path", ["/sessions", "/calls", _PAGE, f"{_PAGE}?side=sessions"])
def test_shows_times_in_the_requested_zone(client: Client, path: str) -> None:
    """Visible times are in the zone, and the exact times for programs stay in UTC."""
    join = "&" if "?" in path else "?"
    kolkata = _TIME.findall(client.get(f"{path}{join}tz=Asia/Kolkata").text)
    utc = _TIME.findall(client.get(f"{path}{join}tz=UTC").text)
    assert kolkata
    assert [exact for exact, _shown in kolkata] == [exact for exact, _shown in utc]
    assert all(exact.endswith("+00:00") for exact, _shown in kolkata)
    minutes = [(int(_clock_time(shown)[:2]) * 60 + int(_clock_time(shown)[3:])) for _exact, shown in kolkata]
    utc_minutes = [(int(_clock_time(shown)[:2]) * 60 + int(_clock_time(shown)[3:])) for _exact, shown in utc]
    assert {(local - base) % 1440 for local, base in zip(minutes, utc_minutes, strict=True)} == {330}


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", ["/", "/sessions", "/calls", "/files", "/usage", "/search?q=shelf", _PAGE, _AGENT])
def test_names_the_zone(client: Client, path: str) -> None:
    """Every page says which zone its times are in."""
    join = "&" if "?" in path else "?"
    text = re.sub(r'="[^"]*"', "", client.get(f"{path}{join}tz=Asia/Kolkata").text)
    assert "Asia/Kolkata" in text


def test_defaults_to_the_zone_of_the_machine(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists and sessions use the same default zone."""
    monkeypatch.setattr("threadline.web.request.parse_zone", _kolkata)
    assert "Asia/Kolkata" in client.get(_PAGE).text
    assert "Asia/Kolkata" in client.get("/sessions").text


def test_a_cookie_sets_the_default_zone_of_pages_only(client: Client) -> None:
    """Pages, and JSON for our own scripts, use the browser's zone. JSON for programs does not, and `tz` wins."""
    cookie = f"{cookie_name(PORT)}={client.cookie}; threadline-zone=Asia%2FKolkata"
    page = client.get("/sessions", cookie=cookie).text
    assert 'data-zone="Asia/Kolkata"' in page
    assert "tz=Asia" not in page
    assert "Asia/Kolkata" in client.get(_PAGE, cookie=cookie).text
    assert "Asia/Kolkata" not in client.get("/sessions?tz=UTC", cookie=cookie).text
    assert "data-zone" not in client.get("/sessions?tz=UTC", cookie=cookie).text
    assert client.get("/time-zone.json?tz=UTC", cookie=cookie).json() == {"zone": "UTC"}
    assert client.get("/time-zone.json", cookie=cookie).json() == client.get("/time-zone.json").json()
    assert client.get("/time-zone.json", cookie=cookie, x_fragment="1").json() == {"zone": "Asia/Kolkata"}


@pytest.mark.parametrize("value", ["Nowhere%2FTown", "%00", "..%2f..%2fetc%2fpasswd", "x" * 4000])
def test_an_unknown_zone_in_the_cookie_is_ignored(client: Client, value: str) -> None:
    """A browser may know zones that this machine does not. Then times are in the machine's zone."""
    answer = client.get("/time-zone", cookie=f"{cookie_name(PORT)}={client.cookie}; threadline-zone={value}")
    assert answer.status_code == 200
    zone = client.get("/time-zone.json").json()["zone"]
    assert f"Times are shown in {zone}." in answer.text


def _kolkata(_name: str | None) -> ZoneInfo:
    return ZoneInfo("Asia/Kolkata")


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "path", ["/", "/sessions", "/usage?by=project", "/calls", "/files", "/search?q=shelf", "/doctor", _PAGE]
)
def test_links_and_forms_keep_the_zone(client: Client, path: str) -> None:
    """Every link to another page of ours keeps the zone, and so does every form."""
    join = "&" if "?" in path else "?"
    text = client.get(f"{path}{join}tz=Asia/Kolkata").text
    links = [unescape(link) for link in re.findall(r'href="(/[^"]*)"', text) if not link.startswith("/assets/")]
    assert links
    assert [link for link in links if "tz=Asia%2FKolkata" not in link] == []
    for form in re.findall(r"<form.*?</form>", text, re.DOTALL):
        # A form that saves something returns to an address with the zone.
        assert 'name="tz" value="Asia/Kolkata"' in form or "tz=Asia%2FKolkata" in form


def test_an_unknown_zone_is_an_error_without_links_to_it(client: Client) -> None:
    """The error page does not pass the unknown zone on, so its links work."""
    answer = client.get("/sessions?tz=Nowhere/Town")
    assert answer.status_code == 400
    assert "tz=" not in "".join(_LINK.findall(answer.text))
