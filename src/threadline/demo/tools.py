"""Tool calls on files and in the shell: what the model asks for and what comes back, field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from threadline.demo.desk import Call
from threadline.demo.scribe import identifier

if TYPE_CHECKING:
    from threadline.demo.desk import Desk

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
"""Which pool the output comes from, the command, and what it is for."""


def bash(desk: Desk) -> Call:
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


def persisted(desk: Desk, printed: str, result: dict[str, Any]) -> str:
    """Put a long output in a file of its own; the transcript gets a stub."""
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


def read(desk: Desk) -> Call:
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


def image(desk: Desk) -> Call:
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


def dump(desk: Desk) -> Call:
    """A whole generated file, or a picture: the lines of half a megabyte and more."""
    if desk.chance(0.4):
        return image(desk)
    path = desk.project.at("testdata/recorded.txt")
    text = desk.pools.logs.take(desk.rng, desk.length(330_000, 0.5, copies=2.4))
    lines = text.count("\n") + 1
    file = {"filePath": path, "content": text, "numLines": lines, "startLine": 1, "totalLines": lines}
    return Call("Read", {"file_path": path}, text, {"type": "text", "file": file})


def _patch(desk: Desk, start: int, lines: list[str]) -> list[dict[str, Any]]:
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


def _change(desk: Desk, before: list[str], start: int) -> tuple[list[str], list[dict[str, Any]]]:
    """Put something else in the middle of some lines; gives the lines after it, and the patch."""
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


def edit(desk: Desk) -> Call:
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


def multi_edit(desk: Desk) -> Call:
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


def write(desk: Desk) -> Call:
    """A new file, or a whole file anew."""
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


def listing(desk: Desk) -> Call:
    """A directory, in the old tool for it."""
    text = f"- {desk.project.path}/\n" + "\n".join(f"  - {desk.pools.words.path()}" for _ in range(20))
    return Call("LS", {"path": desk.project.path}, text, text)
