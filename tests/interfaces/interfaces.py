"""Each interface, asked each question about one home; answers are plain values that can be compared.

A session is called by its id, or where no path tells one by its file's name. Answers about sessions are sorted pairs of
that name and a value, for two transcripts may hold the same session.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from tests.interfaces import entry

import threadline

Answers = dict[str, Any]
_SUMS = ("charges", "input", "output", "cache_write", "cache_read", "web_searches", "unpriced", "lower_bound")
_MANY = 500
_KEYS = (("day",), ("session", "model"), ("project", "branch"), ("agent",), ("tool",), ("home", "machine"))
_SQL = {
    "sessions": "SELECT session, transcript, title, agents, first, last, turns, entries FROM sessions",
    "calls": "SELECT call, tool, COALESCE(outcome, 'pending') AS outcome FROM calls",
    "files": "SELECT path FROM files",
}


def command_with_index(home: Path) -> Answers:
    """`threadline COMMAND --json`."""
    return {
        **_of_rows(_rows(home, "list")),
        **_of_some(home),
        **_of_overview(_rows(home)),
        **_of_usage(_rows(home, "usage", "--by", "session")),
        "calls": _calls((row["call"], row["tool"], row["outcome"]) for row in _rows(home, "calls")),
        "files": sorted({row["path"] for row in _rows(home, "files")}),
        "problems": _problems(_rows(home, "doctor")["problems"]),
    }


def command_without_index(home: Path) -> Answers:
    """The same with `THREADLINE_INDEX=off`; calls and files session by session: over all, only the index has them."""
    mains = _mains(home)
    calls = [row for path in mains for row in _rows(home, "calls", path, index=False)]
    files = [row for path in mains for row in _rows(home, "files", path, index=False)]
    return {
        **_of_rows(_rows(home, "list", index=False)),
        **_of_some(home, index=False),
        **_of_overview(_rows(home, index=False)),
        **_of_usage(_rows(home, "usage", "--by", "session", index=False)),
        "calls": _calls((row["call"], row["tool"], row["outcome"]) for row in calls),
        "files": sorted({row["path"] for row in files if any(map(_is_touch, row["evidence"]))}),
        "problems": _problems(_rows(home, "doctor", index=False)["problems"]),
    }


def _of_some(home: Path, *, index: bool = True) -> Answers:
    """Lists of some sessions, and the order of them."""
    newest = _rows(home, "list", "--limit", "2", index=index)
    later = _rows(home, "list", "--since", "2026-06-01T12:00", index=index)
    return {"newest sessions": list(map(_named, newest)), "later sessions": list(map(_named, later))}


def tree(home: Path) -> Answers:
    """`threadline tree SESSION --json`, which reads the session whole."""
    trees = [(_named(row), _rows(home, "tree", row["path"])) for row in _rows(home, "list")]
    return {name: sorted((session, told[name]) for session, told in trees) for name in ("agents", "turns")}


def _rows(home: Path, *arguments: str | Path, index: bool = True) -> Any:
    environment = {} if index else {"THREADLINE_INDEX": "off"}
    return entry.command(*arguments, "--json", "--home", home, environment=environment).json or {}


def web(home: Path) -> dict[str, Answers]:
    """The data of the pages: `web` are lists, `session page` is what the page of each session says."""
    server = entry.Web(home)
    try:
        rows = server.json(f"/sessions.json?limit={_MANY}")["sessions"]
        pages = [(_named(row), server.json(f"{row['address']}/about.json")) for row in rows]
        done = server.json("/index.json")["spans"][-1]["done"]
        calls = (row["call"] for row in server.json(f"/calls.json?limit={_MANY}")["calls"])
        lists = {
            **_of_rows(rows, but=("entries",)),
            **_of_usage(server.json(f"/usage.json?since=all&by=session&limit={_MANY}")),
            "number of sessions": done["sessions"],
            "number of agents": done["agents"],
            "calls": _calls((call["id"], call["tool"], call["outcome"]) for call in calls),
            "files": sorted({row["file"]["path"] for row in server.json(f"/files.json?limit={_MANY}")["files"]}),
            "problems": _problems(_examined(server)),
        }
        return {"web": lists, "session page": _of_pages(pages)}
    finally:
        server.close()


def _of_pages(pages: Sequence[tuple[str, Mapping[str, Any]]]) -> Answers:
    values: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        "title": lambda page: _text(page["title"]),
        "agents": lambda page: sum(agent["side"] is None for agent in page["agents"]),
        "started": lambda page: _moment(page["started"]),
        "ended": lambda page: _moment(page["ended"]),
        "duration": lambda page: _between(page["started"], page["ended"]),
        "turns": lambda page: page["turns"],
    }
    return {name: sorted((session, value(page)) for session, page in pages) for name, value in values.items()}


def _examined(server: entry.Web) -> Mapping[str, Any]:
    """The doctor's problems, when it has read everything."""
    until = time.monotonic() + 60
    while (told := server.json("/doctor.json"))["state"] == "at work" and time.monotonic() < until:
        time.sleep(0.002)
    found: Mapping[str, Any] = told["examination"]["problems"]
    return found


def library_with_index(home: Path) -> dict[str, Answers]:
    """`threadline.open` with an index that is up to date; `sql` is what its tables say."""
    with threadline.open(home) as archive:
        archive.refresh()
        told = {name: archive.sql(question) for name, question in _SQL.items()}
        spoken = [{**row, "path": row["transcript"], "id": row["session"]} for row in told["sessions"]]
        library = {
            **_of_library(archive),
            "calls": _calls((call.id, call.tool, str(call.outcome)) for call in archive.calls(limit=None)),
            "files": sorted({file.path for file in archive.files(limit=None)}),
        }
        sql = {
            **_of_rows(spoken),
            "calls": _calls((row["call"], row["tool"], row["outcome"]) for row in told["calls"]),
            "files": sorted({row["path"] for row in told["files"]}),
        }
        return {"library with index": library, "sql": sql}


def library_without_index(home: Path) -> Answers:
    """`threadline.open(index=False)`."""
    with threadline.open(home, index=False) as archive:
        return _of_library(archive)


def _of_library(archive: threadline.Archive) -> Answers:
    overview = archive.overview()
    ledger = archive.ledger()
    return {
        "overview": overview,
        "charges": sorted(
            (
                one.message,
                one.part,
                one.session or "",
                one.project,
                str(one.place),
                str(one.amount),
                *map(str, one.flags),
            )
            for one in ledger
        ),
        **{f"ledger by {', '.join(keys)}": ledger.by(*keys, zone="Asia/Kathmandu") for keys in _KEYS},
        **_of_rows(msgspec.to_builtins(archive.sessions().sessions, enc_hook=str)),
        "number of sessions": overview.sessions,
        "number of agents": overview.agents,
        "ledger": _ledger((row.keys["session"], row) for row in ledger.by("session")),
        "problems": _problems(msgspec.to_builtins(archive.examine().problems)),
    }


def session_itself(home: Path) -> Answers:
    """`threadline.read`: of each session that the library lists; calls, files and problems of every main transcript."""
    with threadline.open(home, index=False) as archive:
        listed = {summary.path for summary in archive.sessions().sessions}
    every = [(path, threadline.read(path)) for path in _mains(home)]
    read = [(_name(path), session) for path, session in every if path in listed]
    values: dict[str, Callable[[threadline.Session], Any]] = {
        "title": lambda session: _text(session.title.text),
        "agents": lambda session: sum(agent.side is None for agent in session.agents),
        "started": lambda session: _moment(session.started),
        "ended": lambda session: _moment(session.ended),
        "duration": lambda session: _seconds(session.wall_time),
        "turns": lambda session: sum(turn.act is not None for turn in session.turns),
        "entries": lambda session: sum(1 for _ in threadline.entries(session.path or "")),
    }
    found = {name: sorted((named, value(session)) for named, session in read) for name, value in values.items()}
    # Of transcripts that belong to no session, no session can tell.
    covered = {one.line.transcript for _, session in every for one in session}
    is_whole = all(str(one.path) in covered for one in threadline.look(home).transcripts if one.size)
    counted = {
        "number of agents": sum(count for _, count in found["agents"]),
        "problems": sorted(str(problem.kind) for _, session in every for problem in session.problems),
    }
    return {
        "sessions": sorted(name for name, _ in read),
        "number of sessions": len({name for name, _ in read}),
        **found,
        **(counted if is_whole else {}),
        "calls": _calls((call.id, call.tool, str(call.outcome)) for _, session in every for call in session.calls),
        "files": sorted(
            {
                path
                for _, session in every
                for path, file in session.at().files.items()
                if any(_is_touch({"how": evidence.how}) for evidence in file.evidence)
            }
        ),
        "ledger": _ledger((session.id, session.ledger.total) for _, session in read),
    }


def _mains(home: Path) -> list[Path]:
    """The transcripts of a home that are read as sessions: main ones, and those whose name is no session's id."""
    return sorted(one.path for one in threadline.look(home).transcripts if str(one.kind) in {"main", "other"})


def _of_rows(rows: Iterable[Mapping[str, Any]], but: tuple[str, ...] = ()) -> Answers:
    """What a list says of each session.

    Where a transcript tells no time, `last` is when the file was written, so that the list has an order; it did not
    end then.
    """
    values: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        "title": lambda row: _text(row["title"]),
        "agents": lambda row: row["agents"],
        "started": lambda row: _moment(row["first"]),
        "ended": lambda row: _moment(row["last"]) if row["first"] else None,
        "duration": lambda row: _between(row["first"], row["last"]),
        "turns": lambda row: row["turns"],
        "entries": lambda row: row["entries"],
    }
    named = [(_named(row), row) for row in rows]
    found = {
        name: sorted((session, value(row)) for session, row in named)
        for name, value in values.items()
        if name not in but
    }
    return {"sessions": sorted(session for session, _ in named), **found}


def _of_overview(told: Mapping[str, Any]) -> Answers:
    return {"number of sessions": told["sessions"], "number of agents": told["agents"]}


def _of_usage(told: Mapping[str, Any]) -> Answers:
    return {"ledger": _ledger((row["session"], row) for row in told.get("rows", ()))}


def _ledger(rows: Iterable[tuple[Any, Any]]) -> list[tuple[str, Any]]:
    """What each session spent; one that spent nothing has no row, one in two files has one."""
    return sorted({(str(session), total) for session, row in rows if any((total := _sum(row))[:-1])})


def _sum(row: Any) -> tuple[Any, ...]:
    """Counts, and the amount as exact text, last."""
    value = row.get if isinstance(row, Mapping) else partial(getattr, row)
    amount = value("amount")
    return *(value(name) for name in _SUMS), format(Decimal(amount).normalize(), "f") if amount is not None else ""


def _calls(found: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Calls with tool and outcome, each once: a fork copies those of its original."""
    return sorted(set(found))


def _problems(counts: Mapping[str, Any]) -> list[str]:
    """The kinds of problems, each as often as it occurs."""
    return sorted(kind for kind, count in counts.items() for _ in range(count["count"]))


def _is_touch(evidence: Mapping[str, Any]) -> bool:
    """Whether evidence about a file says that the session touched it; a backup only says what was there before."""
    return str(evidence["how"]) != "backup"


def _named(row: Mapping[str, Any]) -> str:
    return str(row["id"] or _name(Path(row["path"] if "path" in row else row["address"])))


def _name(path: Path) -> str:
    return path.name.removesuffix(".jsonl")


def _text(text: str) -> str:
    """A text as JSON can carry it: half a surrogate pair is replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _moment(value: Any) -> str | None:
    """A moment in one form, whoever wrote it."""
    moment = threadline.parse_timestamp(value) if isinstance(value, str) else value
    return moment.isoformat() if moment is not None else None


def _between(first: Any, last: Any) -> float | None:
    began, ended = (threadline.parse_timestamp(moment) if moment else None for moment in (first, last))
    return _seconds(ended - began) if began and ended else None


def _seconds(lasted: timedelta | None) -> float | None:
    return lasted.total_seconds() if lasted is not None else None


def ask_all(home: Path) -> dict[str, Answers]:
    """Every interface's answers, by its name."""
    return {
        "read": session_itself(home),
        "library without index": library_without_index(home),
        **library_with_index(home),
        "command without index": command_without_index(home),
        "command with index": command_with_index(home),
        "tree": tree(home),
        **web(home),
    }
