"""Tests of the names that `threadline` exports."""

from __future__ import annotations

import threadline

NAMES = """
Act ActKind Agent Ambiguous AnyEntry Archive AssistantEntry AttachmentEntry BadQuery Block Branch Call ChainEntry Charge
Compaction Content ContentBlock Context DocumentBlock Entry Error Flag Found Head Home ImageBlock IndexBusy KINDS Ledger
Line Message Missing NotFound OtherBlock OtherEntry OtherResult Outcome Place Problem ProblemKind ProgressEntry Project
Rate Rates Request Row Rows Session SideFile State Sum SystemEntry TextBlock ThinkingBlock Thread ToolResult
ToolResultBlock ToolUseBlock Transcript Turn Unreadable Usage UserEntry entries extract_text folder_matches
folder_name heads homes ledger look open parse_timestamp rates read read_side_file typed_result
"""


def test_public_names() -> None:
    """`threadline.__all__` equals this list, so that names are added and removed on purpose."""
    assert sorted(threadline.__all__) == sorted(NAMES.split())


def test_every_public_name_loads_and_is_documented() -> None:
    """Every public name can be imported, is listed by `dir`, and has a docstring if it can have one."""
    assert set(threadline.__all__) <= set(dir(threadline))
    for name in threadline.__all__:
        value = getattr(threadline, name)
        if isinstance(value, type) or callable(value):
            assert value.__doc__, name
    assert not hasattr(threadline, "nothing_of_the_kind")
