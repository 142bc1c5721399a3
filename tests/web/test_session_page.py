"""A session's page and what lies below it."""

from __future__ import annotations

import base64
import re
import shlex
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profiles import scale_examples
from tests.transcripts import SESSION, Pen, Row, call, lines, prompt, reply, transcript, write
from tests.web.client import Client
from tests.web.conftest import AGENT, PIXEL, session_rows, write_home

from threadline.web import urls
from threadline.web.session import view
from threadline.web.session.parts import fold_text

_PAGE = f"/session/{SESSION}"
_ARTICLE = re.compile(r'<article [^>]*?\bid="([^"]+)"')
_SECTION = re.compile(r'<section class="section" id="s(\d+)"')


def _anchors(text: str) -> list[str]:
    return _ARTICLE.findall(text)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A session of several sections."""
    return Client(write_home(tmp_path_factory.mktemp("long") / "home", session_rows(turns=400)))


def test_a_short_session_is_whole(client: Client) -> None:
    """All of it is in the page: no script is needed, and nothing is left to be filled."""
    text = client.get(_PAGE).text
    data = client.get(f"{_PAGE}.json").json()
    assert "unfilled" not in text
    assert data["items"] == len([anchor for anchor in _anchors(text) if not anchor.startswith(AGENT)])
    assert "Look at this &lt;b&gt;picture&lt;/b&gt;" in text


def test_the_head_says_what_it_took(client: Client) -> None:
    """Title, project, figures, and a command to resume it that a shell takes as it is meant."""
    text = client.get(_PAGE).text
    data = client.get(f"{_PAGE}.json").json()
    assert (data["turns"], data["calls"], data["project"]) == (3, 3, "/work/app")
    assert [agent["id"] for agent in data["agents"]] == [AGENT]
    assert float(data["amount"]) > 0
    assert data["context"] == 1007
    shown = unescape(text.partition('<code id="resume">')[2].partition("</code>")[0])
    (home,) = client.pool.homes
    named = f"CLAUDE_CONFIG_DIR={home.path}"
    assert shlex.split(shown) == ["cd", "/work/app", "&&", named, "claude", "--resume", SESSION]


@pytest.mark.parametrize("cwd", ["/tmp/a b; rm -rf $HOME", "/tmp/`id`", "/tmp/'\"", "relative", "/tmp/\nid", "-rf"])  # noqa: S108 - words
def test_a_hostile_directory_cannot_escape_the_command(tmp_path: Path, cwd: str) -> None:
    """The command names the directory as one word, or is not shown at all."""
    rows = transcript(prompt("hello"), reply("yes"), pen=Pen(cwd=cwd))
    data = Client(write_home(tmp_path / "home", rows)).get(f"{_PAGE}.json").json()
    if cwd.startswith("/") and cwd.isprintable():
        assert shlex.split(data["resume"])[:3] == ["cd", cwd, "&&"]
    else:
        assert data["resume"] is None


@pytest.mark.parametrize(
    ("cwd", "command"),
    [
        (r"C:\Users\Ann\my app", r"cd 'C:\Users\Ann\my app'; claude --resume "),
        (r"d:\it's [here]", r"Set-Location -LiteralPath 'd:\it''s [here]'; claude --resume "),
        ("C:\\a\u2019; calc", "Set-Location -LiteralPath 'C:\\a\u2019\u2019; calc'; claude --resume "),
        (r"\\server\share", r"cd '\\server\share'; claude --resume "),
    ],
)
def test_a_session_of_windows_is_resumed_in_powershell(tmp_path: Path, cwd: str, command: str) -> None:
    """A path of Windows is quoted as PowerShell quotes, and the command stands in the head with a button."""
    rows = transcript(prompt("hello"), reply("yes"), pen=Pen(cwd=cwd))
    client = Client(write_home(tmp_path / "home", rows))
    assert client.get(f"{_PAGE}.json").json()["resume"] == f"{command}{SESSION}"
    shown = client.get(_PAGE).text.partition('<code id="resume">')[2]
    assert unescape(shown.partition("</code>")[0]) == f"{command}{SESSION}"
    assert 'data-copy="resume"' in shown.partition("</p>")[0]


def test_it_is_resumed_where_it_belongs(tmp_path: Path) -> None:
    """Of the directories that a session was in, the one that its folder is named after, wherever it went later."""
    rows = transcript(*(part for number in range(3) for part in (prompt(f"Shelf {number}"), reply("yes"))))
    for row, cwd in zip(
        rows, ("/elsewhere", "/elsewhere", "/work/app", "/work/app", "/work/app/deep", "/"), strict=True
    ):
        assert isinstance(row, dict)
        row["cwd"] = cwd
    data = Client(write_home(tmp_path / "home", rows)).get(f"{_PAGE}.json").json()
    assert data["resume"].startswith("cd /work/app && ")


def test_the_home_is_named_unless_it_is_the_usual_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claude Code finds a session of another home only where it is told of that home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    rows = transcript(prompt("hello"), reply("yes"))
    usual = Client(write_home(tmp_path / ".claude", rows)).get(f"{_PAGE}.json").json()["resume"]
    assert usual == f"cd /work/app && claude --resume {SESSION}"
    place = tmp_path / "another home"
    other = Client(write_home(place, rows)).get(f"{_PAGE}.json").json()["resume"]
    assert other == f"cd /work/app && CLAUDE_CONFIG_DIR='{place}' claude --resume {SESSION}"


def test_the_sections_joined_are_the_whole(long: Client) -> None:
    """Every item is in exactly one section, in order, whether it is sent with the page or as a part."""
    shape = long.get(f"{_PAGE}/shape.json").json()
    assert len(shape["sections"]) > 3
    whole: list[str] = []
    for section in shape["sections"]:
        part = long.get(f"{_PAGE}/part/{section['number']}", x_fragment="1").text
        own = [anchor for anchor in _anchors(part) if not anchor.startswith(AGENT)]
        assert (own[0], len(own)) == (section["first"], section["items"])
        whole += own
    assert len(whole) == len(set(whole)) == shape["items"]


@pytest.mark.sample(3)
@pytest.mark.parametrize("section", [1, 2, 5])
def test_a_page_is_filled_around_the_section_asked_for(long: Client, section: int) -> None:
    """Three sections are filled; each of the others is a link to the page that has it filled."""
    text = long.get(f"{_PAGE}?section={section}").text
    sections = _SECTION.findall(text)
    assert len(sections) == len(long.get(f"{_PAGE}/shape.json").json()["sections"])
    first = long.get(f"{_PAGE}/shape.json").json()["sections"][section - 1]["first"]
    assert first in _anchors(text)
    links = [unescape(one) for one in re.findall(r'href="([^"]*)"[^>]*class="unfilled"', text)]
    assert len(links) == len(sections) - 3
    number = int(links[-1].partition("section=")[2].partition("#")[0])
    assert links[-1].partition("#")[2] in _anchors(long.get(links[-1].partition("#")[0]).text)
    assert number == len(sections)


def test_a_deep_link_works_without_a_script(long: Client) -> None:
    """`?at=` fills the section of the entry, wherever it is."""
    last = long.get(f"{_PAGE}/shape.json").json()["sections"][-1]
    assert last["first"] not in _anchors(long.get(_PAGE).text)
    assert last["first"] in _anchors(long.get(f"{_PAGE}?at={last['first']}").text)
    told = long.get(f"{_PAGE}/where.json?anchor={last['first']}").json()
    assert (told["section"], told["anchor"], told["near"]) == (last["number"], last["first"], False)


def test_an_entry_that_is_not_there_is_no_error(client: Client) -> None:
    """A link may be old or mistyped: that it leads nowhere is an answer, for which no browser complains."""
    for anchor in ("L99999", "nobody.L3", "nonsense"):
        answer = client.get(f"{_PAGE}/where.json?anchor={anchor}")
        assert (answer.status_code, answer.json()["section"]) == (200, None)


def test_what_stands_around_is_told_alone(long: Client) -> None:
    """A page that is open asks for head, turns and map, and is not sent the conversation again."""
    told = long.get(f"{_PAGE}/about?turn=200", x_fragment="1").text
    assert [name for name in ("header", "nav") if f"<{name} " not in told] == []
    assert "<article" not in told
    assert 'data-turn="200"' in told
    assert f'data-version="{long.get(f"{_PAGE}.json").json()["version"]}"' in told


def test_the_panel_s_address_leads_somewhere_without_a_script(client: Client) -> None:
    """What a script would show beside the conversation has a page of its own, to which there is a link then."""
    text = client.get(f"{_PAGE}?state=L3").text
    inside = text.partition("<noscript>")[2].partition("</noscript>")[0]
    assert f'href="{_PAGE}/state/L3"' in inside
    assert f'href="{_PAGE}/entry/L3"' in client.get(f"{_PAGE}?raw=L3").text.partition("<noscript>")[2]
    assert "<noscript>" not in client.get(_PAGE).text


def test_a_result_leads_to_its_call(client: Client) -> None:
    """The line of a result has no item of its own: its link goes to the call."""
    answer = client.get(f"{_PAGE}?at=L4#L4")
    assert answer.status_code == 302
    assert answer.headers["location"] == f"{_PAGE}?at=L3#L3"
    assert client.get(f"{_PAGE}/where.json?anchor=L4").json()["anchor"] == "L3"


def test_what_a_view_leaves_out_is_told_by_its_neighbour(client: Client) -> None:
    """A link to an entry that is filtered away is no error: the page begins near it."""
    assert client.get(f"{_PAGE}?kind=prompt&at=L3").status_code == 200
    told = client.get(f"{_PAGE}/where.json?kind=prompt&anchor=L3").json()
    assert (told["anchor"], told["near"]) == ("L1", True)


def test_an_anchor_that_is_not_there_stands_nowhere(client: Client) -> None:
    """Whoever follows an old link is told so without an error."""
    for anchor in ("L99999", "nobody.L1", "x"):
        assert client.get(f"{_PAGE}/where.json?anchor={anchor}").json()["section"] is None


def test_an_agents_entry_leads_into_its_place_or_its_page(client: Client) -> None:
    """A short agent stands under its call; its page has it, too, and leads back."""
    told = client.get(f"{_PAGE}/where.json?anchor={AGENT}.L2").json()
    assert told["anchor"] == f"{AGENT}.L2"
    assert f'id="{AGENT}.L2"' in client.get(f"{_PAGE}/part/{told['section']}").text
    page = client.get(f"{_PAGE}/agent/{AGENT}")
    assert _anchors(page.text) == [f"{AGENT}.L1", f"{AGENT}.L2"]
    back = client.get(f"{_PAGE}/agent/{AGENT}?at=L1")
    assert back.headers["location"] == f"{_PAGE}?at=L1#L1"


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("kind=prompt", {"prompt"}),
        ("tool=Bash", {"call"}),
        ("errors=1", {"call"}),
        ("focus=1", {"prompt", "reply"}),
        ("calls=none", {"prompt", "reply"}),
        ("from=2&to=2", {"prompt", "reply"}),
    ],
)
def test_filters_are_in_the_address_and_stay_on_links(client: Client, query: str, kinds: set[str]) -> None:
    """A filtered page shows those kinds alone, and every link to an entry of it keeps the filter."""
    text = client.get(f"{_PAGE}?{query}").text
    assert set(re.findall(r'<article class="item (\w+)', text)) == kinds
    links = [unescape(one) for one in re.findall(r'<a href="([^"]*)" class="at"', text)]
    assert links
    assert all(query in link for link in links)


def test_a_picture_is_served_as_what_it_is(client: Client) -> None:
    """A PNG comes as image/png, byte for byte."""
    answer = client.get(f"{_PAGE}/image/L1/1")
    assert answer.headers["content-type"] == "image/png"
    assert answer.content == base64.b64decode(PIXEL)


def test_an_entry_shows_its_line(client: Client) -> None:
    """The page of an entry has its JSON; its data has the line as it stands."""
    assert "parentUuid" in client.get(f"{_PAGE}/entry/L1").text
    assert '"type":"user"' in client.get(f"{_PAGE}/entry/L1.json").json()["text"]


def test_a_fragment_is_bare_for_a_script_and_a_page_for_a_person(client: Client) -> None:
    """The same address serves both."""
    assert "<html" in client.get(f"{_PAGE}/entry/L1").text
    assert "<html" not in client.get(f"{_PAGE}/entry/L1", x_fragment="1").text
    assert "<html" not in client.get(f"{_PAGE}/entry/L1", sec_fetch_dest="empty").text


def test_a_call_is_shown_whole(tmp_path: Path) -> None:
    """Its own page cuts nothing, however long the output is; its id may hold whatever a transcript says."""
    output = "\n".join(f"row {number}" for number in range(3000))
    rows = transcript(prompt("x"), call("Bash", "seq", result=output))
    strange = re.sub(rb"toolu_01\w+", b"a/b%2f\\\\u003cc\\\\u003e", lines(*rows))
    client = Client(write_home(tmp_path / "home", [strange]))
    page = client.get(_PAGE).text
    assert "row 2999" not in page
    links = {unescape(one) for one in re.findall(rf'href="({_PAGE}/call/[^"]*)"', page)}
    assert len(links) == 1
    assert "row 2999" in client.get(links.pop()).text


@pytest.mark.parametrize("words", ["creme BRULEE", "CRÈME", "sorted shelf 3"])
def test_words_are_found_whatever_their_case_and_accents(client: Client, words: str) -> None:
    """Each hit names an item of the page, its section and what stands around."""
    told = client.get(f"{_PAGE}/find.json?q={words}").json()
    shown = _anchors(client.get(_PAGE).text)
    assert told["total"] == len(told["hits"]) > 0
    for hit in told["hits"]:
        assert hit["anchor"] in shown
        assert fold_text(words) in fold_text(hit["snippet"])


@given(text=st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
@settings(max_examples=scale_examples(40))
def test_any_words_can_be_looked_for(client: Client, text: str) -> None:
    """Whatever is typed into the box gives hits, none, or a sentence."""
    assert client.get(f"{_PAGE}/find.json?q={quote(text)}").status_code in {200, 400}


def test_markdown_of_a_session_and_of_an_entry(client: Client) -> None:
    """Both are plain text; an entry's holds that entry alone."""
    whole = client.get(f"{_PAGE}/markdown")
    assert whole.headers["content-type"].startswith("text/markdown")
    tokens = client.get(f"{_PAGE}.json").json()["tokens"]
    assert f"- spent: {tokens / 1000:.1f} k tokens, $" in whole.text
    assert "There are two." in whole.text
    one = client.get(f"{_PAGE}/markdown?anchor=L2").text
    assert one == "It is **one** pixel.\n"
    assert "ls shelves" in client.get(f"{_PAGE}/markdown?anchor=L4").text


def test_the_state_at_a_place_and_at_the_end(client: Client) -> None:
    """Both are shown; compared with another place, too."""
    for below in ("end", "L3", "L9?against=L3"):
        answer = client.get(f"{_PAGE}/state/{below}")
        assert answer.status_code == 200
        assert "/work/app" in answer.text


def test_turns_are_listed_around_a_place(long: Client) -> None:
    """The outline is bounded, and leads on to what is before and after."""
    numbers = [
        int(one) for one in re.findall(r'data-turn="(\d+)" data-anchor', long.get(f"{_PAGE}/turns?around=200").text)
    ]
    assert numbers == list(range(140, 261))
    assert "turns 1 to" not in long.get(f"{_PAGE}/turns?around=200").text
    assert long.get(f"{_PAGE}/turns?around=0").text.count("<li>") <= 62


def test_the_map_is_small_and_leads_everywhere(long: Client) -> None:
    """The strip has few elements, covers every item once, and its bands are links into the page."""
    text = long.get(_PAGE).text
    strip = text.partition('class="along"')[2].partition("</nav>")[0]
    assert len(re.findall(r"<[a-z]", strip)) <= 150
    bands = [
        (int(y), int(height)) for y, height in re.findall(r'y="(\d+)" width="[^"]*" height="(\d+)" class="band', strip)
    ]
    assert sum(height for _, height in bands) == long.get(f"{_PAGE}/shape.json").json()["items"]
    assert all(bands[at][0] + bands[at][1] == bands[at + 1][0] for at in range(len(bands) - 1))
    assert long.get(f"{_PAGE}/along").status_code == 200
    assert sum(row["requests"] for row in long.get(f"{_PAGE}/along.json").json()) == 404


def test_rows_of_a_journal_have_anchors_of_their_own(tmp_path: Path) -> None:
    """A workflow's journal counts its lines from 1, too: no name stands twice, and each leads to its row."""
    home = write_home(tmp_path / "home", session_rows())
    run = home / "projects" / "-work-app" / SESSION / "subagents" / "workflows" / "wf_1"
    write(run / "journal.jsonl", *({"type": "started", "key": f"k{at}", "agentId": AGENT} for at in range(3)))
    client = Client(home)
    anchors = _anchors(client.get(f"{_PAGE}?everything=1").text)
    assert len(anchors) == len(set(anchors))
    assert "wf_1-journal.L2" in anchors
    assert "k1" in client.get(f"{_PAGE}/entry/wf_1-journal.L2").text
    assert client.get(f"{_PAGE}?everything=1&at=wf_1-journal.L2").status_code == 200


def test_an_agent_that_lies_elsewhere_is_shown_alone(tmp_path: Path) -> None:
    """Old versions put agents beside sessions, and not always beside their own; its link still leads to it."""
    home = write_home(tmp_path / "home", session_rows())
    rows = transcript(prompt("Alone"), reply("I am alone"), pen=Pen(agentId="f'<00d", isSidechain=True))
    write(home / "projects" / "-elsewhere" / "agent-f'<00d.jsonl", *rows)
    client = Client(home)
    answer = client.get(f"{_PAGE}/agent/f__00d?at=f__00d.L2")
    assert answer.status_code == 302
    assert "I am alone" in client.get(answer.headers["location"].partition("#")[0]).text


def test_a_session_that_only_rows_name_is_found(tmp_path: Path) -> None:
    """A transcript of another name is listed with its calls; the link from there leads to it."""
    home = write_home(tmp_path / "home", session_rows())
    for other in ("0" * 8 + "-0000-4000-8000-000000000002", "</script>~2F%2F"):
        rows = transcript(prompt("notes"), reply(f"noted {other[:8]}"), pen=Pen(other))
        write(home / "projects" / "-work-app" / f"notes-{other[:2].replace('/', '-')}.jsonl", *rows)
        page = Client(home).get(urls.session_url(other))
        assert "noted" in page.text
        assert "</script>~" not in page.text


def test_a_very_long_session_is_cut_into_parts(long: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document holds so many sections; the parts lead to each other, and an anchor finds its part."""
    monkeypatch.setattr(view, "SECTIONS_PER_PART", 2)
    sections = long.get(f"{_PAGE}/shape.json").json()["sections"]
    text = long.get(_PAGE).text
    assert _SECTION.findall(text) == ["1", "2"]
    assert f"{_PAGE}?part=2" in text
    last = sections[-1]
    page = long.get(f"{_PAGE}?at={last['first']}").text
    assert last["first"] in _anchors(page)
    assert f'data-part="{last["part"]}"' in page


def test_a_changed_session_is_read_again(tmp_path: Path) -> None:
    """What is appended is there with the next request; sections that did not change keep their marks."""
    rows = session_rows(turns=60)
    home = write_home(tmp_path / "home", rows)
    client = Client(home)
    before = client.get(f"{_PAGE}/shape.json").json()
    path = next(home.glob(f"projects/*/{SESSION}.jsonl"))
    pen = Pen()
    more: list[Row | bytes] = transcript(prompt("One more thing", parentUuid=None), pen=pen)
    with path.open("ab") as file:
        file.write(lines(*_later(rows, more)))
    after = client.get(f"{_PAGE}/shape.json").json()
    assert after["items"] == before["items"] + 1
    assert after["version"] != before["version"]
    assert [one["mark"] for one in after["sections"][:-1]] == [one["mark"] for one in before["sections"][:-1]]
    assert after["sections"][-1]["mark"] != before["sections"][-1]["mark"]


def _later(rows: list[Row | bytes], more: list[Row | bytes]) -> list[Row]:
    """Rows as if they were written after others."""
    last = rows[-1]
    assert isinstance(last, dict)
    return [
        {
            **row,
            "uuid": "ffffffff-0000-4000-8000-000000000001",
            "parentUuid": last["uuid"],
            "timestamp": last["timestamp"],
        }
        for row in more
        if isinstance(row, dict)
    ]


def test_a_long_session_is_shown_from_its_beginning_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has yet to be read begins at once and says so; a place in it waits for the whole."""
    monkeypatch.setattr("threadline.web.session.page.LONG_BYTES", 1000)
    client = Client(write_home(tmp_path / "home", session_rows(turns=400)))
    first = client.get(_PAGE).text
    assert 'data-partial="1"' in first
    assert "Loading the rest of this session" in first
    assert _anchors(first)[0] == "L1"
    whole = client.get(f"{_PAGE}?whole=1").text
    assert "data-partial" not in whole
    assert _anchors(whole)[:3] == _anchors(first)[:3]
    assert "data-partial" not in client.get(_PAGE).text
    assert client.get(f"{_PAGE}?at=L500").status_code == 200


def test_only_what_failed_shows_what_failed_inside_agents(tmp_path: Path) -> None:
    """A call that went well is shown with the failures of the agent that it started, and with nothing else of it."""
    home = write_home(tmp_path / "home", session_rows())
    pen = Pen(SESSION, agentId=AGENT, isSidechain=True)
    told = transcript(
        prompt("Count"),
        call("Bash", "true", result="fine"),
        call("Bash", "false", result="Exit code 1: inside", error=True),
        reply("Two shelves"),
        pen=pen,
    )
    folder = home / "projects" / "-work-app" / SESSION / "subagents"
    write(folder / f"agent-{AGENT}.jsonl", *told)
    text = Client(home).get(f"{_PAGE}?errors=1").text
    inside = [anchor for anchor in _anchors(text) if anchor.startswith(AGENT)]
    assert len(inside) == 1
    agent = text.partition('<div class="agent"')[2]
    assert "<details open" in agent.partition("<summary")[0]
    assert len(_anchors(text)) == 3


def test_context_and_cost_add_up(tmp_path: Path) -> None:
    """Turns and agents, the one row that is of neither where there is such, and their sum, which the head has, too."""
    home = write_home(tmp_path / "home", session_rows())
    pen = Pen(SESSION, agentId=AGENT, isSidechain=True)
    told = transcript(prompt("Count"), reply("Two", output=900, message={"id": "msg_of_the_agent"}), pen=pen)
    write(home / "projects" / "-work-app" / SESSION / "subagents" / f"agent-{AGENT}.jsonl", *told)
    client = Client(home)
    text = client.get(f"{_PAGE}/along").text
    amounts = [float(one) for one in re.findall(r"<t[dh][^>]*>\$(-?[0-9.]+)</t[dh]>", text)]
    rows, total = amounts[:-1], amounts[-1]
    assert sum(rows) == pytest.approx(total, abs=0.0001 * len(rows))
    assert total == pytest.approx(float(client.get(f"{_PAGE}.json").json()["amount"]), abs=0.0001)
    assert f"{_PAGE}/agent/{AGENT}" in text
    assert "<tfoot>" in text
