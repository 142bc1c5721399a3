"""Asks each interface each question about some homes. Answers are plain values that can be compared.

A session is named by its id, or by its file's name if the path has no id. Answers about sessions are sorted pairs of
that name and a value, because two transcripts may have the same session.
"""

from __future__ import annotations

import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from tests.interfaces import entry_points

import threadline
from threadline.model.session import UNTYPED_ACTS

Answers = dict[str, Any]
_SUMS = ("charges", "input", "output", "cache_write", "cache_read", "web_searches", "unpriced", "lower_bound")
_LIMIT = 500
_FILE_LIST = f"/files.json?limit={_LIMIT}"
_EDITED_FILES = 3
"""How many files are asked for their edits."""
_KEYS = (
    *(("day",), ("session", "model"), ("project", "branch"), ("agent",), ("agent-type",), ("tool",)),
    *(("service-tier",), ("home", "machine")),
)
_SQL = {
    "sessions": "SELECT session, transcript, title, agents, first, last, turns, entries FROM sessions",
    "calls": "SELECT call, tool, COALESCE(outcome, 'pending') AS outcome FROM calls",
    "files": "SELECT path FROM files",
    "problems": "SELECT kind FROM problems",
    "prompts": "SELECT session, kind, text FROM prompts",
    "links": "SELECT session, continues FROM continuations WHERE continues IS NOT NULL",
}


def command_with_index(homes: Sequence[Path]) -> Answers:
    """Ask `threadline COMMAND --json`."""
    return {
        **_row_answers(rows := _run_json(homes, "list")),
        "tokens of rows": _row_tokens(rows),
        "tokens of sessions": _row_tokens(_listed_only(rows)),
        **_session_lists(homes),
        **_overview_answers(_run_json(homes)),
        **_usage_answers(_run_json(homes, "usage", "--by", "session")),
        "calls": _unique_calls((row["call"], row["tool"], row["outcome"]) for row in _run_json(homes, "calls")),
        "files": (files := sorted({row["path"] for row in _run_json(homes, "files")})),
        "edits": _unique_edits(
            row for path in files[:_EDITED_FILES] for row in _run_json(homes, "files", path, "--log") or ()
        ),
        **_problem_answers(_run_json(homes, "doctor")["problems"]),
    }


def command_without_index(homes: Sequence[Path]) -> Answers:
    """Ask the same with `THREADLINE_INDEX=off`.

    Calls and files are asked session by session, because only the index lists them for all sessions.
    """
    paths = _main_transcripts(homes)
    calls = [row for path in paths for row in _run_json(homes, "calls", path, index=False)]
    files = [row for path in paths for row in _run_json(homes, "files", path, index=False)]
    touched = sorted({row["path"] for row in files if any(map(_is_touch, row["evidence"]))})
    edits = (
        row
        for file in touched[:_EDITED_FILES]
        for path in paths
        for row in _run_json(homes, "files", file, "--log", "--session", path, index=False)
    )
    return {
        **_row_answers(rows := _run_json(homes, "list", index=False)),
        "tokens of rows": _row_tokens(rows),
        "tokens of sessions": _row_tokens(_listed_only(rows)),
        **_session_lists(homes, index=False),
        **_overview_answers(_run_json(homes, index=False)),
        **_usage_answers(_run_json(homes, "usage", "--by", "session", index=False)),
        "calls": _unique_calls((row["call"], row["tool"], row["outcome"]) for row in calls),
        "files": touched,
        "edits": _unique_edits(edits),
        **_problem_answers(_run_json(homes, "doctor", index=False)["problems"]),
    }


def _session_lists(homes: Sequence[Path], *, index: bool = True) -> Answers:
    """Return lists of some sessions, in order."""
    newest = _listed_only(_run_json(homes, "list", "--limit", "2", index=index))
    later = _run_json(homes, "list", "--since", "2026-06-01T12:00", index=index)
    return {"newest sessions": list(map(_session_name, newest)), "later sessions": list(map(_session_name, later))}


def tree(homes: Sequence[Path]) -> Answers:
    """Ask `threadline tree SESSION --json` and `todos`, which read the whole session."""
    rows = _listed_only(_run_json(homes, "list"))
    trees = [(_session_name(row), _run_json(homes, "tree", row["path"])) for row in rows]
    return {
        **{name: sorted((session, data[name]) for session, data in trees) for name in ("agents", "turns")},
        "lists": sorted(
            (_session_name(row), [(item["source"], item["text"]) for item in _run_json(homes, "todos", row["path"])])
            for row in rows
        ),
    }


def _run_json(homes: Sequence[Path], *arguments: str | Path, index: bool = True) -> Any:
    environment = {} if index else {"THREADLINE_INDEX": "off"}
    options = [option for home in homes for option in ("--home", home)]
    return entry_points.run_command(*arguments, "--json", *options, environment=environment).json or {}


def web(homes: Sequence[Path]) -> dict[str, Answers]:
    """Ask the data of the pages: `web` are lists, `session page` is the page of each session."""
    server = entry_points.WebClient(*homes)
    try:
        all_rows = server.json(f"/sessions.json?limit={_LIMIT}")["sessions"]
        rows = _listed_only(all_rows)
        all_pages = [server.json(f"{row['address']}/about.json") for row in all_rows]
        pages = [(_session_name(row), server.json(f"{row['address']}/about.json")) for row in rows]
        activity = server.json("/index.json")["spans"][-1]["done"]
        calls = server.json(f"/calls.json?limit={_LIMIT}")["calls"]
        lists = {
            **_row_answers(rows, but=("entries",)),
            "tokens of rows": _row_tokens(all_rows),
            "tokens of sessions": _row_tokens(rows),
            **_usage_answers(server.json(f"/usage.json?since=all&by=session&limit={_LIMIT}")),
            "number of sessions": activity["sessions"],
            "number of agents": activity["agents"],
            "number of calls": activity["calls"],
            "calls": _unique_calls((call["call"], call["tool"], call["outcome"]) for call in calls),
            "files": (files := sorted({row["file"]["path"] for row in server.json(_FILE_LIST)["files"]})),
            "edits": _unique_edits(
                row["edit"]
                for path in files[:_EDITED_FILES]
                for row in server.json(f"/files/log.json?limit={_LIMIT}&path={quote(path)}")["edits"]
            ),
            **_problem_answers((examined := _doctor_problems(server))["examination"]["problems"]),
        }
        states = [(_session_name(row), server.json(f"{row['address']}/state/end.json")) for row in rows]
        known = {"field problems": _field_problems(row["kind"] for row in examined["known"])}
        return {
            "web": lists,
            "doctor page": known,
            "session page": {
                **_page_answers(pages),
                **_list_answers(states),
                "tokens of rows": _row_tokens(
                    {**row, "tokens": page["tokens"]} for row, page in zip(all_rows, all_pages, strict=True)
                ),
            },
        }
    finally:
        server.close()


def _page_answers(pages: Sequence[tuple[str, Mapping[str, Any]]]) -> Answers:
    values: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        "title": lambda page: _json_text(page["title"]),
        "agents": lambda page: sum(agent["side"] is None for agent in page["agents"]),
        "started": lambda page: _iso_time(page["started"]),
        "ended": lambda page: _iso_time(page["ended"]),
        "duration": lambda page: _duration(page["started"], page["ended"]),
        "turns": lambda page: page["turns"],
    }
    return {name: sorted((session, value(page)) for session, page in pages) for name, value in values.items()}


def _doctor_problems(server: entry_points.WebClient) -> Mapping[str, Any]:
    """Return the data of the doctor page once it has read everything."""
    deadline = time.monotonic() + 60
    while (data := server.json("/doctor.json"))["state"] == "at work" and time.monotonic() < deadline:
        time.sleep(0.002)
    result: Mapping[str, Any] = data
    return result


def library_with_index(homes: Sequence[Path]) -> dict[str, Answers]:
    """Ask `threadline.open` with an index that is up to date. `sql` is what its tables contain."""
    with threadline.open(homes) as archive:
        archive.refresh()
        tables = {name: archive.sql(query) for name, query in _SQL.items()}
        sessions = [{**row, "path": row["transcript"]} for row in tables["sessions"]]
        library = {
            **_library_answers(archive),
            "calls": _unique_calls((call.id, call.tool, str(call.outcome)) for call in archive.calls(limit=None)),
            "summarized sessions": _summarized_sessions(archive),
            "number of calls": len(archive.calls(limit=None)),
            "files": (files := sorted({file.path for file in archive.files(limit=None)})),
            "edits": _unique_edits(
                msgspec.to_builtins(edit, enc_hook=str)
                for path in files[:_EDITED_FILES]
                for edit in archive.file_log(path)
            ),
        }
        sql = {
            **_row_answers(sessions, but=("agents with or without a transcript",)),
            "summarized sessions": sorted({(row["session"], row["continues"]) for row in tables["links"]}),
            "calls": _unique_calls((row["call"], row["tool"], row["outcome"]) for row in tables["calls"]),
            "number of calls": len(tables["calls"]),
            "files": sorted({row["path"] for row in tables["files"]}),
            "field problems": _field_problems(row["kind"] for row in tables["problems"]),
            "prompts": _unique_prompts(tables["prompts"]),
        }
        return {"library with index": library, "sql": sql, "tables": _table_answers(archive)}


def _table_answers(archive: threadline.Archive) -> Answers:
    """Ask the library's tables, whose records are the rows of data frames."""
    sessions, calls, charges = (table.records() for table in (archive.sessions(), archive.calls(), archive.ledger()))
    spent: dict[str, Decimal] = {}
    for charge in charges:
        if charge["amount"] is not None:
            name = charge["session"] or "(none)"
            spent[name] = spent.get(name, Decimal(0)) + charge["amount"]
    entries = Counter(row["place"].rpartition(":")[0] for row in archive.entries().records())
    return {
        **_row_answers([{**row, "first": _iso_time(row["first"]), "last": _iso_time(row["last"])} for row in sessions]),
        "entries": sorted((_session_name(row), entries[row["path"]]) for row in sessions),
        "calls": _unique_calls((row["call"], row["tool"], row["outcome"]) for row in calls),
        "files": sorted({row["path"] for row in archive.files().records()}),
        "field problems": _field_problems(row["kind"] for row in archive.problems().records()),
        "prompts": _unique_prompts(archive.prompts().records()),
        "spent by session": sorted((str(name), _plain(amount)) for name, amount in spent.items()),
    }


def _unique_prompts(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Return the session, kind and beginning of prompts, each once. The index has the first 2,000 characters."""
    return sorted({(str(row["session"]), str(row["kind"]), _json_text(row["text"])[:2000]) for row in rows})


def library_without_index(homes: Sequence[Path]) -> Answers:
    """Ask `threadline.open(index=False)`."""
    with threadline.open(homes, index=False) as archive:
        return {**_library_answers(archive), "summarized sessions": _summarized_sessions(archive)}


def _summarized_sessions(archive: threadline.Archive) -> list[tuple[str, str]]:
    """Return the pairs of which one session begins with a summary of the other, as all main transcripts say."""
    links = archive.links()
    return _summary_pairs(
        threadline.read(transcript.path, homes=archive.homes, links=links)
        for home in archive.found
        for transcript in home.transcripts
        if str(transcript.kind) == "main"
    )


def _summary_pairs(sessions: Iterable[threadline.Session]) -> list[tuple[str, str]]:
    links = [(session, link) for session in sessions for link in session.continuations if link.session is not None]
    pairs = (
        (str(link.session), str(session.id)) if link.forward else (str(session.id), str(link.session))
        for session, link in links
        if str(link.kind) == "summary"
    )
    return sorted(set(pairs))


def _library_answers(archive: threadline.Archive) -> Answers:
    overview = archive.overview()
    ledger = archive.ledger()
    return {
        "overview": overview,
        "charges": sorted(
            (
                charge.message,
                charge.part,
                charge.session or "",
                charge.project,
                str(charge.place),
                str(charge.amount),
                *map(str, charge.flags),
            )
            for charge in ledger
        ),
        **{f"ledger by {', '.join(keys)}": ledger.by(*keys, zone="Asia/Kathmandu") for keys in _KEYS},
        **_row_answers(msgspec.to_builtins(archive.sessions().sessions, enc_hook=str)),
        "tokens of rows": _spending_tokens(archive),
        "number of sessions": overview.sessions,
        "number of agents": overview.agents,
        "ledger": _spent_by_session((row.keys["session"], row) for row in ledger.by("session")),
        "spent by session": sorted(
            (row.keys["session"], _plain(row.amount)) for row in ledger.by("session") if row.amount is not None
        ),
        "prompts": _unique_prompts(archive.prompts().records()),
        **_problem_answers(msgspec.to_builtins(archive.examine().problems)),
    }


def read_sessions(homes: Sequence[Path]) -> Answers:
    """Ask `threadline.read` about each listed session, and about calls, files and problems of every main transcript."""
    with threadline.open(homes, index=False) as archive:
        listed = {summary.path for summary in archive.sessions().sessions}
    others = archive.homes if len(homes) > 1 else ()  # `read` finds a session's own home, but not other homes
    all_sessions = [(path, threadline.read(path, homes=others)) for path in _main_transcripts(homes)]
    listed_sessions = [(_file_name(path), session) for path, session in all_sessions if path in listed]
    transcripts = _transcripts(homes)
    mains = {transcript.path for transcript in transcripts if str(transcript.kind) == "main"}
    values: dict[str, Callable[[threadline.Session], Any]] = {
        "title": lambda session: _json_text(session.title.text),
        "agents": lambda session: sum(agent.side is None for agent in session.agents),
        "started": lambda session: _iso_time(session.started),
        "ended": lambda session: _iso_time(session.ended),
        "duration": lambda session: _seconds(session.wall_time),
        "turns": lambda session: sum(turn.act is not None for turn in session.turns),
        "entries": lambda session: sum(1 for _ in threadline.entries(session.path or "")),
    }
    states = [(name, msgspec.to_builtins(session.at(), enc_hook=str)) for name, session in listed_sessions]
    answers = {
        name: sorted((named, value(session)) for named, session in listed_sessions) for name, value in values.items()
    }
    # Transcripts that belong to no session are missing from every session.
    covered = {entry.line.transcript for _, session in all_sessions for entry in session}
    is_complete = all(str(file.path) in covered for file in transcripts if file.size)
    files = sorted(
        {
            path
            for _, session in all_sessions
            for path, file in session.at().files.items()
            if any(_is_touch({"how": evidence.how}) for evidence in file.evidence)
        }
    )
    problems = sorted(str(problem.kind) for _, session in all_sessions for problem in session.problems)
    counts = {
        "number of agents": sum(count for _, count in answers["agents"]),
        "problems": problems,
        "field problems": _field_problems(problems),
    }
    return {
        "sessions": sorted(name for name, _ in listed_sessions),
        "tokens of sessions": _read_tokens(listed_sessions),
        "summarized sessions": _summary_pairs(session for _, session in all_sessions),
        "number of sessions": len({name if _is_uuid(name) else session.path for name, session in listed_sessions}),
        **answers,
        **(counts if is_complete else {}),
        "calls": _unique_calls(
            (call.id, call.tool, str(call.outcome)) for _, session in all_sessions for call in session.calls
        ),
        "files": files,
        **_list_answers(states),
        "prompts": _unique_prompts(
            {"session": session.id, "kind": act.kind, "text": act.text}
            for path, session in all_sessions
            if path in mains
            for act in session.acts
            if act.kind not in UNTYPED_ACTS
        ),
        "edits": _unique_edits(
            msgspec.to_builtins(edit, enc_hook=str)
            for path in files[:_EDITED_FILES]
            for _, session in all_sessions
            for edit in session.file_log(path)
        ),
        "ledger": _spent_by_session((session.id, session.ledger.total) for _, session in listed_sessions),
    }


def _main_transcripts(homes: Sequence[Path]) -> list[Path]:
    """Return the transcripts that are read as sessions: main ones, and those whose name is not a session id."""
    return sorted(transcript.path for transcript in _transcripts(homes) if str(transcript.kind) in {"main", "other"})


def _transcripts(homes: Sequence[Path]) -> list[threadline.Transcript]:
    owners: dict[str, Path] = {}
    for home in homes:  # a folder or a URI
        owners.setdefault(os.path.realpath(f"{home}/projects"), home)  # homes may share their projects
    return [transcript for home in owners.values() for transcript in threadline.look(home).transcripts]


def _spending_tokens(archive: threadline.Archive) -> list[tuple[str, int]]:
    """Return what each session and each transcript without one spent; the sum is the ledger's."""
    spending = archive.spending()
    sessions = archive.sessions()
    unlisted = spending.unlisted({session.path for session in sessions})
    tokens = [(str(session.id), spending.of(session.path).tokens) for session in sessions]
    tokens += [(str(spent.session), spent.total.tokens) for spent in unlisted]
    assert sum(number for _, number in tokens) == archive.ledger().total.tokens
    return sorted(pair for pair in tokens if pair[1])


def _read_tokens(sessions: Iterable[tuple[str, threadline.Session]]) -> list[tuple[str, int]]:
    tokens = [(str(session.id), session.ledger.total.tokens) for _, session in sessions]
    return sorted(pair for pair in tokens if pair[1])


def _row_tokens(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    return sorted((str(row["session"]), row["tokens"]) for row in rows if row["tokens"])


def _listed_only(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows that are sessions: other transcripts in which something was spent are listed after them."""
    return [row for row in rows if row.get("unlisted") is None]


def _row_answers(rows: Iterable[Mapping[str, Any]], but: tuple[str, ...] = ()) -> Answers:
    """Return what a list says about each session.

    If a transcript has no time, `last` is the file's mtime, so that the list has an order. The session did not end
    then.
    """
    values: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        "title": lambda row: _json_text(row["title"]),
        "agents": lambda row: row["agents"],
        "agents with or without a transcript": lambda row: row.get("agents_started", row.get("started_agents")),
        "started": lambda row: _iso_time(row["first"]),
        "ended": lambda row: _iso_time(row["last"]) if row["first"] else None,
        "duration": lambda row: _duration(row["first"], row["last"]),
        "turns": lambda row: row["turns"],
        "entries": lambda row: row["entries"],
    }
    named = [(_session_name(row), row) for row in _listed_only(rows)]
    answers = {
        name: sorted((session, value(row)) for session, row in named)
        for name, value in values.items()
        if name not in but
    }
    return {"sessions": sorted(session for session, _ in named), **answers}


def _overview_answers(overview: Mapping[str, Any]) -> Answers:
    return {"number of sessions": overview["sessions"], "number of agents": overview["agents"]}


def _usage_answers(usage: Mapping[str, Any]) -> Answers:
    return {"ledger": _spent_by_session((row["session"], row) for row in usage.get("rows", ()))}


def _spent_by_session(rows: Iterable[tuple[Any, Any]]) -> list[tuple[str, Any]]:
    """Return what each session spent. One that spent nothing has no row, and ids in two files are added up."""
    totals: dict[str, list[Any]] = {}
    for session, row in rows:
        values = [*_sum_values(row)[:-1], Decimal(_sum_values(row)[-1] or 0)]
        known = totals.get(str(session), [0] * len(values))
        totals[str(session)] = [before + added for before, added in zip(known, values, strict=True)]
    return sorted((session, (*counts, _plain(amount))) for session, (*counts, amount) in totals.items() if any(counts))


def _sum_values(row: Any) -> tuple[Any, ...]:
    """Return the counts, and last the amount as exact text."""
    value = row.get if isinstance(row, Mapping) else partial(getattr, row)
    amount = value("amount")
    return *(value(name) for name in _SUMS), _plain(Decimal(amount)) if amount is not None else ""


def _plain(amount: Decimal) -> str:
    """Return an amount as exact text."""
    return format(amount.normalize(), "f")


def _unique_calls(calls: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return calls with tool and outcome, each once, because a fork copies those of its original."""
    return sorted(set(calls))


def _list_answers(states: Iterable[tuple[str, Mapping[str, Any]]]) -> Answers:
    """Return the todos and tasks of each session, with their sources."""
    lists = [
        (
            name,
            [(todos["source"], todo["content"]) for todos in state["todos"] for todo in todos["todos"]]
            + [(task["source"], task["task"]["subject"]) for task in state["tasks"]],
        )
        for name, state in states
    ]
    return {"lists": sorted(lists)}


def _unique_edits(edits: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Return the files and calls of edits, each once, because a fork copies those of its original."""
    return sorted({(edit["path"], edit["call"], edit["tool"]) for edit in edits})


def _problem_answers(counts: Mapping[str, Any]) -> Answers:
    """Return the kinds of problems, each as often as it occurs."""
    kinds = sorted(kind for kind, count in counts.items() for _ in range(count["count"]))
    return {"problems": kinds, "field problems": _field_problems(kinds)}


def _field_problems(kinds: Iterable[str]) -> list[str]:
    """Return the problems of fields. The index has no others of side files and of unfinished lines."""
    return sorted(kind for kind in kinds if kind in {"missing-field", "bad-timestamp"})


def _is_touch(evidence: Mapping[str, Any]) -> bool:
    """Whether evidence says that the session touched the file. A backup only says what existed before."""
    return str(evidence["how"]) != "backup"


def _session_name(row: Mapping[str, Any]) -> str:
    return str(row["session"] or _file_name(Path(row["path"] if "path" in row else row["address"])))


def _file_name(path: Path) -> str:
    """Return the name of a session's file; bytes that are not text are escaped."""
    return os.fsencode(path.name.removesuffix(".jsonl")).decode(errors="backslashreplace")


def _is_uuid(name: str) -> bool:
    return len(name) == len(str(uuid.UUID(int=0))) and name.count("-") == 4


def _json_text(text: str) -> str:
    """Return a text as JSON can represent it: lone surrogates are replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _iso_time(value: Any) -> str | None:
    """Return a time in one form, whatever its source."""
    moment = threadline.parse_timestamp(value) if isinstance(value, str) else value
    return moment.isoformat() if moment is not None else None


def _duration(first: Any, last: Any) -> float | None:
    began, ended = (threadline.parse_timestamp(moment) if moment else None for moment in (first, last))
    return _seconds(ended - began) if began and ended else None


def _seconds(duration: timedelta | None) -> float | None:
    return duration.total_seconds() if duration is not None else None


def ask_all(*homes: Path) -> dict[str, Answers]:
    """Return every interface's answers by its name."""
    return {
        "read": read_sessions(homes),
        "library without index": library_without_index(homes),
        **library_with_index(homes),
        "command without index": command_without_index(homes),
        "command with index": command_with_index(homes),
        "tree": tree(homes),
        **web(homes),
    }
