"""What is asked for golden files: every command, every keep action, every page, the library, and every case folder.

Only `--json` is asked for: tables and sentences on standard error may be reworded, JSON is an interface.
"""

from __future__ import annotations

import inspect
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from tests.golden import demo_home
from tests.golden.demo_home import BRANCHED, DAMAGED, LISTED, PLANTED, REQUESTED
from tests.golden.text import names_of, steady
from tests.interfaces import entry_points
from tests.interfaces.cases import CORPORA, cases

import threadline

COMMANDS: dict[str, tuple[str, ...]] = {
    "overview": (),
    "list": ("list",),
    "list-some": ("list", "--project", "tidewatch", "--since", "2026-02-01", "--limit", "3"),
    "search": ("search", "the"),
    "search-all": ("search", "parser OR error:exit", "--all", "--sort", "time", "--limit", "5", "--context", "1"),
    "search-nothing": ("search", "zzzzqqqq"),
    "usage": ("usage",),
    "usage-breakdown": ("usage", "--by", "project", "--breakdown", "--apart"),
    "usage-both": ("usage", "--by", "month", "--mode", "both"),
    "usage-model": ("usage", "--by", "week,model", "--since", "2026-10-01", "--tz", "Asia/Kathmandu"),
    "usage-session": ("usage", "--by", "session"),
    "usage-tool": ("usage", "--by", "tool,agent-type"),
    "blocks": ("blocks", "--since", "2026-10-01"),
    "explain": ("explain", BRANCHED, "--limit", "4"),
    "explain-day": ("explain", "2026-11-10", "--limit", "1"),
    "watch": ("watch", BRANCHED, "--since", "2026-01-01", "--limit", "5"),
    "show": ("show", PLANTED),
    "show-turn": ("show", BRANCHED, "--turn", "1", "--agents", "full"),
    "tree": ("tree", BRANCHED, "--all"),
    "calls": ("calls", "--limit", "20"),
    "calls-session": ("calls", PLANTED),
    "calls-errors": ("calls", "--outcome", "error", "--outcome", "denied", "--project", "a"),
    "errors": ("errors",),
    "errors-session": ("errors", PLANTED),
    "files": ("files",),
    "files-session": ("files", BRANCHED),
    "files-diff": ("files", PLANTED, "--diff", "1", "8"),
    "todos": ("todos", LISTED),
    "request": ("request", REQUESTED),
    "request-one": ("request", REQUESTED, "1"),
    "context": ("context", BRANCHED),
    "doctor": ("doctor", "--check"),
    "doctor-session": ("doctor", DAMAGED),
    "scan": ("scan",),
    "scan-personal": ("scan", PLANTED, "--personal"),
    "entries": ("entries", DAMAGED, "--limit", "12"),
    "entries-problems": ("entries", DAMAGED, "--problems"),
    "history": ("history", "--limit", "8"),
    "sql": ("sql", "SELECT kind, COUNT(*) AS entries FROM entries GROUP BY kind ORDER BY kind"),
    "index-status": ("index", "status"),
    "index-refresh": ("index", "refresh"),
    "index-rebuild": ("index", "rebuild"),
    "index-path": ("index", "path"),
}
"""Commands that only read, and what each is asked; each gets `--json` and `--home`."""

WITHOUT = {"serve": "it prints an address and a token and goes on: the pages are a suite of their own"}
"""Commands that have no golden answer, and why."""

KEEP: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("path", ("path",)),
    ("status-none", ("status", "--home", "{home}")),
    ("keep", ("--home", "{home}")),
    ("status", ("status", "--home", "{home}")),
    ("list", ("list",)),
    ("verify", ("verify",)),
)
KEEP_LATER: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("status-changed", ("status", "--home", "{home}")),
    ("keep-changed", ("--home", "{home}")),
    ("list-only", ("list", "--only")),
    ("diff", ("diff",)),
    ("diff-runs", ("diff", "--runs")),
    ("restore", ("restore", BRANCHED, "--to", "{tmp}/restored")),
    ("restore-again", ("restore", BRANCHED, "--to", "{tmp}/restored")),
    ("pack", ("pack",)),
    ("merge", ("merge", "{keep}", "--keep", "{tmp}/other-keep")),
    ("forget", ("forget", PLANTED, "--reason", "a test", "--yes")),
    ("list-forgotten", ("list", "--project", "app")),
    ("install", ("install", "--home", "{home}", "--timer", "cron")),
    ("uninstall", ("uninstall", "--home", "{home}")),
)
"""Actions of the keep in the order in which they are done; between the two, sessions of the home change and go."""

PAGES: dict[str, str] = {
    "index": "/index.json",
    "sessions": "/sessions.json",
    "sessions-some": "/sessions.json?sort=cost&limit=3&after=3",
    "search": "/search.json?q=the&limit=5",
    "search-nothing": "/search.json?q=zzzzqqqq",
    "usage": "/usage.json",
    "usage-project": "/usage.json?since=all&by=project,model&measure=tokens",
    "calls": "/calls.json?limit=10",
    "calls-errors": "/calls.json?outcome=error&limit=5",
    "files": "/files.json?limit=10",
    "files-path": "/files.json?path=/work/app/shelf.py",
    "doctor": "/doctor.json",
    "keys": "/keys.json",
    "palette": "/palette.json?q=the",
    "session": "/session/{branched}.json",
    "session-planted": f"/session/{PLANTED}.json",
    "session-agent": "/session/{branched}/agent/{agent}.json",
    "session-part": "/session/{branched}/part/1.json",
    "session-about": "/session/{branched}/about.json",
    "session-shape": "/session/{branched}/shape.json",
    "session-where": "/session/{branched}/where.json?anchor=L9",
    "session-turns": "/session/{branched}/turns.json",
    "session-entry": f"/session/{PLANTED}/entry/L2.json",
    "session-call": f"/session/{PLANTED}/call/{{call}}.json",
    "session-state": f"/session/{PLANTED}/state/end.json",
    "session-image": f"/session/{PLANTED}/image/L1/1.json",
    "session-find": "/session/{branched}/find.json?q=the",
    "session-markdown": f"/session/{PLANTED}/markdown.json",
    "session-along": "/session/{branched}/along.json",
    "session-related": "/session/{listed}/related.json",
    "session-unknown": "/session/ffffffff.json",
}
"""The data of every page: addresses, with the ids of sessions, agents and calls that the home has."""

_ASKED_OF_CASES: dict[str, tuple[str, ...]] = {
    "list": ("list",),
    "usage": ("usage", "--by", "session,model"),
    "calls": ("calls",),
    "files": ("files",),
    "errors": ("errors",),
    "doctor": ("doctor",),
}
# The name and the size of the index, and how long something took.
_OF_INDEX = {"path", "bytes", "share", "schema", "seconds"}
# What compression makes of it, and how long that took.
_OF_KEEP = {"stored", "written", "seconds", "bytes_before", "bytes_after"}
# Of the files' inodes and times.
_OF_SESSION = {"version"}
# What says nothing about a case: the same for all of them.
_SAME_FOR_ALL = {"machine", "prices", "zone", "by", "total"}
_SHORT = {"5e551011-0000-4000-8000-0000000000": "session-", "claude-sonnet-4-5-20250929": "sonnet-4-5"}


def _answer(*arguments: str | Path, stdin: bytes = b"") -> Any:
    """The JSON of a command; where its exit code is not 0, that too."""
    answer = entry_points.run_command(*arguments, stdin=stdin)
    value = [json.loads(line) for line in answer.out.splitlines()] if arguments[0] == "watch" else answer.json
    return value if answer.code == 0 else {"exit": answer.code, "answer": value}


def commands(folder: Path) -> dict[str, Any]:
    """The answers of all commands that read, of `demo`, of `export` and of `statusline`."""
    home = demo_home.write(folder / "home")
    found = {name: _answer(*given, "--json", "--home", home) for name, given in COMMANDS.items()}
    found["prices"] = _answer("prices", "--model", "opus-4", "--json")
    found["demo"] = _answer("demo", folder / "made", "--json")
    found["export"] = _answer("export", PLANTED, "--out", folder / "export.html", "--json", "--home", home)
    (main,) = home.glob(f"projects/*/{PLANTED}.jsonl")
    told = {"session_id": PLANTED, "transcript_path": str(main), "model": {"id": "claude-sonnet-4-5-20250929"}}
    found["statusline"] = _answer(
        "statusline", "--json", "--home", home, "--time", "60000", stdin=json.dumps(told).encode()
    )
    hidden = {"export": {"size"}, **dict.fromkeys((n for n in COMMANDS if n.startswith("index-")), _OF_INDEX)}
    return {name: _hidden(value, hidden.get(name, set())) for name, value in found.items()}


def keep(folder: Path) -> dict[str, Any]:
    """The answers of all actions of the keep, one after the other."""
    home = demo_home.write(folder / "home")
    (folder / "data" / "threadline").mkdir(parents=True)
    (folder / "data" / "threadline" / "machine").write_text("machine_00000000\n")
    places = {"home": str(home), "tmp": str(folder), "keep": str(folder / "keep")}
    found = dict(_kept(KEEP, places))
    demo_home.change(home)
    found |= _kept(KEEP_LATER, places)
    found["list-with-kept"] = [
        {name: row[name] for name in ("id", "title", "kept")}
        for row in _answer("list", "--json", "--home", home)
        if row["kept"]
    ]
    # The bytes of a merge are those of packs; elsewhere they are those of what is kept.
    return {name: _hidden(value, _OF_KEEP | ({"bytes"} if name == "merge" else set())) for name, value in found.items()}


def _kept(actions: tuple[tuple[str, tuple[str, ...]], ...], places: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for name, given in actions:
        yield name, _answer("keep", *(part.format(**places) for part in given), "--json")


def pages(folder: Path) -> dict[str, Any]:
    """The data of all pages."""
    home = demo_home.write(folder / "home")
    named = {
        name: next(path.stem for path in sorted(home.glob(f"projects/*/{start}*.jsonl")))
        for name, start in (("branched", BRANCHED), ("listed", LISTED))
    }
    with threadline.open(home, index=False) as archive:
        named["agent"] = str(archive.session(BRANCHED).agents[0].id)
        named["call"] = archive.session(PLANTED).calls[1].id
    web = entry_points.WebClient(home)
    try:
        _wait(web)
        return {name: _hidden(web.json(address.format(**named)), _OF_SESSION) for name, address in PAGES.items()}
    finally:
        web.close()


def _wait(web: entry_points.WebClient) -> None:
    """Until the doctor, which works on its own, has read everything."""
    until = time.monotonic() + 60
    while web.json("/doctor.json")["state"] == "at work" and time.monotonic() < until:
        time.sleep(0.02)


def library(folder: Path) -> dict[str, Any]:
    """What the library gives for the same home."""
    home = demo_home.write(folder / "home")
    (main,) = home.glob(f"projects/*/{BRANCHED}*.jsonl")
    session = threadline.read(main)
    ledger = threadline.ledger(home)
    side_files = [side for side in threadline.look(home).side_files if side.path.suffix == ".json"]
    with threadline.open(home, index=folder / "index.sqlite") as archive:
        archive.refresh()
        asked = {
            "overview": archive.overview(),
            "sessions": archive.sessions(),
            "calls": archive.calls(limit=10),
            "files": archive.files(limit=10),
            "search": archive.search("parser", limit=5),
            "failures": archive.failures(),
        }
        found = {f"archive-{name}": _plain(value) for name, value in asked.items()}
    return found | {
        "look": _plain(threadline.look(home)),
        "heads": [_plain(head) for head in threadline.heads(main)][:20],
        "entries": [
            {
                "class": type(entry).__name__,
                "kind": entry.kind,
                "place": str(entry.place),
                "timestamp": _plain(entry.timestamp),
                "text": threadline.extract_text(entry),
                "problems": [str(problem) for problem in entry.problems],
            }
            for entry in threadline.entries(main)
        ][:40],
        "read": _session(session),
        "state": _plain(session.at()),
        "context": _plain(session.context()),
        "ledger": {
            "problems": list(map(str, ledger.problems)),
            "total": _plain(ledger.total),
            "session": _plain(session.ledger.total),
            **{key: list(map(_plain, ledger.by(key, zone="UTC"))) for key in ("month", "model", "agent-type")},
            "some": _plain(ledger.where(since="2026-10-01", model="opus").total),
        },
        "charges": [_charge(charge) for charge in session.ledger],
        "side-files": {str(side.path): _plain(threadline.read_side_file(side).content) for side in side_files},
    }


def _session(session: threadline.Session) -> dict[str, Any]:
    """All that a session says of itself, without its entries."""
    return {
        "id": session.id,
        "title": _plain(session.title),
        "tag": session.tag,
        "times": [str(one) for one in (session.started, session.ended, session.wall_time, session.active_time)],
        "models": session.models,
        "versions": session.versions,
        "cwds": session.cwds,
        "git_branches": session.git_branches,
        "entries": len(session),
        "problems": list(map(str, session.problems)),
        "continuations": _plain(session.continuations),
        "agents": [_agent(agent) for agent in (session.main, *session.agents)],
    }


def _agent(agent: threadline.Agent) -> dict[str, Any]:
    thread = agent.thread
    return {
        "id": agent.id,
        "kind": _plain(agent.kind),
        "type": agent.type,
        "description": agent.description,
        "prompt": agent.prompt,
        "result": agent.result,
        "status": _plain(agent.status),
        "side": _plain(agent.side),
        "depth": agent.depth,
        "link": [str(agent.link.step), str(agent.link.sureness), agent.link.why],
        "entries": len(agent.entries),
        "thread": [len(thread.entries), len(thread.visible), str(thread.source)],
        "branches": [[branch.fork, len(branch.entries)] for branch in agent.branches],
        "compactions": [
            [str(compaction.kind), compaction.trigger, compaction.tokens_before, str(compaction.place)]
            for compaction in agent.compactions
        ],
        "acts": [[str(act.kind), act.text, str(act.place)] for act in agent.acts],
        "turns": [[turn.number, str(turn.started), str(turn.duration), len(turn.entries)] for turn in agent.turns],
        "calls": [
            [call.tool, str(call.outcome), call.evidence, str(call.duration), call.turn, str(call.place)]
            for call in agent.calls
        ],
    }


def _charge(charge: threadline.Charge) -> list[Any]:
    """What a charge is of, how much, and which lines tell of it."""
    return [
        charge.message,
        charge.model,
        [charge.input, charge.output, charge.cache_write_5m, charge.cache_write_1h, charge.cache_read],
        str(charge.amount),
        str(charge.timestamp),
        charge.agent,
        str(charge.place),
        [f"{one.place} {one.reason}" for one in charge.set_aside],
        sorted(map(str, charge.flags)),
    ]


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=str)


def api(_folder: Path) -> dict[str, Any]:
    """The public names, and what each has: what scripts of other people rest on."""
    return {"names": {name: _described(getattr(threadline, name)) for name in threadline.__all__}}


def _described(value: Any) -> Any:
    if not inspect.isclass(value):
        return f"function{_arguments(value)}" if callable(value) else type(value).__name__
    return {
        name: _member(value, name) for name in sorted(dir(value)) if not name.startswith("_") and _is_own(value, name)
    }


def _is_own(class_: type, name: str) -> bool:
    """Whether threadline gave a class this, and not Python or msgspec."""
    owner = next(one for one in class_.__mro__ if name in vars(one))
    return owner.__module__.startswith("threadline")


def _member(class_: type, name: str) -> str:
    value = inspect.getattr_static(class_, name)
    value = getattr(value, "__func__", value)
    return f"method{_arguments(value)}" if inspect.isfunction(value) else "value"


def _arguments(function: Callable[..., Any]) -> str:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ""
    return f"({', '.join(str(parameter.replace(annotation=inspect.Parameter.empty)) for parameter in parameters)})"


def case_answers(folder: Path, every: int = 1) -> dict[str, Any]:
    """Return the answers of the commands for each case, or every `every`-th, without what is empty.

    Each case is a home.
    """
    return {corpus: dict(_of_cases(folder, corpus, every)) for corpus in CORPORA}


def _of_cases(folder: Path, corpus: str, every: int) -> Iterator[tuple[str, Any]]:
    for case in cases(corpus)[::every]:
        home = case.write_home(folder / corpus / case.folder.name)
        found = {name: _answer(*given, "--json", "--home", home) for name, given in _ASKED_OF_CASES.items()}
        listed = found["list"] if isinstance(found["list"], list) else []  # none: not a list, but an exit code
        found["tree"] = [_answer("tree", one["path"], "--json", "--home", home) for one in listed]
        found = {name: value for name, value in found.items() if value != {"exit": 1, "answer": []}}
        names = {str(home / "projects" / "-work-app"): "<project>", str(home): "<home>", **_SHORT}
        yield case.folder.name, _filled(steady(found, names))
        shutil.rmtree(home)


def _filled(value: Any) -> Any:
    """The answer without what is empty, and without what is the same for all cases."""
    if isinstance(value, Mapping):
        kept = ((key, _filled(item)) for key, item in value.items() if key not in _SAME_FOR_ALL)
        return {key: item for key, item in kept if item or item is True}
    return [_filled(item) for item in value] if isinstance(value, list) else value


def _hidden(value: Any, keys: set[str]) -> Any:
    """The answer with a placeholder for the values of some keys, which differ from run to run."""
    if isinstance(value, Mapping):
        return {key: f"<{key}>" if key in keys and item else _hidden(item, keys) for key, item in value.items()}
    return [_hidden(item, keys) for item in value] if isinstance(value, list) else value


SUITES: Mapping[str, Callable[..., dict[str, Any]]] = {
    "commands": commands,
    "keep": keep,
    "pages": pages,
    "library": library,
    "api": api,
    "cases": case_answers,
}
"""What is asked, by the folder of its golden files."""


def answers(suite: str, folder: Path, **options: int) -> dict[str, Any]:
    """The answers of a suite, by the names of their golden files; `folder` is empty, and is written to."""
    with entry_points.isolated(folder):
        found = SUITES[suite](folder, **options)
    return {name: steady(value, names_of(folder)) for name, value in found.items()}
