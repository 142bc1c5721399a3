"""threadline: everything Claude Code leaves on disk, read without losing a byte.

>>> import threadline
>>> for entry in threadline.entries("session.jsonl"):  # doctest: +SKIP
...     print(entry.timestamp, entry.kind, entry.place)

Names are loaded when they are first used, so that importing threadline costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import lazy_exports

if TYPE_CHECKING:
    from threadline.account import Ledger, Rates
    from threadline.account import load_rates as rates
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
    from threadline.model.ledger import Charge, Flag, Rate, Row, Rows, Sum
    from threadline.model.places import Line, Place, Problem, ProblemKind
    from threadline.model.results import OtherResult, ToolResult, typed_result
    from threadline.model.session import Act, ActKind, Agent, Branch, Compaction, Thread, Turn
    from threadline.model.state import State
    from threadline.model.text import extract_text
    from threadline.model.times import parse_timestamp
    from threadline.model.usage import Head, Usage
    from threadline.parse import entries, heads, read_side_file
    from threadline.reports import read_ledger as ledger

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


__getattr__ = lazy_exports(
    __name__,
    {
        "account": ["Ledger", "Rates", "load_rates as rates"],
        "archive": ["Archive", "open"],
        "errors": ["Ambiguous", "BadQuery", "Error", "IndexBusy", "Missing", "NotFound", "Unreadable"],
        "find": ["folder_matches", "folder_name", "homes", "look"],
        "load": ["Session", "read"],
        "model.blocks": [
            "Block",
            "Content",
            "ContentBlock",
            "DocumentBlock",
            "ImageBlock",
            "Message",
            "OtherBlock",
            "TextBlock",
            "ThinkingBlock",
            "ToolResultBlock",
            "ToolUseBlock",
        ],
        "model.calls": ["Call", "Outcome"],
        "model.context": ["Context", "Request"],
        "model.entries": [
            "AnyEntry",
            "AssistantEntry",
            "AttachmentEntry",
            "ChainEntry",
            "Entry",
            "KINDS",
            "OtherEntry",
            "ProgressEntry",
            "SystemEntry",
            "UserEntry",
        ],
        "model.homes": ["Found", "Home", "Project", "SideFile", "Transcript"],
        "model.ledger": ["Charge", "Flag", "Rate", "Row", "Rows", "Sum"],
        "model.places": ["Line", "Place", "Problem", "ProblemKind"],
        "model.results": ["OtherResult", "ToolResult", "typed_result"],
        "model.session": ["Act", "ActKind", "Agent", "Branch", "Compaction", "Thread", "Turn"],
        "model.state": ["State"],
        "model.text": ["extract_text"],
        "model.times": ["parse_timestamp"],
        "model.usage": ["Head", "Usage"],
        "parse": ["entries", "heads", "read_side_file"],
        "reports": ["read_ledger as ledger"],
    },
)


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
