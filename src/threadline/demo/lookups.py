"""Tool calls that look something up or note something down: search, web, todo lists, MCP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from threadline.demo import tools
from threadline.demo.desk import Call
from threadline.demo.scribe import identifier
from threadline.demo.text import sentence

if TYPE_CHECKING:
    from collections.abc import Callable

    from threadline.demo.desk import Desk

_STEPS = ("pending", "in_progress", "completed")


def glob(desk: Desk) -> Call:
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


def grep(desk: Desk) -> Call:
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


def todo(desk: Desk) -> Call:
    """The todo list as a whole, a little further than before."""
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


def task(desk: Desk) -> Call:
    """A task made, or one moved on."""
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


def fetch(desk: Desk) -> Call:
    """A web page, boiled down."""
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


def search(desk: Desk) -> Call:
    """A web search; since 2.1.205 the number of searches is noted."""
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


def mcp(desk: Desk) -> Call:
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


CHOICES: tuple[tuple[float, str | None, Callable[[Desk], Call]], ...] = (
    (46, None, tools.bash),
    (19, None, tools.read),
    (18, None, tools.edit),
    (4, None, tools.write),
    (5.5, None, grep),
    (3, None, glob),
    (2.5, "TodoWrite", todo),
    (4, "tasks", task),
    (1, "MultiEdit", tools.multi_edit),
    (0.7, "LS", tools.listing),
    (0.9, None, fetch),
    (0.7, None, search),
    (2.5, "gitBranch", mcp),
    (0.12, "gitBranch", tools.image),
)
"""How often each is called among a hundred, what a version must write for it, and what makes it."""
