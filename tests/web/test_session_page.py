"""A session's page and the pages below it."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Iterable
from datetime import timedelta
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.profiles import scale_examples
from tests.transcripts import SESSION, START, Part, Pen, Row, call, lines, prompt, reply, transcript, write
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
def long_client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A client for a session of several sections."""
    return Client(write_home(tmp_path_factory.mktemp("long") / "home", session_rows(turns=400)))


def test_a_short_session_is_complete(client: Client) -> None:
    """The page contains all of a short session: no script is needed, and nothing is left to load."""
    text = client.get(_PAGE).text
    data = client.get(f"{_PAGE}.json").json()
    assert "unfilled" not in text
    assert data["items"] == len([anchor for anchor in _anchors(text) if not anchor.startswith(AGENT)])
    assert "Look at this &lt;b&gt;picture&lt;/b&gt;" in text


@pytest.mark.parametrize("query", ["errors=1", "kind=prompt", "tool=Bash&errors=1", "focus=1"])
def test_links_of_entries_keep_the_view_of_their_own_page(client: Client, query: str) -> None:
    """A page with a filter counts what other filters would show. The links of those pages do not have its filter."""
    assert client.get(f"{_PAGE}?{query}").status_code == 200
    for other in ("", "?errors=1"):
        links = re.findall(r'<a href="([^"]+)" class="at', client.get(f"{_PAGE}{other}").text)
        own = f"{_PAGE}{other}{'&' if other else '?'}at=L"
        assert links
        assert all(unescape(link).startswith((own, f"{_PAGE}/agent/{AGENT}")) for link in links)


@pytest.mark.parametrize("number", [10**30, 10**400, -(10**400), 1e300], ids=["1e30", "1e400", "-1e400", "float"])
def test_numbers_of_any_size_are_shown(tmp_path: Path, number: float) -> None:
    """Inputs and results of calls may contain numbers that no float holds. Every page of the session is shown."""
    arguments = {"command": "ls", "timeout": number, "delaySeconds": number, "offset": number, "limit": number}
    results: dict[str, dict[str, object]] = {
        "Bash": {"stdout": "a", "timedOutAfterMs": number},
        "CronCreate": {"id": "a", "humanSchedule": "daily", "nextFireAt": number},
        "Agent": {"status": "completed", "agentId": AGENT, "totalDurationMs": number, "totalTokens": number},
    }
    rows = transcript(prompt("Sort"), *(call(tool, arguments, "ok") for tool in results), reply("Done"))
    answers = [row for row in rows if isinstance(row, dict) and "tool_result" in str(row.get("message"))]
    for row, result in zip(answers, results.values(), strict=True):
        row["toolUseResult"] = result
    write(tmp_path / f"projects/-work/{SESSION}.jsonl", *rows)
    client = Client(tmp_path)
    for page in ("", "?calls=full&everything=1", "/agents", "/cost", "/timeline", "/share?format=html&preview=1"):
        assert client.get(f"{_PAGE}{page}").status_code == 200


def test_the_header_counts_what_is_shared_with_other_sessions(tmp_path: Path) -> None:
    """A session that contains copies from four others names three of them, and counts one more, in the singular."""
    folder, copies = tmp_path / "projects/-work-app", list[Row]()
    for number in range(4):
        pen = Pen(f"5e551010-0000-4000-8000-00000000000{number}")
        rows = transcript(prompt(f"Shelf {number}"), reply("Yes.", input=0, output=1), pen=pen)
        write(folder / f"{pen.session}.jsonl", *rows)
        copies += [{**row, "sessionId": SESSION} for row in rows if isinstance(row, dict)]
    write(folder / f"{SESSION}.jsonl", *copies)
    client = Client(tmp_path)
    text = re.sub("<[^>]*>", "", client.get(_PAGE).text)
    assert text.count("1 more token counted in") == 3
    assert "and in 1 more session" in text
    assert "and in 1 more sessions" not in text


def test_an_agent_in_the_background_has_a_readable_status(tmp_path: Path) -> None:
    """The transcript of an agent is missing, and nothing reports its end. The data keeps the recorded status."""
    task = {"description": "count", "prompt": "Count", "subagent_type": "Explore"}
    launched = call("Agent", task, "Launched", details={"agentId": AGENT, "status": "async_launched"})
    write(tmp_path / f"projects/-work/{SESSION}.jsonl", *transcript(prompt("Count"), launched, reply("Later.")))
    client = Client(tmp_path)
    page = client.get(f"{_PAGE}/agents").text
    assert "started in the background" in page
    assert "async_launched" not in page
    assert client.get(f"{_PAGE}/agents.json").json()[0]["status"] == "async_launched"


def test_the_timeline_has_no_pause_while_an_agent_works(tmp_path: Path) -> None:
    """The main agent waits for twenty minutes, in which its agent works. Then nothing happens for an hour."""

    def rows_at(minutes: Iterable[int], *parts: Part, pen: Pen) -> list[Row]:
        rows = [row for row in transcript(*parts, pen=pen) if isinstance(row, dict)]
        times = [(START + timedelta(minutes=minute)).isoformat() for minute in minutes]
        return [{**row, "timestamp": time} for row, time in zip(rows, times, strict=True)]

    task = {"description": "count", "prompt": "Count", "subagent_type": "Explore"}
    done = {"agentId": AGENT, "status": "completed"}
    main = (prompt("Count"), call("Agent", task, "2", details=done), reply("Two."), prompt("Thanks"), reply("Yes."))
    agent = (prompt("Count"), *(call("Bash", "ls", result="a") for _ in range(4)), reply("2"))
    folder = tmp_path / "projects/-work-app"
    write(folder / f"{SESSION}.jsonl", *rows_at([0, 0, 20, 20, 80, 80], *main, pen=Pen()))
    agent_rows = rows_at(range(1, 20, 2), *agent, pen=Pen(SESSION, agentId=AGENT, isSidechain=True))
    write(folder / SESSION / "subagents" / f"agent-{AGENT}.jsonl", *agent_rows)
    text = re.sub("<[^>]*>", "", Client(tmp_path).get(f"{_PAGE}/timeline").text)
    assert "Idle for 1h 00m" in text
    assert "Idle for 20m" not in text
    assert "20m 00s excluding 1 pause" in text


def test_the_legend_of_the_timeline_explains_what_is_drawn(tmp_path: Path) -> None:
    """And nothing else."""
    path = tmp_path / f"projects/-work-app/{SESSION}.jsonl"

    def legend() -> list[str]:
        page = Client(tmp_path).get(f"{_PAGE}/timeline").text
        items = re.search('<ul class="legend timeline-legend">(.*?)</ul>', page)
        assert items is not None
        return re.findall("<li[^>]*>([^<]*)", items[1])

    write(path, *transcript(prompt("Count"), reply("One.")))
    assert legend() == ["turn"]
    write(path, *transcript(prompt("Count"), call("Bash", "ls", result="no", error=True), reply("None.")))
    assert legend() == ["turn", "failure"]


def test_the_result_of_a_task_is_in_the_transcript_of_its_agent(tmp_path: Path) -> None:
    """A background task of an agent reports its result to that agent, also on the page of the main agent."""
    start = call("Bash", "sleep 9", result="Running in the background with ID: b7", details={"backgroundTaskId": "b7"})
    pen = Pen(SESSION, agentId=AGENT, isSidechain=True)
    rows = transcript(prompt("Count the shelves"), start, pen=pen)
    (call_id,) = re.findall(r'"id":"(toolu_[^"]+)"', lines(*rows).decode())
    note = f"<task-notification><task-id>b7</task-id><tool-use-id>{call_id}</tool-use-id></task-notification>"
    rows += transcript(prompt(note), reply("Two"), pen=pen)
    home = write_home(tmp_path / "home", session_rows())
    write(home / "projects" / "-work-app" / SESSION / "subagents" / f"agent-{AGENT}.jsonl", *rows)
    client = Client(home)
    for page in (_PAGE, f"{_PAGE}/agent/{AGENT}"):
        (link,) = re.findall(r'<a href="([^"]+)" class="quiet">Result</a>', client.get(page).text)
        assert link.partition("#")[2] == f"{AGENT}.L4"


def test_the_header_shows_figures_and_a_resume_command(client: Client) -> None:
    """The header has title, project and figures, and a resume command that a shell parses as intended."""
    text = client.get(_PAGE).text
    data = client.get(f"{_PAGE}.json").json()
    assert (data["turns"], data["calls"], data["project"]) == (3, 3, "/work/app")
    assert [agent["agent"] for agent in data["agents"]] == [AGENT]
    assert float(data["amount"]) > 0
    assert data["context"] == 1007
    command = unescape(text.partition('<code id="resume">')[2].partition("</code>")[0])
    (home,) = client.pool.homes
    config = f"CLAUDE_CONFIG_DIR={home.path}"
    assert shlex.split(command) == ["cd", "/work/app", "&&", config, "claude", "--resume", SESSION]


@pytest.mark.parametrize("cwd", ["/tmp/a b; rm -rf $HOME", "/tmp/`id`", "/tmp/'\"", "relative", "/tmp/\nid", "-rf"])  # noqa: S108 - words
def test_a_hostile_directory_cannot_escape_the_command(tmp_path: Path, cwd: str) -> None:
    """The command contains the directory as one word, or is not shown."""
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
def test_a_windows_session_is_resumed_in_powershell(tmp_path: Path, cwd: str, command: str) -> None:
    """A Windows path is quoted for PowerShell, and the header has the command with a copy button."""
    rows = transcript(prompt("hello"), reply("yes"), pen=Pen(cwd=cwd))
    client = Client(write_home(tmp_path / "home", rows))
    assert client.get(f"{_PAGE}.json").json()["resume"] == f"{command}{SESSION}"
    header = client.get(_PAGE).text.partition('<code id="resume">')[2]
    assert unescape(header.partition("</code>")[0]) == f"{command}{SESSION}"
    assert 'data-copy="resume"' in header.partition("</p>")[0]


def test_resumes_in_the_directory_of_the_project(tmp_path: Path) -> None:
    """Of all directories that a session was in, the one that its folder is named after is used."""
    rows = transcript(*(part for number in range(3) for part in (prompt(f"Shelf {number}"), reply("yes"))))
    for row, cwd in zip(
        rows, ("/elsewhere", "/elsewhere", "/work/app", "/work/app", "/work/app/deep", "/"), strict=True
    ):
        assert isinstance(row, dict)
        row["cwd"] = cwd
    data = Client(write_home(tmp_path / "home", rows)).get(f"{_PAGE}.json").json()
    assert data["resume"].startswith("cd /work/app && ")


def test_the_resume_command_names_an_unusual_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claude Code finds a session of another home only if CLAUDE_CONFIG_DIR names that home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    rows = transcript(prompt("hello"), reply("yes"))
    default_command = Client(write_home(tmp_path / ".claude", rows)).get(f"{_PAGE}.json").json()["resume"]
    assert default_command == f"cd /work/app && claude --resume {SESSION}"
    other_home = tmp_path / "another home"
    other_command = Client(write_home(other_home, rows)).get(f"{_PAGE}.json").json()["resume"]
    assert other_command == f"cd /work/app && CLAUDE_CONFIG_DIR='{other_home}' claude --resume {SESSION}"


def test_every_item_is_in_exactly_one_section(long_client: Client) -> None:
    """The sections together contain every item once, in order."""
    shape = long_client.get(f"{_PAGE}/shape.json").json()
    assert len(shape["sections"]) > 3
    all_anchors: list[str] = []
    for section in shape["sections"]:
        part = long_client.get(f"{_PAGE}/part/{section['number']}", x_fragment="1").text
        anchors = [anchor for anchor in _anchors(part) if not anchor.startswith(AGENT)]
        assert (anchors[0], len(anchors)) == (section["first"], section["items"])
        all_anchors += anchors
    assert len(all_anchors) == len(set(all_anchors)) == shape["items"]


@pytest.mark.sample(3)
@pytest.mark.parametrize("section", [1, 2, 5])
def test_fills_the_sections_around_the_requested_one(long_client: Client, section: int) -> None:
    """Three sections are filled. Each of the others is a link to the page that has it filled."""
    text = long_client.get(f"{_PAGE}?section={section}").text
    sections = _SECTION.findall(text)
    assert len(sections) == len(long_client.get(f"{_PAGE}/shape.json").json()["sections"])
    first = long_client.get(f"{_PAGE}/shape.json").json()["sections"][section - 1]["first"]
    assert first in _anchors(text)
    links = [unescape(link) for link in re.findall(r'href="([^"]*)"[^>]*class="unfilled"', text)]
    assert len(links) == len(sections) - 3
    number = int(links[-1].partition("section=")[2].partition("#")[0])
    assert links[-1].partition("#")[2] in _anchors(long_client.get(links[-1].partition("#")[0]).text)
    assert number == len(sections)


def test_a_deep_link_works_without_a_script(long_client: Client) -> None:
    """`?at=` fills the section of the entry, wherever it is."""
    last = long_client.get(f"{_PAGE}/shape.json").json()["sections"][-1]
    assert last["first"] not in _anchors(long_client.get(_PAGE).text)
    assert last["first"] in _anchors(long_client.get(f"{_PAGE}?at={last['first']}").text)
    position = long_client.get(f"{_PAGE}/where.json?anchor={last['first']}").json()
    assert (position["section"], position["anchor"], position["near"]) == (last["number"], last["first"], False)


def test_where_json_answers_unknown_anchors_without_an_error(client: Client) -> None:
    """A link may be old or mistyped. An answer without a section avoids an error in the browser's console."""
    for anchor in ("L99999", "nobody.L3", "nonsense"):
        answer = client.get(f"{_PAGE}/where.json?anchor={anchor}")
        assert (answer.status_code, answer.json()["section"]) == (200, None)


def test_about_contains_everything_but_the_conversation(long_client: Client) -> None:
    """An open page fetches header, turns and map again without the conversation."""
    about = long_client.get(f"{_PAGE}/about?turn=200", x_fragment="1").text
    assert [name for name in ("header", "nav") if f"<{name} " not in about] == []
    assert "<article" not in about
    assert 'data-turn="200"' in about
    assert f'data-version="{long_client.get(f"{_PAGE}.json").json()["version"]}"' in about


def test_the_panel_is_a_link_without_a_script(client: Client) -> None:
    """What a script shows beside the conversation has its own page. Without a script, there is a link to it."""
    text = client.get(f"{_PAGE}?state=L3").text
    noscript = text.partition("<noscript>")[2].partition("</noscript>")[0]
    assert f'href="{_PAGE}/state/L3"' in noscript
    assert f'href="{_PAGE}/entry/L3"' in client.get(f"{_PAGE}?raw=L3").text.partition("<noscript>")[2]
    assert "<noscript>" not in client.get(_PAGE).text


def test_redirects_a_result_to_its_call(client: Client) -> None:
    """The line of a result has no item of its own, so its link goes to the call."""
    answer = client.get(f"{_PAGE}?at=L4#L4")
    assert answer.status_code == 302
    assert answer.headers["location"] == f"{_PAGE}?at=L3#L3"
    assert client.get(f"{_PAGE}/where.json?anchor=L4").json()["anchor"] == "L3"


def test_a_link_to_a_filtered_entry_leads_near_it(client: Client) -> None:
    """A link to an entry that the filter hides is not an error: the page starts near it."""
    assert client.get(f"{_PAGE}?kind=prompt&at=L3").status_code == 200
    position = client.get(f"{_PAGE}/where.json?kind=prompt&anchor=L3").json()
    assert (position["anchor"], position["near"]) == ("L1", True)


def test_unknown_anchors_have_no_section(client: Client) -> None:
    """Following an old link is not an error."""
    for anchor in ("L99999", "nobody.L1", "x"):
        assert client.get(f"{_PAGE}/where.json?anchor={anchor}").json()["section"] is None


def test_an_agents_entry_is_below_its_call_and_on_its_page(client: Client) -> None:
    """A short agent is shown below its call. It also has its own page, which leads back."""
    position = client.get(f"{_PAGE}/where.json?anchor={AGENT}.L2").json()
    assert position["anchor"] == f"{AGENT}.L2"
    assert f'id="{AGENT}.L2"' in client.get(f"{_PAGE}/part/{position['section']}").text
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
def test_filters_are_in_the_url_and_kept_by_links(client: Client, query: str, kinds: set[str]) -> None:
    """A filtered page shows only those kinds, and every link to one of its entries keeps the filter."""
    text = client.get(f"{_PAGE}?{query}").text
    assert set(re.findall(r'<article class="item (\w+)', text)) == kinds
    links = [unescape(link) for link in re.findall(r'<a href="([^"]*)" class="at"', text)]
    assert links
    assert all(query in link for link in links)


def test_serves_a_picture_with_its_type(client: Client) -> None:
    """A PNG is served as image/png, byte for byte."""
    answer = client.get(f"{_PAGE}/image/L1/1")
    assert answer.headers["content-type"] == "image/png"
    assert answer.content == base64.b64decode(PIXEL)


def test_an_entry_shows_its_line(client: Client) -> None:
    """The page of an entry has its JSON. Its data has the original line."""
    assert "parentUuid" in client.get(f"{_PAGE}/entry/L1").text
    assert '"type":"user"' in client.get(f"{_PAGE}/entry/L1.json").json()["text"]


def test_serves_a_fragment_to_scripts_and_a_page_to_people(client: Client) -> None:
    """The same URL serves both."""
    assert "<html" in client.get(f"{_PAGE}/entry/L1").text
    assert "<html" not in client.get(f"{_PAGE}/entry/L1", x_fragment="1").text
    assert "<html" not in client.get(f"{_PAGE}/entry/L1", sec_fetch_dest="empty").text


def test_the_page_of_a_call_is_complete(tmp_path: Path) -> None:
    """The page of a call truncates nothing, however long the output. Its id may contain anything."""
    output = "\n".join(f"row {number}" for number in range(3000))
    rows = transcript(prompt("x"), call("Bash", "seq", result=output))
    content = re.sub(rb"toolu_01\w+", b"a/b%2f\\\\u003cc\\\\u003e", lines(*rows))
    client = Client(write_home(tmp_path / "home", [content]))
    page = client.get(_PAGE).text
    assert "row 2999" not in page
    links = {unescape(link) for link in re.findall(rf'href="({_PAGE}/call/[^"]*)"', page)}
    assert len(links) == 1
    assert "row 2999" in client.get(links.pop()).text


@pytest.mark.parametrize("words", ["creme BRULEE", "CRÈME", "sorted shelf 3"])
def test_finds_words_regardless_of_case_and_accents(client: Client, words: str) -> None:
    """Each hit names an item of the page and has the text around it."""
    result = client.get(f"{_PAGE}/find.json?q={words}").json()
    anchors = _anchors(client.get(_PAGE).text)
    assert result["total"] == len(result["hits"]) > 0
    for hit in result["hits"]:
        assert hit["anchor"] in anchors
        assert fold_text(words) in fold_text(hit["snippet"])


@given(text=st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
@settings(max_examples=scale_examples(40))
def test_find_accepts_any_text(client: Client, text: str) -> None:
    """Any text typed into the box gives hits, no hits, or an error message."""
    assert client.get(f"{_PAGE}/find.json?q={quote(text)}").status_code in {200, 400}


def test_markdown_of_a_session_and_of_an_entry(client: Client) -> None:
    """Both are plain text. The Markdown of an entry contains only that entry."""
    answer = client.get(f"{_PAGE}/markdown")
    assert answer.headers["content-type"].startswith("text/markdown")
    tokens = client.get(f"{_PAGE}.json").json()["tokens"]
    assert f"- spent: {tokens / 1000:.1f}k tokens, $" in answer.text
    assert "There are two." in answer.text
    entry = client.get(f"{_PAGE}/markdown?anchor=L2").text
    assert entry == "It is **one** pixel.\n"
    assert "ls shelves" in client.get(f"{_PAGE}/markdown?anchor=L4").text


def test_shows_the_state_at_an_entry_and_at_the_end(client: Client) -> None:
    """The state is shown at both, and also compared with another entry."""
    for below in ("end", "L3", "L9?against=L3"):
        answer = client.get(f"{_PAGE}/state/{below}")
        assert answer.status_code == 200
        assert "/work/app" in answer.text


def test_lists_the_turns_around_one(long_client: Client) -> None:
    """The outline is bounded around the requested turn."""
    numbers = [
        int(number)
        for number in re.findall(r'data-turn="(\d+)" data-anchor', long_client.get(f"{_PAGE}/turns?around=200").text)
    ]
    assert numbers == list(range(150, 251))
    assert "turns 1 to" not in long_client.get(f"{_PAGE}/turns?around=200").text
    assert long_client.get(f"{_PAGE}/turns?around=0").text.count("<li ") == 51


def test_the_map_is_small_and_covers_every_item(long_client: Client) -> None:
    """The map has few elements, and its bands cover every item once."""
    text = long_client.get(_PAGE).text
    strip = text.partition('class="usage-strip"')[2].partition("</nav>")[0]
    assert len(re.findall(r"<[a-z]", strip)) <= 150
    bands = [
        (int(y), int(height)) for y, height in re.findall(r'y="(\d+)" width="[^"]*" height="(\d+)" class="band', strip)
    ]
    assert sum(height for _, height in bands) == long_client.get(f"{_PAGE}/shape.json").json()["items"]
    assert all(bands[at][0] + bands[at][1] == bands[at + 1][0] for at in range(len(bands) - 1))
    assert long_client.get(f"{_PAGE}/along").status_code == 200
    assert sum(row["requests"] for row in long_client.get(f"{_PAGE}/along.json").json()) == 404


def test_rows_of_a_journal_have_unique_anchors(tmp_path: Path) -> None:
    """A workflow's journal also counts its lines from 1. Its anchors are unique, and each leads to its row."""
    home = write_home(tmp_path / "home", session_rows())
    run = home / "projects" / "-work-app" / SESSION / "subagents" / "workflows" / "wf_1"
    write(run / "journal.jsonl", *({"type": "started", "key": f"k{at}", "agentId": AGENT} for at in range(3)))
    client = Client(home)
    anchors = _anchors(client.get(f"{_PAGE}?everything=1").text)
    assert len(anchors) == len(set(anchors))
    assert "wf_1-journal.L2" in anchors
    assert "k1" in client.get(f"{_PAGE}/entry/wf_1-journal.L2").text
    assert client.get(f"{_PAGE}?everything=1&at=wf_1-journal.L2").status_code == 200


def test_finds_an_agent_in_another_folder(tmp_path: Path) -> None:
    """Old versions put agents beside sessions, and not always beside their own. Their links still work."""
    home = write_home(tmp_path / "home", session_rows())
    rows = transcript(prompt("Alone"), reply("I am alone"), pen=Pen(agentId="f'<00d", isSidechain=True))
    write(home / "projects" / "-elsewhere" / "agent-f'<00d.jsonl", *rows)
    client = Client(home)
    answer = client.get(f"{_PAGE}/agent/f__00d?at=f__00d.L2")
    assert answer.status_code == 302
    assert "I am alone" in client.get(answer.headers["location"].partition("#")[0]).text


def test_finds_a_session_that_only_its_rows_name(tmp_path: Path) -> None:
    """A transcript with another file name is listed with its calls, and the link leads to it."""
    home = write_home(tmp_path / "home", session_rows())
    for other in ("0" * 8 + "-0000-4000-8000-000000000002", "</script>~2F%2F"):
        rows = transcript(prompt("notes"), reply(f"noted {other[:8]}"), pen=Pen(other))
        write(home / "projects" / "-work-app" / f"notes-{other[:2].replace('/', '-')}.jsonl", *rows)
        page = Client(home).get(urls.session_url(other))
        assert "noted" in page.text
        assert "</script>~" not in page.text


def test_splits_a_very_long_session_into_parts(long_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has a limited number of sections. Its parts link to each other, and an anchor finds its part."""
    monkeypatch.setattr(view, "SECTIONS_PER_PART", 2)
    sections = long_client.get(f"{_PAGE}/shape.json").json()["sections"]
    text = long_client.get(_PAGE).text
    assert _SECTION.findall(text) == ["1", "2"]
    assert f"{_PAGE}?part=2" in text
    last = sections[-1]
    page = long_client.get(f"{_PAGE}?at={last['first']}").text
    assert last["first"] in _anchors(page)
    assert f'data-part="{last["part"]}"' in page


def test_a_changed_session_is_read_again(tmp_path: Path) -> None:
    """An appended line is there with the next request. Unchanged sections keep their marks."""
    rows = session_rows(turns=60)
    home = write_home(tmp_path / "home", rows)
    client = Client(home)
    before = client.get(f"{_PAGE}/shape.json").json()
    path = next(home.glob(f"projects/*/{SESSION}.jsonl"))
    pen = Pen()
    more: list[Row | bytes] = transcript(prompt("One more thing", parentUuid=None), pen=pen)
    with path.open("ab") as file:
        file.write(lines(*_rows_after(rows, more)))
    after = client.get(f"{_PAGE}/shape.json").json()
    assert after["items"] == before["items"] + 1
    assert after["version"] != before["version"]
    assert [section["mark"] for section in after["sections"][:-1]] == [
        section["mark"] for section in before["sections"][:-1]
    ]
    assert after["sections"][-1]["mark"] != before["sections"][-1]["mark"]


def _rows_after(rows: list[Row | bytes], more: list[Row | bytes]) -> list[Row]:
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


def test_shows_the_beginning_of_a_long_session_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long session that was not read yet shows its beginning at once. A link into it waits for all of it."""
    monkeypatch.setattr("threadline.web.session.page.LONG_BYTES", 1000)
    client = Client(write_home(tmp_path / "home", session_rows(turns=400)))
    first = client.get(_PAGE).text
    assert 'data-partial="1"' in first
    assert "Loading the rest of this session" in first
    assert _anchors(first)[0] == "L1"
    complete = client.get(f"{_PAGE}?whole=1").text
    assert "data-partial" not in complete
    assert _anchors(complete)[:3] == _anchors(first)[:3]
    assert "data-partial" not in client.get(_PAGE).text
    assert client.get(f"{_PAGE}?at=L500").status_code == 200


def test_the_error_filter_includes_errors_of_agents(tmp_path: Path) -> None:
    """A successful call is shown with only the failed calls of the agent that it started."""
    home = write_home(tmp_path / "home", session_rows())
    pen = Pen(SESSION, agentId=AGENT, isSidechain=True)
    agent_rows = transcript(
        prompt("Count"),
        call("Bash", "true", result="fine"),
        call("Bash", "false", result="Exit code 1: inside", error=True),
        reply("Two shelves"),
        pen=pen,
    )
    folder = home / "projects" / "-work-app" / SESSION / "subagents"
    write(folder / f"agent-{AGENT}.jsonl", *agent_rows)
    text = Client(home).get(f"{_PAGE}?errors=1").text
    agent_anchors = [anchor for anchor in _anchors(text) if anchor.startswith(AGENT)]
    assert len(agent_anchors) == 1
    agent = text.partition('<div class="agent"')[2]
    assert "<details open" in agent.partition("<summary")[0]
    assert len(_anchors(text)) == 3


def test_context_and_cost_add_up(tmp_path: Path) -> None:
    """The rows of turns, agents and anything else add up to the total, which the header shows too."""
    home = write_home(tmp_path / "home", session_rows())
    pen = Pen(SESSION, agentId=AGENT, isSidechain=True)
    agent_rows = transcript(prompt("Count"), reply("Two", output=900, message={"id": "msg_of_the_agent"}), pen=pen)
    write(home / "projects" / "-work-app" / SESSION / "subagents" / f"agent-{AGENT}.jsonl", *agent_rows)
    client = Client(home)
    text = client.get(f"{_PAGE}/along").text
    amounts = [float(amount) for amount in re.findall(r"<t[dh][^>]*>\$(-?[0-9.]+)</t[dh]>", text)]
    rows, total = amounts[:-1], amounts[-1]
    assert sum(rows) == pytest.approx(total, abs=0.005 * len(rows))
    assert total == pytest.approx(float(client.get(f"{_PAGE}.json").json()["amount"]), abs=0.005)
    assert f"{_PAGE}/agent/{AGENT}" in text
    assert "<tfoot>" in text
