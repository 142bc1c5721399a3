"""A call of every tool, as Claude Code writes it, and the words that its view must contain."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from tests.render.html.calls_and_pages import make_call

from threadline.model.calls import Call, Outcome

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PATCH = [{"oldStart": 7, "oldLines": 2, "newStart": 7, "newLines": 2, "lines": [" same", "-a = 1", "+a = 10"]}]
QUESTIONS = [
    {
        "question": "Which way?",
        "header": "Way",
        "options": [
            {"label": "Left", "description": "the short one"},
            {"label": "Right", "description": "the dry one"},
        ],
        "multiSelect": True,
    },
    {"question": "How far?", "header": "Far", "options": [{"label": "A mile", "description": "far"}]},
]
TODOS = [{"content": "One", "status": "completed"}, {"content": "Two", "status": "in_progress"}]


class Case(Struct, frozen=True):
    """A call, and the words that its view must contain."""

    tool: str
    arguments: Any
    output: Any
    details: Any
    words: tuple[str, ...]
    outcome: Outcome = Outcome.OK

    def call(self) -> Call:
        """The call."""
        return make_call(self.tool, self.arguments, self.output, self.details, self.outcome)


CASES: tuple[Case, ...] = (
    Case(
        "Bash",
        {"command": "ls -l", "description": "List", "run_in_background": True},
        "a\nb",
        {"stdout": "out text", "stderr": "err text", "interrupted": False, "backgroundTaskId": "b7"},
        ("ls -l", "List", "in the background", "out text", "stderr", "err text", "background task b7"),
    ),
    Case(
        "Bash",
        {"command": "grep x y"},
        "",
        {"stdout": "", "stderr": "", "returnCodeInterpretation": "No matches found"},
        ("grep x y", "No matches found"),
    ),
    Case("Bash", {"command": "true"}, "", {"stdout": "", "stderr": ""}, ("true", "no output")),
    Case(
        "Bash",
        {"command": "make"},
        "Exit code 2\nboom",
        "Error: Exit code 2\nboom",
        ("make", "exit code 2", "boom"),
        Outcome.ERROR,
    ),
    Case(
        "Bash",
        {"command": "sleep 9"},
        "moved",
        {"stdout": "so far", "stderr": "", "timedOutAfterMs": 1000, "backgroundTaskId": "b8"},
        ("sleep 9", "so far", "timed out after 1 s", "The call was interrupted."),
        Outcome.INTERRUPTED,
    ),
    Case("Bash", {"command": "rm x"}, None, None, ("rm x", "The call has no result yet."), Outcome.PENDING),
    Case("Bash", {"command": "rm x"}, None, None, ("rm x", "The transcript has no result"), Outcome.LOST),
    Case("PowerShell", {"command": "Get-Item"}, "x", {"stdout": "item", "stderr": ""}, ("Get-Item", "item")),
    Case(
        "BashOutput",
        {"bash_id": "s1"},
        "x",
        {"shellId": "s1", "command": "npm run", "status": "running", "exitCode": 3, "stdout": "o1", "stderr": "e1"},
        ("npm run", "o1", "e1", "shell s1", "running", "exit code 3"),
    ),
    Case(
        "TaskOutput",
        {"task_id": "t1"},
        "x",
        {
            "retrieval_status": "timeout",
            "task": {
                "task_id": "t1",
                "task_type": "local_bash",
                "status": "running",
                "description": "Run it",
                "output": "so far",
                "exitCode": 1,
            },
        },
        ("Run it", "running", "so far", "exit code 1", "retrieval: timeout"),
    ),
    Case(
        "TaskStop",
        {"task_id": "t1"},
        "{}",
        {"message": "Stopped it", "task_id": "t1", "command": "npm"},
        ("Stopped it", "npm"),
    ),
    Case("KillShell", {"shell_id": "s"}, "x", {"message": "Killed", "shell_id": "s"}, ("Killed",)),
    Case(
        "Monitor",
        {"description": "Watch", "command": "tail -f", "timeout_ms": 3000, "persistent": True},
        "x",
        {"taskId": "m1", "timeoutMs": 3000, "persistent": True},
        ("Watch", "tail -f", "timeout 3 s", "until it is stopped", "background task m1"),
    ),
    Case(
        "Read",
        {"file_path": "/work/app/x.py", "offset": 3, "limit": 2},
        "x",
        {
            "type": "text",
            "file": {
                "filePath": "/work/app/x.py",
                "content": "def f():\n    pass",
                "numLines": 2,
                "startLine": 3,
                "totalLines": 90,
            },
        },
        ("x.py", "lines 3 to 4 of 90", "3\n4", "def f():\n    pass"),
    ),
    Case("Read", {"file_path": "/a.md"}, "     5→five\n     6→six", None, ("lines 5 to 6", "5\n6", "five\nsix")),
    Case(
        "Read",
        {"file_path": "/a.md"},
        "<tool_use_error>No file.</tool_use_error>",
        "Error: No file.",
        ("/a.md", "No file."),
        Outcome.ERROR,
    ),
    Case(
        "Read",
        {"file_path": "/a.md"},
        "x",
        {"type": "file_unchanged", "file": {"filePath": "/a.md"}},
        ("Unchanged since",),
    ),
    Case(
        "Read",
        {"file_path": "/n.ipynb"},
        "x",
        {
            "type": "notebook",
            "file": {
                "filePath": "/n.ipynb",
                "cells": [
                    {"cellType": "code", "source": "print(1)", "language": "python", "outputs": [{"text": "1!"}]}
                ],
            },
        },
        ("/n.ipynb", "notebook", "print(1)", "1!"),
    ),
    Case("View", {"file_path": "/v.txt"}, "     1\tone", None, ("/v.txt", "1 line", "one")),
    Case(
        "NotebookRead",
        {"notebook_path": "/n.ipynb"},
        "x",
        [{"cell": 0, "cellType": "code", "source": "print(7)"}],
        ("/n.ipynb", "print(7)"),
    ),
    Case(
        "Edit",
        {"file_path": "/work/app/x.py", "old_string": "a = 1", "new_string": "a = 10"},
        "ok",
        {"filePath": "/work/app/x.py", "structuredPatch": PATCH, "userModified": True, "replaceAll": True},
        ("x.py", "7\n8", " same\n", "-a = 1\n", "+a = 10\n", "edited by the user", "every occurrence"),
    ),
    Case(
        "Edit",
        {"file_path": "/x", "old_string": "old", "new_string": "new"},
        "no",
        "Error: no",
        ("/x", "-old", "+new", "no"),
        Outcome.ERROR,
    ),
    Case(
        "Edit",
        {"file_path": "/x", "old_string": "old", "new_string": "new"},
        "The user doesn't want to proceed with this tool use. STOP",
        "User rejected tool use",
        ("-old", "+new", "The call was denied and did not run."),
        Outcome.DENIED,
    ),
    Case(
        "MultiEdit",
        {"file_path": "/x", "edits": [{"old_string": "b", "new_string": "c"}]},
        "ok",
        {"filePath": "/x", "edits": [], "structuredPatch": PATCH},
        ("/x", "-a = 1", "+a = 10"),
    ),
    Case(
        "MultiEdit",
        {"file_path": "/x", "edits": [{"old_string": "b", "new_string": "c"}]},
        "no",
        "no",
        ("-b", "+c"),
        Outcome.ERROR,
    ),
    Case(
        "Write",
        {"file_path": "/w", "content": "l1\nl2\n"},
        "ok",
        {"type": "create", "filePath": "/w", "content": "l1\nl2\n", "structuredPatch": [], "originalFile": None},
        ("/w", "created", "1\n2", "+l1\n+l2\n"),
    ),
    Case(
        "Write",
        {"file_path": "/w", "content": "b\n"},
        "ok",
        {"type": "update", "filePath": "/w", "content": "b\n", "structuredPatch": [], "originalFile": "a\n"},
        ("-a\n", "+b\n"),
    ),
    Case("Replace", {"file_path": "/w", "content": "r1"}, "ok", None, ("/w", "+r1", "ok")),
    Case(
        "NotebookEdit",
        {"notebook_path": "/n.ipynb", "new_source": "print(2)"},
        "ok",
        {
            "notebook_path": "/n.ipynb",
            "new_source": "print(2)",
            "old_source": "print(1)",
            "cell_id": "c1",
            "cell_type": "code",
            "edit_mode": "replace",
        },
        ("/n.ipynb", "replace cell c1", "-print(1)", "+print(2)"),
    ),
    Case(
        "Grep",
        {"pattern": "needle", "path": "/work/app/src", "output_mode": "content", "-n": True},
        "x",
        {
            "mode": "content",
            "content": "a.py:3:the needle\na.py-4-below\n--\nb.py:9:needle",
            "numLines": 4,
            "filenames": [],
        },
        ("needle", "src", "4 lines", "a.py\n", "3: the needle", "4  below", "b.py\n", "9: needle"),
    ),
    Case(
        "Grep",
        {"pattern": "needle"},
        "x",
        {"mode": "files_with_matches", "filenames": ["/work/app/a.py", "/b.py"], "numFiles": 2},
        ("2 files", "a.py\n/b.py"),
    ),
    Case(
        "Grep",
        {"pattern": "needle"},
        "x",
        {"mode": "count", "content": "a.py:3", "numMatches": 3, "filenames": []},
        ("3 matches", "a.py:3"),
    ),
    Case("GrepTool", {"pattern": "none"}, "x", {"filenames": [], "numFiles": 0}, ("none", "nothing found")),
    Case(
        "Glob",
        {"pattern": "**/*.py"},
        "x",
        {"filenames": ["/work/app/a.py"], "numFiles": 1, "truncated": True},
        ("**/*.py", "1 file", "a.py", "list truncated"),
    ),
    Case("GlobTool", {"pattern": "*"}, "one.txt\ntwo.txt", None, ("one.txt\ntwo.txt",)),
    Case("LS", {"path": "/work/app"}, "- app/\n  - x", "- app/\n  - x", ("/work/app", "- app/\n  - x")),
    Case(
        "ToolSearch",
        {"query": "select:A"},
        "",
        {"matches": ["A", "B"], "query": "q", "total_deferred_tools": 44},
        ("select:A", "2 tools of 44", "A", "B"),
    ),
    Case(
        "LSP",
        {"operation": "hover", "filePath": "/x.go", "line": 4, "character": 2},
        "x",
        {"operation": "hover", "result": "it is an int", "filePath": "/x.go", "resultCount": 1},
        ("/x.go", "hover", "line 4, character 2", "1 result", "it is an int"),
    ),
    Case(
        "TodoWrite",
        {"todos": TODOS},
        "ok",
        {"oldTodos": [{"content": "One", "status": "pending"}], "newTodos": TODOS},
        ("1 of 2 done", "☒ One", "was pending", "◐ Two", "new"),
    ),
    Case("TodoWrite", {"todos": TODOS}, "bad", "Error: bad", ("☒ One", "bad"), Outcome.ERROR),
    Case("TodoRead", {}, "the list", "the list", ("the list",)),
    Case(
        "TaskCreate",
        {"subject": "Do it", "description": "All **of** it"},
        "ok",
        {"task": {"id": "4", "subject": "Do it"}},
        ("☐ #4 Do it", "All of it"),
    ),
    Case(
        "TaskGet",
        {"taskId": "4"},
        "x",
        {
            "task": {
                "id": "4",
                "subject": "Do it",
                "status": "pending",
                "description": "why",
                "blockedBy": ["2"],
                "blocks": [],
            }
        },
        ("☐ #4 Do it", "waits for #2", "why"),
    ),
    Case(
        "TaskList",
        {},
        "x",
        {"tasks": [{"id": "1", "subject": "A", "status": "completed"}, {"id": "2", "subject": "B"}]},
        ("1 of 2 done", "☒ #1 A", "☐ #2 B"),
    ),
    Case(
        "TaskUpdate",
        {"taskId": "3", "status": "completed", "addBlockedBy": ["1"]},
        "ok",
        {"success": True, "taskId": "3", "statusChange": {"from": "pending", "to": "completed"}},
        ("☒ #3: completed", "was pending", "waits for #1"),
    ),
    Case(
        "TaskUpdate",
        {"taskId": "3", "status": "x"},
        "no",
        {"success": False, "taskId": "3", "error": "Task not found"},
        ("#3", "Task not found"),
        Outcome.ERROR,
    ),
    Case(
        "WebSearch",
        {"query": "cats"},
        "x",
        {
            "query": "cats",
            "results": [{"content": [{"title": "A cat", "url": "https://example.invalid/a"}]}, "Cats **are**"],
        },
        ("searched for cats", "A cat", "Cats are"),
    ),
    Case(
        "WebFetch",
        {"url": "https://example.invalid/p", "prompt": "What is it?"},
        "x",
        {"url": "https://example.invalid/p", "code": 200, "codeText": "OK", "bytes": 12, "result": "# Page"},
        ("https://example.invalid/p", "What is it?", "200 OK", "12 bytes", "Page"),
    ),
    Case("web_search", {"query": "dogs"}, None, None, ("searched for dogs",), Outcome.LOST),
    Case(
        "AskUserQuestion",
        {"questions": QUESTIONS},
        "x",
        {
            "questions": QUESTIONS,
            "answers": {"Which way?": "Left, Right", "How far?": "to the sea"},
            "annotations": {"Which way?": {"notes": "a note"}},
        },
        ("Way", "Which way?", "◉ Left", "the short one", "◉ Right", "How far?", "○ A mile", "to the sea", "a note"),
    ),
    Case("AskUserQuestion", {"questions": QUESTIONS}, "no", "Error: no", ("Which way?", "○ Left", "no"), Outcome.ERROR),
    Case(
        "ExitPlanMode",
        {"plan": "# The plan"},
        "x",
        {"plan": "# The plan", "filePath": "/p.md", "planWasEdited": True},
        ("The plan", "approved", "edited by the user", "saved to /p.md"),
    ),
    Case(
        "exit_plan_mode",
        {"plan": "# The plan"},
        "The user doesn't want to proceed with this tool use.",
        "no",
        ("The plan", "The call was denied"),
        Outcome.DENIED,
    ),
    Case("EnterPlanMode", {}, "In plan mode", {"message": "In plan mode"}, ("In plan mode",)),
    Case(
        "Task",
        {"subagent_type": "x", "description": "Look", "prompt": "Find **it**"},
        "x",
        {
            "status": "completed",
            "agentId": "a1",
            "content": [{"type": "text", "text": "Found *it*\nagentId: a1"}],
            "totalTokens": 1200,
            "totalToolUseCount": 3,
        },
        ("Prompt", "Find it", "Found it", "3 calls", "1.2k tokens"),
    ),
    Case(
        "Agent",
        {"prompt": "Go", "run_in_background": True, "model": "haiku"},
        "x",
        {"status": "async_launched", "isAsync": True, "outputFile": "/o"},
        ("haiku", "started in the background", "/o"),
    ),
    Case("Agent", {"prompt": "Go"}, "Done it\nagentId: a2 (internal)", None, ("Go", "Done it")),
    Case(
        "SendMessage",
        {"to": "a1", "summary": "Again", "message": "Do it again"},
        "{}",
        {"success": True, "message": "Resuming agent"},
        ("to a1", "Again", "Do it again", "Resuming agent"),
    ),
    Case(
        "Workflow",
        {"title": "W", "script": "const a = 1"},
        "x",
        {"status": "async_launched", "runId": "w1", "summary": "sums up", "workflowName": "W", "scriptPath": "/s.js"},
        ("W", "const a = 1", "sums up", "started in the background", "run w1", "/s.js"),
    ),
    Case(
        "Skill",
        {"skill": "review", "args": "all\nof it"},
        "Launching skill: review",
        {"success": True, "commandName": "review", "allowedTools": ["Read", "Grep"]},
        ("all\nof it", "with Read, Grep"),
    ),
    Case(
        "SlashCommand", {"command": "/hello"}, "No such tool", "Error: No such tool", ("No such tool",), Outcome.ERROR
    ),
    Case(
        "CronCreate",
        {"cron": "7 3 * * *", "prompt": "hi there", "recurring": True},
        "x",
        {"id": "c1", "humanSchedule": "Every day", "nextFireAt": 1794800220000},
        ("7 3 * * *", "recurring", "hi there", "Every day", "job c1", "next 2026-11-16 03:37 UTC"),
    ),
    Case(
        "CronList",
        {},
        "x",
        {"jobs": [{"id": "c1", "humanSchedule": "Every day", "prompt": "hi"}]},
        ("c1 · Every day · hi",),
    ),
    Case(
        "ScheduleWakeup",
        {"delaySeconds": 300, "reason": "look again", "prompt": "Check"},
        "Next at 14:55",
        {"scheduledFor": 1784033700000},
        ("in 300 seconds", "look again", "Check", "Next at 14:55"),
    ),
    Case(
        "ReportFindings",
        {"findings": []},
        "x",
        {
            "count": 1,
            "level": "max",
            "findings": [
                {
                    "file": "a.go",
                    "line": 7,
                    "summary": "It leaks",
                    "verdict": "CONFIRMED",
                    "failure_scenario": "when it rains",
                }
            ],
        },
        ("1 finding", "max", "a.go", ":7 CONFIRMED", "It leaks", "when it rains"),
    ),
    Case(
        "Artifact",
        {"file_path": "/a.html", "description": "A page"},
        "x",
        {"url": "https://example.invalid/x", "path": "/a.html", "title": "My page"},
        ("My page", "/a.html", "A page"),
    ),
    Case("SendUserFile", {}, "x", {"attachments": [{"path": "/f.txt"}], "caption": "Here"}, ("Here", "/f.txt")),
    Case(
        "EnterWorktree",
        {"name": "side"},
        "Created it",
        {"worktreePath": "/w", "message": "Created it"},
        ("side", "Created it"),
    ),
    Case("ListAgents", {}, "No agents", {"listing": "No agents"}, ("No agents",)),
    Case(
        "mcp__tiny__shaped",
        {"n": 1, "text": "two\nlines"},
        '{"a":[1.0,{}]}',
        [{"type": "text", "text": "x"}],
        ('"n": 1', "two\nlines", '"a": [\n    1.0,\n    {}\n  ]'),
    ),
    Case("mcp__tiny__plain", {}, "plain words", None, ("plain words",)),
    Case("NoSuchTool", {"x": [1, {"y": None}]}, "came", {"odd": True}, ('"x": [', '"y": null', "came")),
    Case(
        "NoSuchTool",
        {"x": 1},
        "<tool_use_error>Error: No such tool</tool_use_error>",
        "no",
        ('"x": 1', "No such tool"),
        Outcome.ERROR,
    ),
    Case("", "not an object", "came", None, ("not an object", "came")),
)
TOOLS = sorted({case.tool for case in CASES})
