"""What names in addresses can reach: only what the archive lists."""

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
def test_a_strange_id_is_not_found(client: Client, name: str) -> None:
    """Wildcards, paths, quotes and markup name no session; the answer holds none of them as markup."""
    for address in (f"/session/{quote(name, safe='')}", f"/session/{quote(name, safe='')}/shape.json"):
        answer = client.get(address)
        assert answer.status_code in {400, 404}
        assert "<script>" not in answer.text or answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "path", ["/..%2f..%2fetc/passwd", "/../../etc/passwd", "/assets/..%2f..%2fapp.py", "/assets/app.py", "//etc/passwd"]
)
def test_no_path_leads_to_a_file(client: Client, path: str) -> None:
    """Addresses are no paths of files."""
    answer = client.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text


def test_a_transcript_outside_the_homes_is_not_opened(client: Client, tmp_path: Path) -> None:
    """A file that exists, named by its path, is no session of the archive."""
    other = write(tmp_path / "elsewhere" / f"{'0' * 8}.jsonl", *transcript(prompt("secret plans")))
    answer = client.get(f"/session/{quote(str(other), safe='')}")
    assert answer.status_code == 404
    assert "secret plans" not in answer.text


def test_the_start_of_an_id_will_do(client: Client) -> None:
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
def test_what_is_not_there_is_404(client: Client, below: str) -> None:
    """Sections, entries, calls, pictures and agents that do not exist; a picture of a kind that could hold a script."""
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
def test_a_value_that_says_nothing_is_400(client: Client, query: str) -> None:
    """The answer names the value, and what it may be."""
    answer = client.get(f"/session/{SESSION}?{query}")
    assert answer.status_code == 400
    assert query.partition("=")[0] in answer.text


def test_an_error_has_a_twin(client: Client) -> None:
    """At an address that ends in .json an error is data, too."""
    answer = client.get("/session/ffffffff.json")
    assert answer.status_code == 404
    assert "ffffffff" in answer.json()["error"]


def test_nothing_in_the_home_is_written(tmp_path: Path) -> None:
    """Every page of a session leaves the home as it was."""
    home = write_home(tmp_path / "home", session_rows())
    before = {path: path.stat().st_mtime_ns for path in sorted(home.rglob("*"))}
    client = Client(home)
    for below in ("", "/shape.json", "/part/1", "/state/end", "/markdown", "/entry/L1", "/find.json?q=shelf"):
        assert client.get(f"/session/{SESSION}{below}").status_code == 200
    assert {path: path.stat().st_mtime_ns for path in sorted(home.rglob("*"))} == before
