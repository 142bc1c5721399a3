"""threadline: everything Claude Code leaves on disk, read without losing a byte.

>>> import threadline
>>> for entry in threadline.entries("session.jsonl"):  # doctest: +SKIP
...     print(entry.timestamp, entry.kind, entry.place)

Names are loaded when they are first used, so that importing threadline costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadline.account.ledger import Ledger
    from threadline.account.rates import Rates, rates
    from threadline.archive import Archive, open  # noqa: A004 - as `threadline.open`
    from threadline.errors import Ambiguous, BadQuery, Error, IndexBusy, Missing, NotFound, Unreadable
    from threadline.find import folder_matches, folder_name, homes, look
    from threadline.load import Session, read
    from threadline.model.blocks import (
        Block,
        Content,
        ContentBlock,
        DocumentBlock,
        ImageBlock,
        Message,
        OtherBlock,
        TextBlock,
        ThinkingBlock,
        ToolResultBlock,
        ToolUseBlock,
    )
    from threadline.model.calls import Call, Outcome
    from threadline.model.charges import Charge, Flag, Rate
    from threadline.model.context import Context, Request
    from threadline.model.entries import (
        KINDS,
        AnyEntry,
        AssistantEntry,
        AttachmentEntry,
        ChainEntry,
        Entry,
        OtherEntry,
        ProgressEntry,
        SystemEntry,
        UserEntry,
    )
    from threadline.model.homes import Found, Home, Project, SideFile, Transcript
    from threadline.model.places import Line, Place, Problem, ProblemKind
    from threadline.model.results import OtherResult, ToolResult, typed_result
    from threadline.model.session import Act, ActKind, Agent, Branch, Compaction, Thread, Turn
    from threadline.model.state import State
    from threadline.model.text import extract_text
    from threadline.model.times import parse_timestamp
    from threadline.model.totals import Row, Rows, Sum
    from threadline.model.usage import Head, Usage
    from threadline.parse import entries, heads, read_side_file
    from threadline.reports.ledger import ledger

_HOMES_OF_NAMES = {
    "threadline.account.ledger": "Ledger",
    "threadline.account.rates": "Rates rates",
    "threadline.archive": "Archive open",
    "threadline.errors": "Ambiguous BadQuery Error IndexBusy Missing NotFound Unreadable",
    "threadline.find": "folder_matches folder_name homes look",
    "threadline.load": "Session read",
    "threadline.model.blocks": (
        "Block Content ContentBlock DocumentBlock ImageBlock Message OtherBlock TextBlock ThinkingBlock "
        "ToolResultBlock ToolUseBlock"
    ),
    "threadline.model.calls": "Call Outcome",
    "threadline.model.charges": "Charge Flag Rate",
    "threadline.model.context": "Context Request",
    "threadline.model.entries": (
        "AnyEntry AssistantEntry AttachmentEntry ChainEntry Entry KINDS OtherEntry ProgressEntry SystemEntry UserEntry"
    ),
    "threadline.model.homes": "Found Home Project SideFile Transcript",
    "threadline.model.places": "Line Place Problem ProblemKind",
    "threadline.model.results": "OtherResult ToolResult typed_result",
    "threadline.model.session": "Act ActKind Agent Branch Compaction Thread Turn",
    "threadline.model.state": "State",
    "threadline.model.text": "extract_text",
    "threadline.model.times": "parse_timestamp",
    "threadline.model.totals": "Row Rows Sum",
    "threadline.model.usage": "Head Usage",
    "threadline.parse": "entries heads read_side_file",
    "threadline.reports.ledger": "ledger",
}
_MODULES = {name: module for module, names in _HOMES_OF_NAMES.items() for name in names.split()}

__version__ = "0.1.0"
__all__ = [
    "KINDS",
    "Act",
    "ActKind",
    "Agent",
    "Ambiguous",
    "AnyEntry",
    "Archive",
    "AssistantEntry",
    "AttachmentEntry",
    "BadQuery",
    "Block",
    "Branch",
    "Call",
    "ChainEntry",
    "Charge",
    "Compaction",
    "Content",
    "ContentBlock",
    "Context",
    "DocumentBlock",
    "Entry",
    "Error",
    "Flag",
    "Found",
    "Head",
    "Home",
    "ImageBlock",
    "IndexBusy",
    "Ledger",
    "Line",
    "Message",
    "Missing",
    "NotFound",
    "OtherBlock",
    "OtherEntry",
    "OtherResult",
    "Outcome",
    "Place",
    "Problem",
    "ProblemKind",
    "ProgressEntry",
    "Project",
    "Rate",
    "Rates",
    "Request",
    "Row",
    "Rows",
    "Session",
    "SideFile",
    "State",
    "Sum",
    "SystemEntry",
    "TextBlock",
    "ThinkingBlock",
    "Thread",
    "ToolResult",
    "ToolResultBlock",
    "ToolUseBlock",
    "Transcript",
    "Turn",
    "Unreadable",
    "Usage",
    "UserEntry",
    "entries",
    "extract_text",
    "folder_matches",
    "folder_name",
    "heads",
    "homes",
    "ledger",
    "look",
    "open",
    "parse_timestamp",
    "rates",
    "read",
    "read_side_file",
    "typed_result",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'threadline' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
