"""Abandoned branches on a session's page: they are marked, and links lead to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.transcripts import SESSION, Pen, Row, prompt, reply, transcript
from tests.web.client import Client
from tests.web.conftest import write_home

_PAGE = f"/session/{SESSION}"


def _rewind(pen: Pen) -> Iterator[Row]:
    pen.parent = f"{3:08d}-0000-4000-8000-{SESSION[-12:]}"
    return iter(())


@pytest.fixture
def rewound(tmp_path: Path) -> Client:
    """A session whose second prompt was edited: lines 3 and 4 were abandoned."""
    parts = (
        prompt("first"),
        reply("one"),
        prompt("wrong way"),
        reply("two"),
        _rewind,
        prompt("right way"),
        reply("three"),
    )
    return Client(write_home(tmp_path / "home", transcript(*parts)))


def _anchors(client: Client) -> dict[str, str]:
    rows = client.get(f"{_PAGE}.json").json()["turns_of"]
    return {row["text"]: row["anchor"] for row in rows}


def test_redirects_a_link_to_an_abandoned_entry_to_its_branch(rewound: Client) -> None:
    """Following a search hit leads to the entry on its branch, and keeps the words to find."""
    anchor = _anchors(rewound)["wrong way"]
    answer = rewound.get(f"{_PAGE}?at={anchor}&find=wrong")
    assert answer.status_code == 302
    assert answer.headers["location"] == f"{_PAGE}?at={anchor}&branch=1&find=wrong#{anchor}"
    assert f'id="{anchor}"' in rewound.get(answer.headers["location"]).text


def test_redirects_a_link_to_the_conversation_out_of_a_branch(rewound: Client) -> None:
    """Entries after the fork are not on the branch, but those before it are."""
    anchors = _anchors(rewound)
    location = rewound.get(f"{_PAGE}?branch=1&at={anchors['right way']}").headers["location"]
    assert "branch" not in location
    assert f'id="{anchors["right way"]}"' in rewound.get(location).text
    assert rewound.get(f"{_PAGE}?branch=1&at={anchors['first']}").status_code == 200


def test_where_json_names_the_branch(rewound: Client) -> None:
    """`where.json` names the branch and the page of an entry that is not shown here."""
    anchor = _anchors(rewound)["wrong way"]
    answer = rewound.get(f"{_PAGE}/where.json?anchor={anchor}").json()
    assert answer == {"page": f"{_PAGE}?at={anchor}&branch=1#{anchor}", "branch": 1}


def test_marks_abandoned_turns(rewound: Client) -> None:
    """The outline links to the branch. The page and the header say how many turns are on it."""
    text = rewound.get(_PAGE).text
    anchor = _anchors(rewound)["wrong way"]
    outline = text.partition('class="turns"')[2].partition("</ol>")[0]
    assert f"?at={anchor}&amp;branch=1#{anchor}" in outline
    assert outline.count('class="left"') == 1
    assert "3 turns, 1 of them on branches" in text
    note = text.partition('class="branch-note">')[2].partition("</p>")[0]
    assert "1 turn not shown here" in note
    assert f'href="{_PAGE}?at={anchor}&amp;branch=1#{anchor}"' in note


def test_a_branch_marks_where_it_begins(rewound: Client) -> None:
    """Inside a branch, the fork is marked without a link to the branch itself."""
    answer = rewound.get(f"{_PAGE}?branch=1")
    assert answer.headers["location"] == f"{_PAGE}?at=L3&branch=1#L3"
    text = rewound.get(answer.headers["location"]).text
    assert "this branch begins here" in text
    assert "Rewound here" not in text
    assert text.index("this branch begins here") < text.index("wrong way", text.index('class="feed"'))
