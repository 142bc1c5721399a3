"""The suites of golden files: every command, every keep action, every page, the library, and every case folder.

Only `--json` is tested: tables and messages may be reworded, JSON is an interface.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from tests.golden import demo_home
from tests.golden.demo_home import BRANCHED, DAMAGED, LISTED, PLANTED, REQUESTED
from tests.golden.text import normalize, varying_names
from tests.interfaces import entry_points
from tests.interfaces.cases import CORPORA, MTIME, cases

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
    "files-log": ("files", "shelf.py", "--log"),
    "files-log-session": ("files", "shelf.py", "--log", "--session", PLANTED, "--reverse"),
    "todos": ("todos", LISTED),
    "request": ("request", REQUESTED),
    "request-one": ("request", REQUESTED, "1"),
    "context": ("context", BRANCHED),
    "why": ("why", BRANCHED),
    "why-by-kind": ("why", BRANCHED, "--by", "kind"),
    "why-since": ("why", "--since", "2020-01-01", "--by", "project"),
    "waste-since": ("waste", "--since", "2020-01-01"),
    "waste": ("waste", BRANCHED, "--min", "0"),
    "blame": ("blame", "shelf.py", "--no-git"),
    "tools": ("tools",),
    "tools-command": ("tools", "--by", "command", "--no-cost"),
    "outcomes": ("outcomes",),
    "outcomes-list": ("outcomes", "--list", "--limit", "30"),
    "digest": ("digest", "--week", "2026-W45", "--tz", "Europe/Berlin"),
    "digest-running": ("digest", "--month", "--project", "a"),
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
"""Commands that only read, with their arguments. Each gets `--json` and `--home`."""

NOT_TESTED = {
    "lake": "its results have times and ids of machines; its figures are compared with `usage`: tests/lake",
    "mcp": "it serves agents until its input ends: tests/mcp",
    "serve": "it prints an address and a token and keeps running: the pages are their own suite",
}
"""Commands without a golden file, and why."""

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
    ("accept-forgotten", ("accept-forgotten", "--list", "--keep", "{tmp}/other-keep")),
    ("forget", ("forget", PLANTED, "--reason", "a test", "--yes")),
    ("list-forgotten", ("list", "--project", "app")),
    ("install", ("install", "--home", "{home}", "--timer", "cron")),
    ("uninstall", ("uninstall", "--home", "{home}")),
)
"""Actions of the keep in order. Between the two, sessions of the home change and are deleted."""

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
    "files-log": "/files/log.json?path=shelf.py&limit=3",
    "why": "/why.json?since=all&by=tool&limit=5",
    "tools": "/tools.json?since=all&by=model",
    "outcomes": "/outcomes.json?since=all&by=project&kind=all&limit=5",
    "files-blame": "/files/blame.json?path=/work/app/shelf.py",
    "waste": "/waste.json?since=all&min=0.05",
    "digest": "/digest.json?unit=month&when=2026-10",
    "errors": "/errors.json?since=all&limit=5",
    "blocks": "/blocks.json?limit=3",
    "history": "/history.json?limit=5",
    "compare": f"/compare.json?a={PLANTED}&b={{branched}}",
    "receipt": f"/receipt.json?session={PLANTED}",
    "time-zone": "/time-zone.json",
    "doctor": "/doctor.json",
    "keys": "/keys.json",
    "palette": "/palette.json?q=the",
    "session": "/session/{branched}.json",
    "session-planted": f"/session/{PLANTED}.json",
    "session-agent": "/session/{branched}/agent/{agent}.json",
    "session-agent-entries": "/session/{branched}/agent/{agent}/entries.json",
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
    "session-agents": "/session/{branched}/agents.json",
    "session-timeline": "/session/{branched}/timeline.json",
    "session-changes": "/session/{branched}/changes.json",
    "session-cost": "/session/{branched}/cost.json",
    "session-context": "/session/{branched}/context/end.json",
    "session-related": "/session/{listed}/related.json",
    "session-todos": "/session/{branched}/todos.json",
    "session-notes": f"/session/{PLANTED}/notes.json",
    "session-share": f"/session/{PLANTED}/share.json?scope=turns&from=1&to=1&format=md&preview=1",
    "session-share-file": f"/session/{PLANTED}/share/file.json?format=md",
    "session-why": "/session/{branched}/why.json?by=tool",
    "session-outcomes": f"/session/{PLANTED}/outcomes.json",
    "session-waste": "/session/{branched}/waste.json?min=0",
    "session-unknown": "/session/ffffffff.json",
}
"""The addresses of every page, with the ids of sessions, agents and calls in the home."""

_CASE_COMMANDS: dict[str, tuple[str, ...]] = {
    "list": ("list",),
    "usage": ("usage", "--by", "session,model"),
    "calls": ("calls",),
    "files": ("files",),
    "errors": ("errors",),
    "doctor": ("doctor",),
}
# The name and size of the index, and durations.
_VARYING_INDEX_KEYS = {"path", "bytes", "share", "schema", "seconds"}
# Compressed sizes, and durations.
_VARYING_KEEP_KEYS = {"stored", "written", "seconds", "bytes_before", "bytes_after"}
# Derived from inodes and times of files.
_VARYING_SESSION_KEYS = {"version"}
# The same for all cases.
_SAME_FOR_ALL = {"machine", "prices", "zone", "by", "total"}
# In most cases many, and the places of `problems` name them; `tests/cli/test_cli_doctor.py` tests them.
_TOO_LONG = {"missing_fields"}
_SHORT = {"5e551011-0000-4000-8000-0000000000": "session-", "claude-sonnet-4-5-20250929": "sonnet-4-5"}


def _run_command(*arguments: str | Path, stdin: bytes = b"") -> Any:
    """The JSON of a command, with its exit code if that is not 0."""
    result = entry_points.run_command(*arguments, stdin=stdin)
    value = [json.loads(line) for line in result.out.splitlines()] if arguments[0] == "watch" else result.json
    return value if result.code == 0 else {"exit": result.code, "answer": value}


def commands(folder: Path) -> dict[str, Any]:
    """The results of all commands that read, and of `budget`, `demo`, `export` and `statusline`."""
    home = demo_home.write(folder / "home")
    results = {name: _run_command(*arguments, "--json", "--home", home) for name, arguments in COMMANDS.items()}
    results["prices"] = _run_command("prices", "--model", "opus-4", "--json")
    source = Path(__file__).parents[1] / "cli/convert_sources/stream-json.jsonl"
    copied = folder / "run.jsonl"
    copied.write_bytes(source.read_bytes())
    os.utime(copied, (MTIME, MTIME))
    results["convert"] = _run_command("convert", copied, "--json")
    results["schema"] = _run_command("schema", "--kind", "user")
    results["schema-list"] = _run_command("schema", "--list", "--json")
    results["demo"] = _run_command("demo", folder / "made", "--json")
    results["export"] = _run_command("export", PLANTED, "--out", folder / "export.html", "--json", "--home", home)
    (main,) = home.glob(f"projects/*/{PLANTED}.jsonl")
    status_input = {"session_id": PLANTED, "transcript_path": str(main), "model": {"id": "claude-sonnet-4-5-20250929"}}
    results["statusline"] = _run_command(
        "statusline", "--json", "--home", home, "--time", "60000", stdin=json.dumps(status_input).encode()
    )
    results["budget-set"] = _run_command("budget", "set", "50/day", "--json")
    for name, arguments in {"budget": (), "budget-check": ("check",), "budget-remove": ("remove", "day")}.items():
        results[name] = _run_command(
            "budget", *arguments, "--json", *(("--home", home) if name != "budget-remove" else ())
        )
    hidden = {"export": {"size"}, **dict.fromkeys((n for n in COMMANDS if n.startswith("index-")), _VARYING_INDEX_KEYS)}
    return {name: _mask(value, hidden.get(name, set())) for name, value in results.items()}


def keep(folder: Path) -> dict[str, Any]:
    """The results of all actions of the keep, in order."""
    home = demo_home.write(folder / "home")
    (folder / "data" / "threadline").mkdir(parents=True)
    (folder / "data" / "threadline" / "machine").write_text("machine_00000000\n")
    places = {"home": str(home), "tmp": str(folder), "keep": str(folder / "keep")}
    results = dict(_keep_results(KEEP, places))
    demo_home.change(home)
    results |= _keep_results(KEEP_LATER, places)
    results["list-with-kept"] = [
        {name: row[name] for name in ("session", "title", "kept")}
        for row in _run_command("list", "--json", "--home", home)
        if row["kept"]
    ]
    # The bytes of a merge are those of packs, elsewhere those of the content.
    return {
        name: _mask(value, _VARYING_KEEP_KEYS | ({"bytes"} if name == "merge" else set()))
        for name, value in results.items()
    }


def _keep_results(
    actions: tuple[tuple[str, tuple[str, ...]], ...], places: Mapping[str, str]
) -> Iterator[tuple[str, Any]]:
    for name, arguments in actions:
        yield name, _run_command("keep", *(part.format(**places) for part in arguments), "--json")


def pages(folder: Path) -> dict[str, Any]:
    """The data of all pages."""
    home = demo_home.write(folder / "home")
    ids = {
        name: next(path.stem for path in sorted(home.glob(f"projects/*/{start}*.jsonl")))
        for name, start in (("branched", BRANCHED), ("listed", LISTED))
    }
    with threadline.open(home, index=False) as archive:
        ids["agent"] = str(archive.session(BRANCHED).agents[0].id)
        ids["call"] = archive.session(PLANTED).calls[1].id
    web = entry_points.WebClient(home)
    try:
        _wait_for_doctor(web)
        return {name: _mask(web.json(address.format(**ids)), _VARYING_SESSION_KEYS) for name, address in PAGES.items()}
    finally:
        web.close()


def _wait_for_doctor(web: entry_points.WebClient) -> None:
    """Wait until the doctor, which runs in the background, has read everything."""
    deadline = time.monotonic() + 60
    while web.json("/doctor.json")["state"] == "at work" and time.monotonic() < deadline:
        time.sleep(0.02)


def library(folder: Path) -> dict[str, Any]:
    """The results of the library for the same home."""
    home = demo_home.write(folder / "home")
    (main,) = home.glob(f"projects/*/{BRANCHED}*.jsonl")
    session = threadline.read(main)
    ledger = threadline.ledger(home)
    side_files = [side for side in threadline.look(home).side_files if side.path.suffix == ".json"]
    with threadline.open(home, index=folder / "index.sqlite") as archive:
        archive.refresh()
        queries = {
            "overview": archive.overview(),
            "sessions": archive.sessions(),
            "calls": archive.calls(limit=10),
            "files": archive.files(limit=10),
            "file-log": archive.file_log("shelf.py", limit=3),
            "search": archive.search("parser", limit=5),
            "failures": archive.failures(),
        }
        results = {f"archive-{name}": _to_builtins(value) for name, value in queries.items()}
    return results | {
        "look": _to_builtins(threadline.look(home)),
        "heads": [_to_builtins(head) for head in threadline.heads(main)][:20],
        "entries": [
            {
                "class": type(entry).__name__,
                "kind": entry.kind,
                "place": str(entry.place),
                "timestamp": _to_builtins(entry.timestamp),
                "text": threadline.extract_text(entry),
                "problems": [str(problem) for problem in entry.problems],
            }
            for entry in threadline.entries(main)
        ][:40],
        "read": _describe_session(session),
        "state": _to_builtins(session.at()),
        "context": _to_builtins(session.context()),
        "ledger": {
            "problems": list(map(str, ledger.problems)),
            "total": _to_builtins(ledger.total),
            "session": _to_builtins(session.ledger.total),
            **{key: list(map(_to_builtins, ledger.by(key, zone="UTC"))) for key in ("month", "model", "agent-type")},
            "some": _to_builtins(ledger.where(since="2026-10-01", model="opus").total),
        },
        "charges": [_describe_charge(charge) for charge in session.ledger],
        "side-files": {str(side.path): _to_builtins(threadline.read_side_file(side).content) for side in side_files},
    }


def _describe_session(session: threadline.Session) -> dict[str, Any]:
    """Everything about a session except its entries."""
    return {
        "id": session.id,
        "title": _to_builtins(session.title),
        "tag": session.tag,
        "times": [str(value) for value in (session.started, session.ended, session.wall_time, session.active_time)],
        "models": session.models,
        "versions": session.versions,
        "cwds": session.cwds,
        "git_branches": session.git_branches,
        "entries": len(session),
        "problems": list(map(str, session.problems)),
        "continuations": _to_builtins(session.continuations),
        "agents": [_describe_agent(agent) for agent in (session.main, *session.agents)],
    }


def _describe_agent(agent: threadline.Agent) -> dict[str, Any]:
    thread = agent.thread
    return {
        "id": agent.id,
        "kind": _to_builtins(agent.kind),
        "type": agent.type,
        "description": agent.description,
        "prompt": agent.prompt,
        "result": agent.result,
        "status": _to_builtins(agent.status),
        "side": _to_builtins(agent.side),
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


def _describe_charge(charge: threadline.Charge) -> list[Any]:
    """The message, amounts and lines of a charge."""
    return [
        charge.message,
        charge.model,
        [charge.input, charge.output, charge.cache_write_5m, charge.cache_write_1h, charge.cache_read],
        str(charge.amount),
        str(charge.timestamp),
        charge.agent,
        str(charge.place),
        [f"{sighting.place} {sighting.reason}" for sighting in charge.set_aside],
        sorted(map(str, charge.flags)),
    ]


def _to_builtins(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=str)


def api(_folder: Path) -> dict[str, Any]:
    """The public names and their members, which other people's scripts rely on."""
    return {"names": {name: _describe_name(getattr(threadline, name)) for name in threadline.__all__}}


def _describe_name(value: Any) -> Any:
    if not inspect.isclass(value):
        return f"function{_describe_arguments(value)}" if callable(value) else type(value).__name__
    return {
        name: _describe_member(value, name)
        for name in sorted(dir(value))
        if not name.startswith("_") and _is_ours(value, name)
    }


def _is_ours(class_: type, name: str) -> bool:
    """Whether threadline defines this member, and not Python or msgspec."""
    owner = next(base for base in class_.__mro__ if name in vars(base))
    return owner.__module__.startswith("threadline")


def _describe_member(class_: type, name: str) -> str:
    value = inspect.getattr_static(class_, name)
    value = getattr(value, "__func__", value)
    return f"method{_describe_arguments(value)}" if inspect.isfunction(value) else "value"


def _describe_arguments(function: Callable[..., Any]) -> str:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ""
    return f"({', '.join(str(parameter.replace(annotation=inspect.Parameter.empty)) for parameter in parameters)})"


def case_results(folder: Path, every: int = 1) -> dict[str, Any]:
    """Return the results of the commands for each case, or every `every`-th, without empty values.

    Each case is a home.
    """
    return {corpus: dict(_corpus_results(folder, corpus, every)) for corpus in CORPORA}


def _corpus_results(folder: Path, corpus: str, every: int) -> Iterator[tuple[str, Any]]:
    for case in cases(corpus)[::every]:
        home = case.write_home(folder / corpus / case.folder.name)
        results = {
            name: _run_command(*arguments, "--json", "--home", home) for name, arguments in _CASE_COMMANDS.items()
        }
        listed = results["list"] if isinstance(results["list"], list) else []  # none: not a list, but an exit code
        results["tree"] = [_run_command("tree", session["path"], "--json", "--home", home) for session in listed]
        results = {name: value for name, value in results.items() if value != {"exit": 1, "answer": []}}
        names = {str(home / "projects" / "-work-app"): "<project>", str(home): "<home>", **_SHORT}
        yield case.folder.name, _without_empty(normalize(results, names))
        shutil.rmtree(home)


def _without_empty(value: Any) -> Any:
    """The value without empty items, and without what is the same for all cases or too long."""
    if isinstance(value, Mapping):
        items = ((key, _without_empty(item)) for key, item in value.items() if key not in _SAME_FOR_ALL | _TOO_LONG)
        return {key: item for key, item in items if item or item is True}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


def _mask(value: Any, keys: set[str]) -> Any:
    """The value with placeholders for some keys, which differ between runs."""
    if isinstance(value, Mapping):
        return {key: f"<{key}>" if key in keys and item else _mask(item, keys) for key, item in value.items()}
    return [_mask(item, keys) for item in value] if isinstance(value, list) else value


SUITES: Mapping[str, Callable[..., dict[str, Any]]] = {
    "commands": commands,
    "keep": keep,
    "pages": pages,
    "library": library,
    "api": api,
    "cases": case_results,
}
"""The suites, by the folder of their golden files."""


def run_suite(suite: str, folder: Path, **options: int) -> dict[str, Any]:
    """The results of a suite, by the names of their golden files. `folder` is empty, and is written to."""
    with entry_points.isolated(folder):
        results = SUITES[suite](folder, **options)
    return {name: normalize(value, varying_names(folder)) for name, value in results.items()}
