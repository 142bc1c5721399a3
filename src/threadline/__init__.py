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
    from threadline.model.act import Act, ActKind, Turn
    from threadline.model.agent import Agent
    from threadline.model.block import (
        Block,
        Content,
        ContentBlock,
        DocumentBlock,
        ImageBlock,
        OtherBlock,
        TextBlock,
        ThinkingBlock,
        ToolResultBlock,
        ToolUseBlock,
    )
    from threadline.model.call import Call, Outcome
    from threadline.model.charge import Charge, Flag
    from threadline.model.context import Context
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
    from threadline.model.found import Found, Home, Project, SideFile, Transcript
    from threadline.model.head import Head
    from threadline.model.line import Line
    from threadline.model.message import Message
    from threadline.model.place import Place
    from threadline.model.problem import Problem, ProblemKind
    from threadline.model.rate import Rate
    from threadline.model.request import Request
    from threadline.model.results import OtherResult, ToolResult, typed_result
    from threadline.model.state import State
    from threadline.model.sum import Row, Rows, Sum
    from threadline.model.text import extract_text
    from threadline.model.thread import Branch, Compaction, Thread
    from threadline.model.time import parse_timestamp
    from threadline.model.usage import Usage
    from threadline.parse import entries, heads, read_side_file
    from threadline.survey.ledger import ledger

_HOMES_OF_NAMES = {
    "threadline.account.ledger": "Ledger",
    "threadline.account.rates": "Rates rates",
    "threadline.archive": "Archive open",
    "threadline.errors": "Ambiguous BadQuery Error IndexBusy Missing NotFound Unreadable",
    "threadline.find": "folder_matches folder_name homes look",
    "threadline.load": "Session read",
    "threadline.model.act": "Act ActKind Turn",
    "threadline.model.agent": "Agent",
    "threadline.model.call": "Call Outcome",
    "threadline.model.charge": "Charge Flag",
    "threadline.model.context": "Context",
    "threadline.model.rate": "Rate",
    "threadline.model.request": "Request",
    "threadline.model.state": "State",
    "threadline.model.thread": "Branch Compaction Thread",
    "threadline.model.block": (
        "Block Content ContentBlock DocumentBlock ImageBlock OtherBlock TextBlock ThinkingBlock"
        " ToolResultBlock ToolUseBlock"
    ),
    "threadline.model.entries": (
        "KINDS AnyEntry AssistantEntry AttachmentEntry ChainEntry Entry OtherEntry ProgressEntry SystemEntry UserEntry"
    ),
    "threadline.model.found": "Found Home Project SideFile Transcript",
    "threadline.model.head": "Head",
    "threadline.model.line": "Line",
    "threadline.model.message": "Message",
    "threadline.model.place": "Place",
    "threadline.model.problem": "Problem ProblemKind",
    "threadline.model.results": "OtherResult ToolResult typed_result",
    "threadline.model.sum": "Row Rows Sum",
    "threadline.model.text": "extract_text",
    "threadline.model.time": "parse_timestamp",
    "threadline.model.usage": "Usage",
    "threadline.parse": "entries heads read_side_file",
    "threadline.survey.ledger": "ledger",
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
