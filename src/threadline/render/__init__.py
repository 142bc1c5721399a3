"""Render sessions as text, Markdown, JSON and trees; `threadline.render.html` renders them as HTML.

`build_outline` converts an agent's transcript into items (`PromptItem`, `ReplyItem`, `CallItem` …), which every format
renders. `place_items` selects the items that a `View` shows and gives each an anchor, such as `L120`. The formats are
`session_to_text`, `session_to_markdown`, `session_to_json`, `draw_tree`, `draw_receipt` and `draw_context`.

Terminal output consists of `Span`s with a `Role`. `Style.line` is the only place that writes escape sequences. `plain`,
`one_line` and `visible` make text from transcripts safe to display, so that it cannot control a terminal.

All names are loaded lazily. Text, Markdown and JSON work without the extra `threadline[web]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.render.call_text import OUTCOME_MARKS
    from threadline.render.context import draw_context, padded_bar
    from threadline.render.digest import digest_lines, digest_title, digest_to_markdown
    from threadline.render.items import (
        ITEM_KINDS,
        PlacedItem,
        agent_slug,
        anchor_of,
        branch_of_turn,
        count_tools,
        foreign_transcript_slug,
        leading_entries,
        parse_anchor,
        place_items,
    )
    from threadline.render.outline import (
        BranchItem,
        CallItem,
        CompactionItem,
        Detail,
        FailureItem,
        Item,
        NoticeItem,
        NotificationsByEntry,
        OutputItem,
        PromptItem,
        ReplyItem,
        TaskItem,
        TaskNotification,
        TaskUpdateItem,
        TextOptions,
        ThinkingItem,
        View,
        build_outline,
        entry_key,
    )
    from threadline.render.receipt import draw_receipt
    from threadline.render.reconciliation import reconciliation_lines
    from threadline.render.session_facts import (
        NO_TRANSCRIPT,
        AgentPlacement,
        BackgroundTasks,
        abandoned_turns,
        agent_duration,
        agent_title,
        agents_in_view,
        agents_without_transcript,
        branch_number,
        branch_numbers,
        continuation_record,
        count_session_agents,
        describe_compaction,
        describe_hidden_branches,
        describe_platform,
        task_answer,
        task_sentence,
    )
    from threadline.render.session_json import session_to_json
    from threadline.render.session_markdown import entry_to_markdown, session_to_markdown
    from threadline.render.session_text import EventSource, live_line, session_to_text
    from threadline.render.text import (
        Role,
        Span,
        Spans,
        Style,
        act_sign,
        bar,
        can_show_blocks,
        clip,
        clip_left,
        clip_path,
        cut_line,
        describe_cost,
        describe_tokens,
        display_width,
        dropped_note,
        fit_columns,
        fit_facts,
        one_line,
        plain,
        shorten,
        should_use_colour,
        sparkline,
        visible,
        wrap,
    )
    from threadline.render.tree import TreeNode, build_tree, draw_tree

export_lazily(
    __name__,
    {
        "call_text": ["OUTCOME_MARKS"],
        "context": ["draw_context", "padded_bar"],
        "digest": ["digest_lines", "digest_title", "digest_to_markdown"],
        "items": [
            "ITEM_KINDS",
            "PlacedItem",
            "agent_slug",
            "anchor_of",
            "branch_of_turn",
            "count_tools",
            "foreign_transcript_slug",
            "leading_entries",
            "parse_anchor",
            "place_items",
        ],
        "outline": [
            "Detail",
            "BranchItem",
            "CallItem",
            "CompactionItem",
            "FailureItem",
            "Item",
            "NoticeItem",
            "NotificationsByEntry",
            "OutputItem",
            "PromptItem",
            "ReplyItem",
            "TaskItem",
            "TaskNotification",
            "TaskUpdateItem",
            "TextOptions",
            "ThinkingItem",
            "View",
            "build_outline",
            "entry_key",
        ],
        "receipt": ["draw_receipt"],
        "reconciliation": ["reconciliation_lines"],
        "session_facts": [
            "AgentPlacement",
            "BackgroundTasks",
            "NO_TRANSCRIPT",
            "abandoned_turns",
            "agent_duration",
            "agent_title",
            "agents_in_view",
            "agents_without_transcript",
            "branch_number",
            "branch_numbers",
            "continuation_record",
            "count_session_agents",
            "describe_compaction",
            "describe_hidden_branches",
            "describe_platform",
            "task_answer",
            "task_sentence",
        ],
        "session_json": ["session_to_json"],
        "session_markdown": ["entry_to_markdown", "session_to_markdown"],
        "session_text": ["EventSource", "live_line", "session_to_text"],
        "text": [
            "Role",
            "Span",
            "Spans",
            "Style",
            "act_sign",
            "bar",
            "can_show_blocks",
            "clip",
            "clip_left",
            "clip_path",
            "cut_line",
            "describe_cost",
            "describe_tokens",
            "display_width",
            "dropped_note",
            "fit_columns",
            "fit_facts",
            "one_line",
            "plain",
            "shorten",
            "should_use_colour",
            "sparkline",
            "visible",
            "wrap",
        ],
        "tree": ["TreeNode", "build_tree", "draw_tree"],
    },
)
