"""Branches in a session's page: what was left is told, and links lead to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.transcripts import SESSION, Pen, Row, prompt, reply, transcript
from tests.web.client import Client
from tests.web.conftest import write_home

_PAGE = f"/session/{SESSION}"


def _back(pen: Pen) -> Iterator[Row]:
    pen.parent = f"{3:08d}-0000-4000-8000-{SESSION[-12:]}"
    return iter(())


@pytest.fixture
def rewound(tmp_path: Path) -> Client:
    """A session whose second prompt was edited: lines 3 and 4 were left."""
    parts = (
        prompt("first"),
        reply("one"),
        prompt("wrong way"),
        reply("two"),
        _back,
        prompt("right way"),
        reply("three"),
    )
    return Client(write_home(tmp_path / "home", transcript(*parts)))


def _anchors(client: Client) -> dict[str, str]:
    rows = client.get(f"{_PAGE}.json").json()["turns_of"]
    return {row["text"]: row["anchor"] for row in rows}


def test_a_link_to_what_was_left_leads_to_its_branch(rewound: Client) -> None:
    """Whoever follows a hit of a search arrives at the entry, with the words to find."""
    anchor = _anchors(rewound)["wrong way"]
    found = rewound.get(f"{_PAGE}?at={anchor}&find=wrong")
    assert found.status_code == 302
    assert found.headers["location"] == f"{_PAGE}?at={anchor}&branch=1&find=wrong#{anchor}"
    assert f'id="{anchor}"' in rewound.get(found.headers["location"]).text


def test_a_link_to_the_conversation_leads_out_of_a_branch(rewound: Client) -> None:
    """What came after the fork is not on the branch; what came before it is."""
    anchors = _anchors(rewound)
    there = rewound.get(f"{_PAGE}?branch=1&at={anchors['right way']}").headers["location"]
    assert "branch" not in there
    assert f'id="{anchors["right way"]}"' in rewound.get(there).text
    assert rewound.get(f"{_PAGE}?branch=1&at={anchors['first']}").status_code == 200


def test_scripts_are_told_the_branch(rewound: Client) -> None:
    """`where.json` names the branch and the page of an entry that is not shown here."""
    anchor = _anchors(rewound)["wrong way"]
    told = rewound.get(f"{_PAGE}/where.json?anchor={anchor}").json()
    assert told == {"page": f"{_PAGE}?at={anchor}&branch=1#{anchor}", "branch": 1}


def test_turns_that_were_left_are_marked(rewound: Client) -> None:
    """The outline leads to the branch, the page says how many turns are on it, and so does the head."""
    text = rewound.get(_PAGE).text
    anchor = _anchors(rewound)["wrong way"]
    outline = text.partition('class="turns"')[2].partition("</ol>")[0]
    assert f"?at={anchor}&amp;branch=1#{anchor}" in outline
    assert outline.count('class="left"') == 1
    assert "3 turns, 1 of them on branches" in text
    note = text.partition('class="branch-note">')[2].partition("</p>")[0]
    assert "1 turn not shown here" in note
    assert f'href="{_PAGE}?branch=1"' in note


def test_a_branch_says_where_it_begins(rewound: Client) -> None:
    """Inside a branch the place it was left at leads nowhere: one is there."""
    text = rewound.get(f"{_PAGE}?branch=1").text
    assert "this branch begins here" in text
    assert "left here" not in text
    assert text.index("this branch begins here") < text.index("wrong way", text.index('class="feed"'))
