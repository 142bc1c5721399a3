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
        length = int(self.rng.lognormvariate(0.0, spread) * median)
        return max(24, min(length, LONGEST, int(self.room / (copies * 1.25))))

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


def bash(workspace: Workspace) -> Call:
    """A shell command: mostly it works, sometimes it prints a great deal."""
    rng = workspace.rng
    names = {
        "check": workspace.project.check,
        "path": workspace.file(),
        "folder": rng.choice(workspace.project.folders),
        "verb": rng.choice(workspace.project.verbs),
        "noun": rng.choice(workspace.project.nouns),
        "ext": workspace.project.extension,
    }
    pool, command, description = rng.choice(_SHELL)
    arguments: dict[str, Any] = {"command": command.format(**names), "description": description.format(**names)}
    if workspace.chance(0.2):
        arguments["timeout"] = 120_000
    if workspace.chance(_FAILED):
        text = rng.choice(_ERRORS).format(**names)
        return Call("Bash", arguments, text, f"Error: {text}", error=True)
    printed = workspace.pools.named(pool).take(rng, workspace.length(1_450, 1.35, copies=2))
    result: dict[str, Any] = {"stdout": printed, "stderr": "", "interrupted": False, "isImage": False}
    if workspace.chance(0.05):
        result["stderr"] = f"warning: {workspace.pools.words.phrase()}\nShell cwd was reset to {workspace.project.path}"
    if workspace.era.writes("noOutputExpected"):
        result["noOutputExpected"] = False
    if workspace.era.writes("gitOperation") and "git commit" in command:
        result["gitOperation"] = {"commit": {"sha": f"{rng.getrandbits(28):07x}", "kind": "committed"}}
    content = printed
    if len(printed) > _PERSIST and workspace.era.writes("tool-results"):
        content = persisted(workspace, printed, result)
    return Call("Bash", arguments, content, result, flagged=True, wide=workspace.chance(0.22))


def persisted(workspace: Workspace, printed: str, result: dict[str, Any]) -> str:
    """Write a long output to a file; the transcript gets a stub."""
    raw = printed.encode()
    name = identifier(workspace.rng, "toolu") if workspace.chance(0.5) else f"b{workspace.rng.getrandbits(36):09x}"
    path = workspace.side(f"tool-results/{name}.txt", raw)
    result["stdout"] = printed[:_KEPT]
    result["persistedOutputPath"] = path
    result["persistedOutputSize"] = len(raw)
    return (
        f"<persisted-output>\nOutput too large ({len(raw) / 1024:.1f}KB). Full output saved to: {path}\n\n"
        f"Preview (first 2KB):\n{printed[:_PREVIEW]}\n...\n</persisted-output>"
    )


def read(workspace: Workspace) -> Call:
    """Part of a file, numbered for the model and plain in the result."""
    path = workspace.project.at(workspace.file())
    arguments: dict[str, Any] = {"file_path": path}
    start = 1
    if workspace.chance(0.4):
        start = workspace.rng.randrange(1, 900)
        arguments |= {"offset": start, "limit": workspace.rng.randrange(20, 200)}
    if workspace.chance(_FAILED):
        text = "File does not exist. Note: your current working directory is " + workspace.project.path
        return Call("Read", arguments, f"<tool_use_error>{text}</tool_use_error>", f"Error: {text}", error=True)
    text = workspace.code(workspace.length(2_300, 1.2, copies=2.4), top=start == 1)
    lines = text.split("\n")
    numbered = "\n".join([f"{number:6}→{line}" for number, line in enumerate(lines, start)])
    total = start + len(lines) - 1 + (workspace.rng.randrange(400) if "limit" in arguments else 0)
    file = {
        "filePath": path,
        "content": text,
        "numLines": len(lines),
        "startLine": start,
        "totalLines": total,
    }
    return Call("Read", arguments, numbered, {"type": "text", "file": file})


def image(workspace: Workspace) -> Call:
    """A picture that was read: long, and without a single escape."""
    path = workspace.project.at("docs/screenshot.png")
    data = workspace.pools.signature(workspace.rng, min(workspace.length(120_000, 0.9, copies=2), workspace.room // 2))
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


def dump(workspace: Workspace) -> Call:
    """A whole generated file, or a picture: the lines of half a megabyte and more."""
    if workspace.chance(0.4):
        return image(workspace)
    path = workspace.project.at("testdata/recorded.txt")
    text = workspace.pools.logs.take(workspace.rng, workspace.length(330_000, 0.5, copies=2.4))
    lines = text.count("\n") + 1
    file = {"filePath": path, "content": text, "numLines": lines, "startLine": 1, "totalLines": lines}
    return Call("Read", {"file_path": path}, text, {"type": "text", "file": file})


def _patch(workspace: Workspace, start: int, lines: list[str]) -> list[dict[str, Any]]:
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    workspace.added += added
    workspace.removed += removed
    return [
        {
            "oldStart": start,
            "oldLines": len(lines) - added,
            "newStart": start,
            "newLines": len(lines) - removed,
            "lines": lines,
        }
    ]


def _change(workspace: Workspace, before: list[str], start: int) -> tuple[list[str], list[dict[str, Any]]]:
    """Replace lines in the middle; returns the new lines and the patch."""
    at = int(workspace.rng.random() * len(before))
    removed = before[at : at + 1 + int(workspace.rng.random() * 3)]
    new = workspace.code(workspace.length(260, 0.9, copies=12)).split("\n")
    rest = before[at + len(removed) :]
    lines = [f" {line}" for line in before[max(0, at - 3) : at]]
    patch = _patch(
        workspace,
        start + max(0, at - 3),
        [
            *lines,
            *(f"-{line}" for line in removed),
            *(f"+{line}" for line in new),
            *(f" {line}" for line in rest[:3]),
        ],
    )
    return before[:at] + new + rest, patch


def edit(workspace: Workspace) -> Call:
    """A replacement in a file; the file as it was is in the result unless it is big."""
    relative = workspace.file()
    path = workspace.project.at(relative)
    before = workspace.code(workspace.length(380, 0.9, copies=12)).split("\n")
    above = workspace.code(workspace.length(3_400, 1.0, copies=3.2), top=True)
    after, patch = _change(workspace, before, above.count("\n") + 2)
    old, new = "\n".join(before), "\n".join(after)
    arguments: dict[str, Any] = {"file_path": path, "old_string": old, "new_string": new}
    if workspace.era.writes("model first"):
        arguments = {"replace_all": False, **arguments}
    if workspace.chance(_FAILED):
        text = f"String to replace not found in file.\nString: {old}"
        return Call("Edit", arguments, f"<tool_use_error>{text}</tool_use_error>", f"Error: {text}", error=True)
    original: str | None = "\n".join((above, old, workspace.code(workspace.length(3_400, 1.0, copies=3.2)), ""))
    if workspace.era.writes("null originalFile") and original is not None and len(original) > _BIG_FILE:
        original = None
    workspace.edited[relative] = workspace.edited.get(relative, 0) + 1
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
    if not workspace.era.writes("stop_details"):
        shown = "\n".join([f"{number:6}→{line}" for number, line in enumerate(after, 40)])
        content = f"The file {path} has been updated; around the change:\n{shown}"
    return Call("Edit", arguments, content, result)


def multi_edit(workspace: Workspace) -> Call:
    """Several replacements at once, until autumn 2025."""
    path = workspace.project.at(workspace.file())
    edits = [
        {
            "old_string": workspace.code(workspace.length(200, 0.7, copies=20)),
            "new_string": workspace.code(workspace.length(300, 0.7, copies=20)),
        }
        for _ in range(workspace.rng.randrange(2, 5))
    ]
    result = {
        "filePath": path,
        "edits": [{**edit, "replace_all": False} for edit in edits],
        "originalFileContents": workspace.code(workspace.length(5_000, 0.8, copies=2)),
        "structuredPatch": _patch(workspace, 1, [f"+{line}" for line in edits[0]["new_string"].split("\n")]),
        "userModified": False,
    }
    content = f"Applied {len(edits)} edits to {path}:\n" + "\n".join(
        f'{number}. Replaced "{one["old_string"]}" with "{one["new_string"]}"' for number, one in enumerate(edits, 1)
    )
    return Call("MultiEdit", {"file_path": path, "edits": edits}, content, result)


def write(workspace: Workspace) -> Call:
    """A file that is created or overwritten."""
    relative = workspace.pools.words.path()
    path = workspace.project.at(relative)
    text = workspace.code(workspace.length(2_800, 0.9, copies=1.6), top=True)
    workspace.files[int(workspace.rng.random() * len(workspace.files))] = relative
    workspace.edited[relative] = 0
    arguments = {"file_path": path, "content": text}
    result: dict[str, Any] = {"type": "create", "filePath": path, "content": text, "structuredPatch": []}
    content = f"File created successfully at: {path}"
    if workspace.chance(0.2):
        old = workspace.code(workspace.length(2_000, 0.8, copies=6))
        lines = [f"-{line}" for line in old.split("\n")[:9]] + [f"+{line}" for line in text.split("\n")[:12]]
        result |= {"type": "update", "structuredPatch": _patch(workspace, 1, lines), "originalFile": old}
        content = f"The file {path} has been updated."
    elif workspace.era.writes("sourceToolAssistantUUID"):
        result["originalFile"] = None
        workspace.added += text.count("\n") + 1
    return Call("Write", arguments, content, result)


def listing(workspace: Workspace) -> Call:
    """A directory, listed with the old tool."""
    text = f"- {workspace.project.path}/\n" + "\n".join(f"  - {workspace.pools.words.path()}" for _ in range(20))
    return Call("LS", {"path": workspace.project.path}, text, text)


_STEPS = ("pending", "in_progress", "completed")


def glob(workspace: Workspace) -> Call:
    """File names by pattern."""
    names = [workspace.project.at(workspace.pools.words.path()) for _ in range(workspace.rng.randrange(1, 60))]
    result: dict[str, Any] = {
        "filenames": names,
        "durationMs": workspace.rng.randrange(5, 400),
        "numFiles": len(names),
        "truncated": False,
    }
    if workspace.era.writes("toolDenialKind"):
        result |= {"totalMatches": len(names), "countIsComplete": True}
    return Call("Glob", {"pattern": f"**/*.{workspace.project.extension}"}, "\n".join(names), result)


def grep(workspace: Workspace) -> Call:
    """Lines or files that match."""
    pattern = workspace.rng.choice(workspace.project.verbs) + r"\w*\("
    folder = workspace.rng.choice(workspace.project.folders)
    if workspace.chance(0.25):
        names = [workspace.pools.words.path() for _ in range(workspace.rng.randrange(1, 30))]
        content = f"Found {len(names)} files\n" + "\n".join(names)
        arguments: dict[str, Any] = {"pattern": pattern, "path": folder, "output_mode": "files_with_matches"}
        return Call(
            "Grep", arguments, content, {"mode": "files_with_matches", "filenames": names, "numFiles": len(names)}
        )
    text = workspace.pools.search.take(workspace.rng, workspace.length(900, 1.1, copies=2))
    arguments = {"pattern": pattern, "path": folder, "output_mode": "content", "-n": True}
    result: dict[str, Any] = {
        "mode": "content",
        "numFiles": 0,
        "filenames": [],
        "content": text,
        "numLines": text.count("\n") + 1,
    }
    if workspace.chance(0.1):
        result["appliedLimit"] = 250
    return Call("Grep", arguments, text, result)


def todo(workspace: Workspace) -> Call:
    """The whole todo list, with some progress."""
    old = [dict(item) for item in workspace.todos]
    if not workspace.todos:
        for _ in range(workspace.rng.randrange(3, 7)):
            text = workspace.pools.words.phrase()
            workspace.todos.append(
                {"content": sentence(text), "status": "pending", "activeForm": f"Checking that {text}"}
            )
            if not workspace.era.writes("model first"):
                workspace.todos[-1] = {
                    "content": sentence(text),
                    "status": "pending",
                    "priority": workspace.rng.choice(("high", "medium", "low")),
                    "id": str(len(workspace.todos)),
                }
    for item in workspace.todos:
        if item["status"] != "completed":
            item["status"] = _STEPS[_STEPS.index(item["status"]) + 1]
            break
    new = [dict(item) for item in workspace.todos]
    text = f"Todos have been updated: {len(new)} of them."
    return Call("TodoWrite", {"todos": new}, text, {"oldTodos": old, "newTodos": new})


def task(workspace: Workspace) -> Call:
    """A task that is created or updated."""
    open_ones = [task for task in workspace.tasks if task["status"] != "completed"]
    if not open_ones or workspace.chance(0.3):
        number = str(len(workspace.tasks) + 1)
        text = workspace.pools.words.phrase()
        fields = {
            "subject": sentence(text),
            "description": f"{text}: {workspace.pools.words.phrase()}",
            "activeForm": text,
        }
        workspace.tasks.append({"id": number, **fields, "status": "pending", "blocks": [], "blockedBy": []})
        content = f"Task #{number} created successfully: {fields['subject']}"
        return Call("TaskCreate", fields, content, {"task": {"id": number, "subject": fields["subject"]}})
    one = open_ones[0]
    before = one["status"]
    one["status"] = _STEPS[_STEPS.index(before) + 1]
    result: dict[str, Any] = {
        "success": True,
        "taskId": one["id"],
        "updatedFields": ["status"],
        "statusChange": {"from": before, "to": one["status"]},
    }
    arguments = {"taskId": one["id"], "status": one["status"]}
    return Call("TaskUpdate", arguments, f"Updated task #{one['id']} status", result)


def fetch(workspace: Workspace) -> Call:
    """A summary of a web page."""
    noun = workspace.rng.choice(workspace.project.nouns)
    url = f"https://docs.example.test/{noun}/{workspace.rng.choice(workspace.project.verbs)}"
    text = workspace.pools.web.take(workspace.rng, workspace.length(1_500, 0.8, copies=2))
    result = {
        "bytes": len(text) * 7,
        "code": 200,
        "codeText": "OK",
        "result": text,
        "durationMs": workspace.rng.randrange(900, 9_000),
        "url": url,
    }
    return Call("WebFetch", {"url": url, "prompt": f"What does it say about the {noun}?"}, text, result)


def search(workspace: Workspace) -> Call:
    """A web search; since 2.1.205 the number of searches is recorded."""
    rng = workspace.rng
    project = workspace.project
    query = f"{rng.choice(project.verbs)} {rng.choice(project.nouns)} {project.language} best practice"
    links = [
        {
            "title": sentence(workspace.pools.words.phrase()),
            "url": f"https://{one}.example.test/{rng.getrandbits(20):x}",
        }
        for one in ("blog", "forum", "docs", "wiki", "news")
    ]
    text = workspace.pools.web.take(rng, workspace.length(900, 0.5, copies=2))
    shown = ", ".join(f'{{"title":"{link["title"]}","url":"{link["url"]}"}}' for link in links)
    content = f'Web search results for query: "{query}"\n\nLinks: [{shown}]\n\n{text}'
    result_block = {"tool_use_id": identifier(rng, "srvtoolu"), "content": links}
    result: dict[str, Any] = {
        "query": query,
        "results": [result_block, text],
        "durationSeconds": round(rng.uniform(2, 12), 6),
    }
    if workspace.era.writes("searchCount"):
        result["searchCount"] = 1
    workspace.searches += 1
    return Call("WebSearch", {"query": query}, content, result)


def mcp(workspace: Workspace) -> Call:
    """A tool of an MCP server: the result is a list of blocks, often with JSON in its text."""
    rng = workspace.rng
    number = rng.randrange(10, 900)
    if workspace.chance(0.1):
        text = f"MCP error -32603: issue KET-{number} not found"
        return Call("mcp__tracker__get_issue", {"id": f"KET-{number}"}, text, f"Error: {text}", error=True)
    phrase = workspace.pools.words.phrase()
    body = workspace.pools.reply.take(rng, workspace.length(600, 0.8, copies=2.6))
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
