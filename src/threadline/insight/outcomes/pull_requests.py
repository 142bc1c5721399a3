"""Recognise pull requests and merge requests: of GitHub, GitLab, Bitbucket, Gitea and Azure DevOps.

Evidence is what a command line tool (`gh`, `glab`, `hub`, `az`, `tea`, `gt`), a server of merge requests (as part of a
push) or an MCP tool printed, or `gitOperation` in the tool's own result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from threadline.model.insight.outcomes import OutcomeKind, OutcomeRow
from threadline.shell_syntax import SimpleCommand, decides_exit_code, program_name, split_subcommand

_ADDRESS = re.compile(
    r"https?://(?P<host>[\w.-]+(?::\d+)?)/(?P<path>[\w.~%/@+-]+?)"
    r"/(?:-/)?(?:pull|pulls|merge_requests|pull-requests|pullrequest|pullrequests)/(?P<number>\d+)\b"
)
_GRAPHITE = re.compile(r"https?://app\.graphite\.\w+/github/pr/(?P<path>[\w.-]+/[\w.-]+)/(?P<number>\d+)")
_NUMBER = re.compile(r"(?:pull request|merge request|MR|PR)\s+(?:[\w.-]+/[\w.-]+)?[#!](?P<number>\d+)", re.IGNORECASE)
_MCP_TOOL = re.compile(r"mcp__.+__(?P<verb>create|merge|close)_?(?:pull_?request|merge_?request|pr|mr)$", re.IGNORECASE)
_VIEWED = re.compile(r"View merge request[^\n]*\n(?=(?P<line>[^\n]*))")
_JSON_NUMBER = re.compile(r'"(?:number|iid|pullRequestId)":\s*(?P<number>\d+)')

ACTIONS = {
    "create": "created",
    "new": "created",
    "open": "created",
    "merge": "merged",
    "accept": "merged",
    "close": "closed",
    "reopen": "reopened",
    "ready": "marked ready",
    "edit": "edited",
    "update": "edited",
    "comment": "commented",
    "note": "commented",
    "review": "reviewed",
    "approve": "approved",
}
"""What the subcommands of `gh pr` and `glab mr` do. Others only read."""
_CREATING = frozenset(
    {("hub", "pull-request"), ("az", "repos", "pr", "create"), ("gt", "submit"), ("gt", "ss"), ("gt", "s")}
)
COUNTED_ACTIONS = frozenset(("created", "merged", "linked"))
"""The actions that make a pull request an outcome of the session: to comment on one is not enough."""


def find_pull_requests(commands: Sequence[SimpleCommand], output: str, result: Any, *, is_ok: bool) -> list[OutcomeRow]:
    """The pull requests that a command created, merged or changed."""
    recorded = _recorded(result)
    if recorded is not None:
        return [recorded]
    rows: list[OutcomeRow] = []
    for at, simple in enumerate(commands):
        request = _request_of(simple)
        if request is None:
            continue
        action, named = request
        is_done = is_ok and decides_exit_code(commands, at)
        row = _row(action, named, output, is_done=is_done)
        if row is not None:
            rows.append(row)
    return list({(row.action, row.ref or row.label): row for row in rows}.values())


def pull_request_of_tool(tool: str, arguments: Any, output: str, *, is_ok: bool) -> OutcomeRow | None:
    """The pull request that a call of an MCP server's tool created, merged or closed."""
    match = _MCP_TOOL.match(tool)
    if match is None or not is_ok:
        return None
    action = ACTIONS[match["verb"].lower()]
    address = _ADDRESS.search(output.replace("\\/", "/"))
    inputs = arguments if isinstance(arguments, dict) else {}
    title = inputs.get("title")
    label = title if isinstance(title, str) else ""
    if address is not None:
        return OutcomeRow(OutcomeKind.PULL_REQUEST, action, label, address[0], evidence="tool result")
    named = next((inputs[name] for name in ("pullNumber", "pull_number", "number", "iid") if inputs.get(name)), None)
    number = _JSON_NUMBER.search(output)
    number_text = str(named) if named is not None else number["number"] if number is not None else None
    if number_text is None:
        return None
    repository = "/".join(str(inputs[name]) for name in ("owner", "repo") if isinstance(inputs.get(name), str))
    return OutcomeRow(OutcomeKind.PULL_REQUEST, action, label, f"{repository}#{number_text}", evidence="tool result")


def _recorded(result: Any) -> OutcomeRow | None:
    operation = result.get("gitOperation") if isinstance(result, dict) else None
    request = operation.get("pr") if isinstance(operation, dict) else None
    if not isinstance(request, dict):
        return None
    address, number, action = request.get("url"), request.get("number"), request.get("action")
    ref = address if isinstance(address, str) and address else f"#{number}" if isinstance(number, int) else None
    if ref is None:
        return None
    return OutcomeRow(
        OutcomeKind.PULL_REQUEST, action if isinstance(action, str) else "created", "", ref, evidence="gitOperation"
    )


def _request_of(simple: SimpleCommand) -> tuple[str, str | None] | None:
    """What a command does with a pull request, and which one its arguments name; None if it does nothing."""
    program = program_name(simple)
    arguments = simple.arguments[1:]
    words = [argument for argument in arguments if not argument.startswith("-")]
    subject, verb = [*words, "", ""][:2]
    if program in ("gh", "glab", "tea") and subject in ("pr", "mr", "prs", "pulls", "pull", "merge-request"):
        action = ACTIONS.get(verb)
        if action == "merged" and "--auto" in arguments:
            action = "set to merge"
        if program == "gh" and action is not None and "--dry-run" in arguments:
            action = None
        return (action, next((word for word in words[2:] if _names_request(word)), None)) if action else None
    if program == "gh" and subject == "api":
        is_post = any(argument in ("-f", "-F", "--field", "--raw-field", "--input", "POST") for argument in arguments)
        return ("created", None) if is_post and re.fullmatch(r"/?repos/[^/]+/[^/]+/pulls", verb) else None
    if (program, *words[:3]) in _CREATING or (program, subject) in _CREATING:
        return "created", None
    if program == "git" and split_subcommand(simple)[0] == "push":
        is_request = any("merge_request.create" in argument for argument in arguments)
        return ("created", None) if is_request else ("linked", None)
    return None


def _names_request(word: str) -> bool:
    return bool(_ADDRESS.match(word) or re.fullmatch(r"#?\d+", word))


def _row(action: str, named: str | None, output: str, *, is_done: bool) -> OutcomeRow | None:
    if action == "linked":  # a push: only GitLab names a request that exists
        lines = (match.span("line") for match in _VIEWED.finditer(output))
        viewed = [address[0] for start, end in lines for address in _ADDRESS.finditer(output, start, end)]
        return _make(action, viewed[-1]) if viewed else None
    addresses = [*_ADDRESS.finditer(output), *_GRAPHITE.finditer(output)]
    if addresses and (named is None or addresses[-1]["number"] == named.lstrip("#")):
        return _make(action, addresses[-1][0])
    number = _NUMBER.search(output)
    if named is not None and (is_done or (number is not None and number["number"] == named.lstrip("#"))):
        address = _ADDRESS.match(named)
        return _make(action, address[0] if address else f"#{named.lstrip('#')}")
    if number is not None and is_done and action != "created":
        return _make(action, f"#{number['number']}")
    azure = re.search(r'"pullRequestId":\s*(\d+)', output)
    return _make(action, f"#{azure[1]}") if azure and is_done else None


def _make(action: str, ref: str) -> OutcomeRow:
    return OutcomeRow(OutcomeKind.PULL_REQUEST, action, "", ref, evidence="command output")


def request_number(ref: str) -> int | None:
    """The number of a pull request, from its address or `owner/name#12`."""
    match = re.search(r"(?:/|#|!)(\d+)$", ref)
    return int(match[1]) if match else None
