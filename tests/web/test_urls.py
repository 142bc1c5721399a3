"""URLs reach only what the archive lists."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from tests.transcripts import SESSION, prompt, transcript, write
from tests.web.client import Client
from tests.web.conftest import session_rows, write_home

_STRANGE = [
    "%",
    "%25",
    "../..",
    "/etc/passwd",
    "%00",
    "'",
    '"',
    "<script>",
    "a" * 300,
    "_",
    "last",
    "*",
    "-rf",
    "\n",
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", _STRANGE)
def test_strange_ids_are_not_found(client: Client, name: str) -> None:
    """Wildcards, paths, quotes and markup name no session, and the answer does not repeat them as markup."""
    for address in (f"/session/{quote(name, safe='')}", f"/session/{quote(name, safe='')}/shape.json"):
        answer = client.get(address)
        assert answer.status_code in {400, 404}
        assert "<script>" not in answer.text or answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "path", ["/..%2f..%2fetc/passwd", "/../../etc/passwd", "/assets/..%2f..%2fapp.py", "/assets/app.py", "//etc/passwd"]
)
def test_paths_never_lead_to_files(client: Client, path: str) -> None:
    """URLs are not file paths."""
    answer = client.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text


def test_does_not_open_a_transcript_outside_the_homes(client: Client, tmp_path: Path) -> None:
    """An existing file, named by its path, is not a session of the archive."""
    other = write(tmp_path / "elsewhere" / f"{'0' * 8}.jsonl", *transcript(prompt("secret plans")))
    answer = client.get(f"/session/{quote(str(other), safe='')}")
    assert answer.status_code == 404
    assert "secret plans" not in answer.text


def test_accepts_the_prefix_of_an_id(client: Client) -> None:
    """As on the command line, the first characters of an id name a session."""
    assert client.get(f"/session/{SESSION[:8]}").status_code == 200


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "below",
    [
        "part/0",
        "part/99",
        "part/x",
        "entry/L999",
        "entry/x",
        "call/none",
        "image/L1/3",
        "image/L1/2",
        "image/L2/1",
        "state/L999",
        "agent/none",
    ],
)
def test_unknown_parts_of_a_session_are_not_found(client: Client, below: str) -> None:
    """Missing parts give 404, and so does a picture type that could contain a script."""
    assert client.get(f"/session/{SESSION}/{below}").status_code == 404


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "query",
    [
        "section=x",
        "section=-1",
        "branch=x",
        "kind=nothing",
        "thinking=1",
        "focus=perhaps",
        "from=1e9",
        "section=" + "9" * 40,
    ],
)
def test_invalid_parameters_are_bad_requests(client: Client, query: str) -> None:
    """The answer names the parameter."""
    answer = client.get(f"/session/{SESSION}?{query}")
    assert answer.status_code == 400
    assert query.partition("=")[0] in answer.text


def test_errors_are_json_at_json_addresses(client: Client) -> None:
    """At a URL that ends in .json, an error is JSON too."""
    answer = client.get("/session/ffffffff.json")
    assert answer.status_code == 404
    assert "ffffffff" in answer.json()["error"]


def test_pages_never_write_to_the_home(tmp_path: Path) -> None:
    """The pages of a session leave the home unchanged."""
    home = write_home(tmp_path / "home", session_rows())
    before = {path: path.stat().st_mtime_ns for path in sorted(home.rglob("*"))}
    client = Client(home)
    for below in ("", "/shape.json", "/part/1", "/state/end", "/markdown", "/entry/L1", "/find.json?q=shelf"):
        assert client.get(f"/session/{SESSION}{below}").status_code == 200
    assert {path: path.stat().st_mtime_ns for path in sorted(home.rglob("*"))} == before
