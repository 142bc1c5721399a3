"""Stars, tags, notes and saved searches on the page: only by POST from our own origin, and shown as inert text."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from tests.transcripts import SESSION
from tests.web.client import HOST, PORT, Client

from threadline.annotations import read_annotations
from threadline.web import cookie_name

ORIGIN = f"http://{HOST}"
HOSTILE = "\"'></title><script>alert(1)</script>"


@pytest.fixture(autouse=True)
def _data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder for each test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def post(client: Client, path: str, origin: str | None = ORIGIN, **values: str) -> httpx.Response:
    """Send a form."""

    async def send() -> httpx.Response:
        headers = {
            "cookie": f"{cookie_name(PORT)}={client.cookie}",
            "content-type": "application/x-www-form-urlencoded",
        }
        if origin is not None:
            headers["origin"] = origin
        transport = httpx.ASGITransport(app=client.app.asgi)
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as sender:
            return await sender.post(path, content=urlencode(values), headers=headers)

    return asyncio.run(send())


def test_a_form_changes_all_parts_and_goes_back(client: Client) -> None:
    """The form of the notes page stores star, tags and note, and returns to the session."""
    answer = post(client, "/annotate", session=SESSION, all="1", starred="1", tags="bug, later", note="Look again")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/session/{SESSION}")
    stored = read_annotations().sessions[SESSION]
    assert (stored.starred, stored.tags, stored.note) == (True, ("bug", "later"), "Look again")
    assert client.get(f"/session/{SESSION}/notes.json").json()["tags"] == ["bug", "later"]
    assert [row["session"] for row in client.get("/sessions.json?only=starred").json()["sessions"]] == [SESSION]
    assert client.get("/sessions.json?tag=other").json()["sessions"] == []


def test_a_script_changes_one_part(client: Client) -> None:
    """A star leaves tags and notes as they are."""
    post(client, "/annotate", session=SESSION, all="1", tags="bug")
    assert post(client, "/annotate.json", session=SESSION, starred="1").json()["tags"] == ["bug"]


@pytest.mark.parametrize("origin", [None, "null", "http://example.org", "http://127.0.0.1:8123"])
def test_other_origins_change_nothing(client: Client, origin: str | None) -> None:
    """A form of another site is refused, and so is a request without an origin."""
    assert post(client, "/annotate", origin, session=SESSION, starred="1").status_code == 403
    assert post(client, "/saved-searches", origin, name="x", address="/search?q=x").status_code == 403
    assert client.get("/annotate").status_code in {404, 405}
    assert read_annotations().sessions == {}


@pytest.mark.parametrize(
    "name", ["../../x", "__proto__", SESSION[:8], f"-work-app/{SESSION}", "5e55ffff-0000-4000-8000-0000000000ff"]
)
def test_only_sessions_can_be_annotated(client: Client, name: str) -> None:
    """A name that is not the id of a session is not found, and nothing is stored for it."""
    for path in ("/annotate", "/annotate.json"):
        assert post(client, path, session=name, starred="1", note="x").status_code == 404
    assert read_annotations().sessions == {}


def test_a_form_with_too_many_values_is_refused(client: Client) -> None:
    """It is a mistake of the sender, not of the server."""
    values = {f"a{number}": "1" for number in range(60)}
    answer = post(client, "/annotate.json", session=SESSION, **values)
    assert (answer.status_code, answer.json()) == (400, {"error": "This form has more than 50 values."})


def test_going_back_leads_to_our_own_pages_only(client: Client) -> None:
    """A form cannot redirect to another host."""
    for back in ("//example.org/", "http://example.org/", "/\\example.org", "javascript:alert(1)"):
        location = post(client, "/annotate", session=SESSION, starred="1", back=back).headers["location"]
        assert location == f"/session/{SESSION}"


def test_hostile_annotations_are_inert(client: Client) -> None:
    """Tags, notes and names of searches are shown as text."""
    post(client, "/annotate", session=SESSION, all="1", starred="1", tags=HOSTILE, note=HOSTILE)
    post(client, "/saved-searches", name=HOSTILE, address="/search?q=" + urlencode({"": HOSTILE})[1:])
    for path in ("/", "/sessions", "/search", f"/session/{SESSION}", f"/session/{SESSION}/notes"):
        assert "<script>alert" not in client.get(path).text


def test_searches_are_listed_and_removed(client: Client) -> None:
    """A saved search is on the search page, and its button removes it."""
    assert post(client, "/saved-searches", name="shelves", address="/search?q=shelf").headers["location"] == (
        "/search?q=shelf"
    )
    assert 'href="/search?q=shelf"' in client.get("/search").text
    post(client, "/saved-searches", remove="shelves")
    assert client.get("/search.json").json()["saved"] == []
    assert post(client, "/saved-searches", name="x", address="http://example.org/search").status_code == 400
