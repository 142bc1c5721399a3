"""Tool calls with their results: files, shell, search, web, todo lists, MCP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tools.demo.text import sentence
from tools.demo.writer import identifier

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    from tools.demo.projects import Project
    from tools.demo.text import Pools
    from tools.demo.versions import VersionFeatures

HOME = "/home/mara/.claude"
"""The path of the home in its files. The real path is another one, which must not change the files."""

LONGEST = 900_000
"""The maximum length of a text. A line with two copies of it may have more than 1 MB."""


class Call(msgspec.Struct):
    """A tool call and its result."""

    name: str
    input: dict[str, Any]
    content: Any
    """What the model gets: text, or a list of blocks."""
    result: Any = None
    """`toolUseResult`; for an error, its text."""
    error: bool = False
    flagged: bool = False
    """Whether `is_error: false` is written, as for shell commands."""
    wide: bool = False
    """Long-running: progress rows make sense."""


class Workspace:
    """The state of one agent at work: the main one or a subagent."""

    def __init__(
        self, *, rng: Random, era: VersionFeatures, project: Project, pools: Pools, session: str, root: Path
    ) -> None:
        self.rng = rng
        self.era = era
        self.project = project
        self.pools = pools
        self.session = session
        self.root = root
        """The home, as it is being written."""
        self.room = 1 << 60
        """The maximum number of bytes of the next line."""
        self.files = [pools.words.path() for _ in range(12)]
        self.todos: list[dict[str, Any]] = []
        self.tasks: list[dict[str, Any]] = []
        self.edited: dict[str, int] = {}
        """How often each file was edited, by path relative to the project."""
        self.added = 0
        self.removed = 0
        self.searches = 0

    def chance(self, share: float) -> bool:
        """True in that share of cases."""
        return self.rng.random() < share

    def length(self, median: int, spread: float = 1.0, copies: float = 1.0) -> int:
        """A length around the median, lognormal, that leaves room when the text is written so many times."""
        wanted = int(self.rng.lognormvariate(0.0, spread) * median)
        return max(24, min(wanted, LONGEST, int(self.room / (copies * 1.25))))

    def file(self) -> str:
        """A file of the project, relative to it: mostly one that was seen before."""
        if self.chance(0.1):
            self.files[int(self.rng.random() * len(self.files))] = self.pools.words.path()
        return self.files[int(self.rng.random() * len(self.files))]

    def code(self, length: int, *, top: bool = False) -> str:
        """Lines of the project's code; from the top of a file they begin with a whole piece."""
        return self.pools.code.take(self.rng, length, "\n\n" if top else None)

    def folder(self) -> str:
        """The directory of the session's side files, as it is written in rows."""
        return f"{HOME}/projects/{self.project.folder}/{self.session}"

    def side(self, name: str, content: bytes) -> str:
        """Write a file beside the transcript; returns its path as written in rows."""
        path = self.root / "projects" / self.project.folder / self.session / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return f"{self.folder()}/{name}"


_PERSIST = 50_000
_PREVIEW = 2_000
_KEPT = 30_000
_BIG_FILE = 60_000
_FAILED = 0.06

_ERRORS = (
    "Exit code 1\nerror: the {noun} is not there: {path}",
    "Exit code 127\nzsh: command not found: {verb}",
    "Exit code 2\n{path}:12:5: error: expected ';' before '}}' token",
    "Exit code 128\nfatal: not a git repository (or any of the parent directories): .git",
)

_SHELL: tuple[tuple[str, str, str], ...] = (
    ("tests", "{check}", "Run the tests"),
    ("git", "git diff -- {folder}", "Show what changed"),
    ("git", "git log -n 20 --stat -- {path}", "Show recent commits of the file"),
    ("search", 'grep -rn "{verb}" {folder} | head -50', "Find uses of {verb}"),
    ("code", "sed -n '1,120p' {path}", "Show the beginning of the file"),
    ("listing", 'find . -name "*.{ext}" -not -path "./vendor/*" | xargs ls -la', "List the files"),
    ("tests", "{check} 2>&1 | tail -40", "Run the tests, show the end"),
    ("logs", 'tail -n 200 log/{noun}.log | grep -v "{verb}"', "Look at the log"),
    (
        "git",
        "git add -A && git commit -m \"$(cat <<'EOF'\n{verb} the {noun} once\n\nIt was done twice.\nEOF\n)\"",
        "Commit",
    ),
    (
        "logs",
        'python3 - <<\'EOF\'\nimport json\nprint(json.load(open("{path}.json"))["{noun}"])\nEOF',
        "Look into the file",
    ),
    ("listing", "ls -la {folder} && du -sh {folder}", "List the folder"),
)
"""The pool of the output, the command, and its description."""


def bash(desk: Workspace) -> Call:
    """A shell command: mostly it works, sometimes it prints a great deal."""
    rng = desk.rng
    names = {
        "check": desk.project.check,
        "path": desk.file(),
        "folder": rng.choice(desk.project.folders),
        "verb": rng.choice(desk.project.verbs),
        "noun": rng.choice(desk.project.nouns),
        "ext": desk.project.extension,
    }
    pool, command, description = rng.choice(_SHELL)
    asked: dict[str, Any] = {"command": command.format(**names), "description": description.format(**names)}
    if desk.chance(0.2):
        asked["timeout"] = 120_000
    if desk.chance(_FAILED):
        text = rng.choice(_ERRORS).format(**names)
        return Call("Bash", asked, text, f"Error: {text}", error=True)
    printed = desk.pools.named(pool).take(rng, desk.length(1_450, 1.35, copies=2))
    result: dict[str, Any] = {"stdout": printed, "stderr": "", "interrupted": False, "isImage": False}
    if desk.chance(0.05):
        result["stderr"] = f"warning: {desk.pools.words.phrase()}\nShell cwd was reset to {desk.project.path}"
    if desk.era.writes("noOutputExpected"):
        result["noOutputExpected"] = False
    if desk.era.writes("gitOperation") and "git commit" in command:
        result["gitOperation"] = {"commit": {"sha": f"{rng.getrandbits(28):07x}", "kind": "committed"}}
    content = printed
    if len(printed) > _PERSIST and desk.era.writes("tool-results"):
        content = persisted(desk, printed, result)
    return Call("Bash", asked, content, result, flagged=True, wide=desk.chance(0.22))


def persisted(desk: Workspace, printed: str, result: dict[str, Any]) -> str:
    """Write a long output to a file; the transcript gets a stub."""
    raw = printed.encode()
    name = identifier(desk.rng, "toolu") if desk.chance(0.5) else f"b{desk.rng.getrandbits(36):09x}"
    path = desk.side(f"tool-results/{name}.txt", raw)
    result["stdout"] = printed[:_KEPT]
    result["persistedOutputPath"] = path
    result["persistedOutputSize"] = len(raw)
    return (
        f"<persisted-output>\nOutput too large ({len(raw) / 1024:.1f}KB). Full output saved to: {path}\n\n"
        f"Preview (first 2KB):\n{printed[:_PREVIEW]}\n...\n</persisted-output>"
    )


def read(desk: Workspace) -> Call:
    """Part of a file, numbered for the model and plain in the result."""
    path = desk.project.at(desk.file())
    asked: dict[str, Any] = {"file_path": path}
    start = 1
    if desk.chance(0.4):
        start = desk.rng.randrange(1, 900)
        asked |= {"offset": start, "limit": desk.rng.randrange(20, 200)}
    if desk.chance(_FAILED):
        text = "File does not exist. Note: your current working directory is " + desk.project.path
        return Call("Read", asked, f"<tool_use_error>{text}</tool_use_error>", f"Error: {text}", error=True)
    text = desk.code(desk.length(2_300, 1.2, copies=2.4), top=start == 1)
    lines = text.split("\n")
    numbered = "\n".join([f"{number:6}→{line}" for number, line in enumerate(lines, start)])
    total = start + len(lines) - 1 + (desk.rng.randrange(400) if "limit" in asked else 0)
    file = {
        "filePath": path,
        "content": text,
        "numLines": len(lines),
        "startLine": start,
        "totalLines": total,
    }
    return Call("Read", asked, numbered, {"type": "text", "file": file})


def image(desk: Workspace) -> Call:
    """A picture that was read: long, and without a single escape."""
    path = desk.project.at("docs/screenshot.png")
    data = desk.pools.signature(desk.rng, min(desk.length(120_000, 0.9, copies=2), desk.room // 2))
    block = {"type": "image", "source": {"type": "base64", "data": data, "media_type": "image/png"}}
    file = {
        "base64": data,
        "type": "image/png",
        "originalSize": len(data) * 3 // 4,
        "dimensions": {
            "originalWidth": 1280,
            "originalHeight": 800,
            "displayWidth": 1280,
            "displayHeight": 800,
        },
    }
    return Call("Read", {"file_path": path}, [block], {"type": "image", "file": file})


def dump(desk: Workspace) -> Call:
    """A whole generated file, or a picture: the lines of half a megabyte and more."""
    if desk.chance(0.4):
        return image(desk)
    path = desk.project.at("testdata/recorded.txt")
    text = desk.pools.logs.take(desk.rng, desk.length(330_000, 0.5, copies=2.4))
    lines = text.count("\n") + 1
    file = {"filePath": path, "content": text, "numLines": lines, "startLine": 1, "totalLines": lines}
    return Call("Read", {"file_path": path}, text, {"type": "text", "file": file})


def _patch(desk: Workspace, start: int, lines: list[str]) -> list[dict[str, Any]]:
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    desk.added += added
    desk.removed += removed
    return [
        {
            "oldStart": start,
            "oldLines": len(lines) - added,
            "newStart": start,
            "newLines": len(lines) - removed,
            "lines": lines,
        }
    ]


def _change(desk: Workspace, before: list[str], start: int) -> tuple[list[str], list[dict[str, Any]]]:
    """Replace lines in the middle; returns the new lines and the patch."""
    at = int(desk.rng.random() * len(before))
    gone = before[at : at + 1 + int(desk.rng.random() * 3)]
    new = desk.code(desk.length(260, 0.9, copies=12)).split("\n")
    rest = before[at + len(gone) :]
    lines = [f" {line}" for line in before[max(0, at - 3) : at]]
    patch = _patch(
        desk,
        start + max(0, at - 3),
        [
            *lines,
            *(f"-{line}" for line in gone),
            *(f"+{line}" for line in new),
            *(f" {line}" for line in rest[:3]),
        ],
    )
    return before[:at] + new + rest, patch


def edit(desk: Workspace) -> Call:
    """A replacement in a file; the file as it was is in the result unless it is big."""
    relative = desk.file()
    path = desk.project.at(relative)
    before = desk.code(desk.length(380, 0.9, copies=12)).split("\n")
    above = desk.code(desk.length(3_400, 1.0, copies=3.2), top=True)
    after, patch = _change(desk, before, above.count("\n") + 2)
    old, new = "\n".join(before), "\n".join(after)
    asked: dict[str, Any] = {"file_path": path, "old_string": old, "new_string": new}
    if desk.era.writes("model first"):
        asked = {"replace_all": False, **asked}
    if desk.chance(_FAILED):
        text = f"String to replace not found in file.\nString: {old}"
        return Call("Edit", asked, f"<tool_use_error>{text}</tool_use_error>", f"Error: {text}", error=True)
    original: str | None = "\n".join((above, old, desk.code(desk.length(3_400, 1.0, copies=3.2)), ""))
    if desk.era.writes("null originalFile") and original is not None and len(original) > _BIG_FILE:
        original = None
    desk.edited[relative] = desk.edited.get(relative, 0) + 1
    result = {
        "filePath": path,
        "oldString": old,
        "newString": new,
        "originalFile": original,
        "structuredPatch": patch,
        "userModified": False,
        "replaceAll": False,
    }
    content = f"The file {path} has been updated successfully."
    if not desk.era.writes("stop_details"):
        shown = "\n".join([f"{number:6}→{line}" for number, line in enumerate(after, 40)])
        content = f"The file {path} has been updated; around the change:\n{shown}"
    return Call("Edit", asked, content, result)


def multi_edit(desk: Workspace) -> Call:
    """Several replacements at once, until autumn 2025."""
    path = desk.project.at(desk.file())
    edits = [
        {
            "old_string": desk.code(desk.length(200, 0.7, copies=20)),
            "new_string": desk.code(desk.length(300, 0.7, copies=20)),
        }
        for _ in range(desk.rng.randrange(2, 5))
    ]
    result = {
        "filePath": path,
        "edits": [{**edit, "replace_all": False} for edit in edits],
        "originalFileContents": desk.code(desk.length(5_000, 0.8, copies=2)),
        "structuredPatch": _patch(desk, 1, [f"+{line}" for line in edits[0]["new_string"].split("\n")]),
        "userModified": False,
    }
    content = f"Applied {len(edits)} edits to {path}:\n" + "\n".join(
        f'{number}. Replaced "{one["old_string"]}" with "{one["new_string"]}"' for number, one in enumerate(edits, 1)
    )
    return Call("MultiEdit", {"file_path": path, "edits": edits}, content, result)


def write(desk: Workspace) -> Call:
    """A file that is created or overwritten."""
    relative = desk.pools.words.path()
    path = desk.project.at(relative)
    text = desk.code(desk.length(2_800, 0.9, copies=1.6), top=True)
    desk.files[int(desk.rng.random() * len(desk.files))] = relative
    desk.edited[relative] = 0
    asked = {"file_path": path, "content": text}
    result: dict[str, Any] = {"type": "create", "filePath": path, "content": text, "structuredPatch": []}
    content = f"File created successfully at: {path}"
    if desk.chance(0.2):
        old = desk.code(desk.length(2_000, 0.8, copies=6))
        lines = [f"-{line}" for line in old.split("\n")[:9]] + [f"+{line}" for line in text.split("\n")[:12]]
        result |= {"type": "update", "structuredPatch": _patch(desk, 1, lines), "originalFile": old}
        content = f"The file {path} has been updated."
    elif desk.era.writes("sourceToolAssistantUUID"):
        result["originalFile"] = None
        desk.added += text.count("\n") + 1
    return Call("Write", asked, content, result)


def listing(desk: Workspace) -> Call:
    """A directory, listed with the old tool."""
    text = f"- {desk.project.path}/\n" + "\n".join(f"  - {desk.pools.words.path()}" for _ in range(20))
    return Call("LS", {"path": desk.project.path}, text, text)


_STEPS = ("pending", "in_progress", "completed")


def glob(desk: Workspace) -> Call:
    """File names by pattern."""
    names = [desk.project.at(desk.pools.words.path()) for _ in range(desk.rng.randrange(1, 60))]
    result: dict[str, Any] = {
        "filenames": names,
        "durationMs": desk.rng.randrange(5, 400),
        "numFiles": len(names),
        "truncated": False,
    }
    if desk.era.writes("toolDenialKind"):
        result |= {"totalMatches": len(names), "countIsComplete": True}
    return Call("Glob", {"pattern": f"**/*.{desk.project.extension}"}, "\n".join(names), result)


def grep(desk: Workspace) -> Call:
    """Lines or files that match."""
    pattern = desk.rng.choice(desk.project.verbs) + r"\w*\("
    folder = desk.rng.choice(desk.project.folders)
    if desk.chance(0.25):
        names = [desk.pools.words.path() for _ in range(desk.rng.randrange(1, 30))]
        content = f"Found {len(names)} files\n" + "\n".join(names)
        asked: dict[str, Any] = {"pattern": pattern, "path": folder, "output_mode": "files_with_matches"}
        return Call("Grep", asked, content, {"mode": "files_with_matches", "filenames": names, "numFiles": len(names)})
    text = desk.pools.search.take(desk.rng, desk.length(900, 1.1, copies=2))
    asked = {"pattern": pattern, "path": folder, "output_mode": "content", "-n": True}
    result: dict[str, Any] = {
        "mode": "content",
        "numFiles": 0,
        "filenames": [],
        "content": text,
        "numLines": text.count("\n") + 1,
    }
    if desk.chance(0.1):
        result["appliedLimit"] = 250
    return Call("Grep", asked, text, result)


def todo(desk: Workspace) -> Call:
    """The whole todo list, with some progress."""
    old = [dict(item) for item in desk.todos]
    if not desk.todos:
        for _ in range(desk.rng.randrange(3, 7)):
            text = desk.pools.words.phrase()
            desk.todos.append({"content": sentence(text), "status": "pending", "activeForm": f"Checking that {text}"})
            if not desk.era.writes("model first"):
                desk.todos[-1] = {
                    "content": sentence(text),
                    "status": "pending",
                    "priority": desk.rng.choice(("high", "medium", "low")),
                    "id": str(len(desk.todos)),
                }
    for item in desk.todos:
        if item["status"] != "completed":
            item["status"] = _STEPS[_STEPS.index(item["status"]) + 1]
            break
    new = [dict(item) for item in desk.todos]
    text = f"Todos have been updated: {len(new)} of them."
    return Call("TodoWrite", {"todos": new}, text, {"oldTodos": old, "newTodos": new})


def task(desk: Workspace) -> Call:
    """A task that is created or updated."""
    open_ones = [task for task in desk.tasks if task["status"] != "completed"]
    if not open_ones or desk.chance(0.3):
        number = str(len(desk.tasks) + 1)
        text = desk.pools.words.phrase()
        made = {
            "subject": sentence(text),
            "description": f"{text}: {desk.pools.words.phrase()}",
            "activeForm": text,
        }
        desk.tasks.append({"id": number, **made, "status": "pending", "blocks": [], "blockedBy": []})
        content = f"Task #{number} created successfully: {made['subject']}"
        return Call("TaskCreate", made, content, {"task": {"id": number, "subject": made["subject"]}})
    one = open_ones[0]
    before = one["status"]
    one["status"] = _STEPS[_STEPS.index(before) + 1]
    result: dict[str, Any] = {
        "success": True,
        "taskId": one["id"],
        "updatedFields": ["status"],
        "statusChange": {"from": before, "to": one["status"]},
    }
    asked = {"taskId": one["id"], "status": one["status"]}
    return Call("TaskUpdate", asked, f"Updated task #{one['id']} status", result)


def fetch(desk: Workspace) -> Call:
    """A summary of a web page."""
    noun = desk.rng.choice(desk.project.nouns)
    url = f"https://docs.example.test/{noun}/{desk.rng.choice(desk.project.verbs)}"
    text = desk.pools.web.take(desk.rng, desk.length(1_500, 0.8, copies=2))
    result = {
        "bytes": len(text) * 7,
        "code": 200,
        "codeText": "OK",
        "result": text,
        "durationMs": desk.rng.randrange(900, 9_000),
        "url": url,
    }
    return Call("WebFetch", {"url": url, "prompt": f"What does it say about the {noun}?"}, text, result)


def search(desk: Workspace) -> Call:
    """A web search; since 2.1.205 the number of searches is recorded."""
    rng = desk.rng
    project = desk.project
    query = f"{rng.choice(project.verbs)} {rng.choice(project.nouns)} {project.language} best practice"
    links = [
        {
            "title": sentence(desk.pools.words.phrase()),
            "url": f"https://{one}.example.test/{rng.getrandbits(20):x}",
        }
        for one in ("blog", "forum", "docs", "wiki", "news")
    ]
    text = desk.pools.web.take(rng, desk.length(900, 0.5, copies=2))
    shown = ", ".join(f'{{"title":"{link["title"]}","url":"{link["url"]}"}}' for link in links)
    content = f'Web search results for query: "{query}"\n\nLinks: [{shown}]\n\n{text}'
    found = {"tool_use_id": identifier(rng, "srvtoolu"), "content": links}
    result: dict[str, Any] = {
        "query": query,
        "results": [found, text],
        "durationSeconds": round(rng.uniform(2, 12), 6),
    }
    if desk.era.writes("searchCount"):
        result["searchCount"] = 1
    desk.searches += 1
    return Call("WebSearch", {"query": query}, content, result)


def mcp(desk: Workspace) -> Call:
    """A tool of an MCP server: the result is a list of blocks, often with JSON in its text."""
    rng = desk.rng
    number = rng.randrange(10, 900)
    if desk.chance(0.1):
        text = f"MCP error -32603: issue KET-{number} not found"
        return Call("mcp__tracker__get_issue", {"id": f"KET-{number}"}, text, f"Error: {text}", error=True)
    phrase = desk.pools.words.phrase()
    body = desk.pools.reply.take(rng, desk.length(600, 0.8, copies=2.6))
    escaped = body.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    text = f'{{"id":"KET-{number}","title":"{phrase}","state":"open","description":"{escaped}"}}'
    blocks = [{"type": "text", "text": text}]
    return Call("mcp__tracker__get_issue", {"id": f"KET-{number}"}, blocks, blocks)


CHOICES: tuple[tuple[float, str | None, Callable[[Workspace], Call]], ...] = (
    (46, None, bash),
    (19, None, read),
    (18, None, edit),
    (4, None, write),
    (5.5, None, grep),
    (3, None, glob),
    (2.5, "TodoWrite", todo),
    (4, "tasks", task),
    (1, "MultiEdit", multi_edit),
    (0.7, "LS", listing),
    (0.9, None, fetch),
    (0.7, None, search),
    (2.5, "gitBranch", mcp),
    (0.12, "gitBranch", image),
)
"""The calls among a hundred, the feature that the version must have, and the function that generates the call."""
