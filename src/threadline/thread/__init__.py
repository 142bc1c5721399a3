"""Turn the entries of transcripts into a session.

`assemble_agents` is the entry point of `threadline.read`: it splits off agents (`SideAgentFold` recognises those that
Claude Code started for itself), links each to the call that started it, and threads each one's entries
(`build_history`: active thread, branches, compactions, acts, turns). `find_calls` pairs calls with their results and
decides how each ended. `session_title` and `title_from_parts` name a session; `detect_continuations` finds forks and
resumed copies.

`state_at` replays files, lists and settings to any place, `file_log` lists the edits of a file, `analyze_context`
measures the context window, and `Requests` rebuilds what was sent to the API. The other names are single rules that the
index and summaries apply entry by entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.thread.acts import (
        act_of,
        act_text,
        can_miss_steering,
        find_acts,
        is_repeat,
        normalise_spaces,
        strip_prefaces,
    )
    from threadline.thread.agent_links import Notification, agents_in_progress, find_notifications
    from threadline.thread.agents import (
        TEAMMATE_TAG,
        AgentFile,
        SideAgentFold,
        assemble_agents,
        split_inline_agents,
        teammate_name,
    )
    from threadline.thread.calls import (
        AGENT_STARTING_TOOLS,
        BACKGROUND_OUTPUT_TOOLS,
        Answer,
        agent_id_in_result,
        agent_id_in_text,
        exit_code,
        find_calls,
        is_same_call,
        judge_outcome,
        parse_exit_code,
        result_blocks,
        verdict_without_result,
    )
    from threadline.thread.context.cache_breaks import find_cache_breaks
    from threadline.thread.context.filling import (
        Piece,
        WindowFiller,
        WindowSlice,
        WindowStep,
        measured_scale,
        share_out,
    )
    from threadline.thread.context.report import (
        ContextPath,
        EntrySplitter,
        analyze_context,
        context_paths,
        start_window,
    )
    from threadline.thread.context.windows import ContextLimits, SentRequest, find_requests
    from threadline.thread.continuations import OtherSession, detect_continuations
    from threadline.thread.graph import Graph
    from threadline.thread.requests import Requests, rebuild_request
    from threadline.thread.state.events import ReplayEvent
    from threadline.thread.state.facts import FactKind, FileFact, file_facts
    from threadline.thread.state.files import base_name, full_path
    from threadline.thread.state.lists import TrackedLists, merge_side_lists
    from threadline.thread.state.log import file_log
    from threadline.thread.state.patch import parse_numbered_lines
    from threadline.thread.state.replay import difference, state_at
    from threadline.thread.threads import build_history, find_compactions
    from threadline.thread.titles import (
        can_summary_replace,
        session_tag,
        session_title,
        title_from_parts,
        title_in_entry,
        title_words,
    )
    from threadline.thread.turns import begins_turn, split_into_turns

export_lazily(
    __name__,
    {
        "acts": [
            "act_of",
            "act_text",
            "can_miss_steering",
            "find_acts",
            "is_repeat",
            "normalise_spaces",
            "strip_prefaces",
        ],
        "agent_links": ["Notification", "agents_in_progress", "find_notifications"],
        "agents": [
            "AgentFile",
            "SideAgentFold",
            "TEAMMATE_TAG",
            "assemble_agents",
            "split_inline_agents",
            "teammate_name",
        ],
        "calls": [
            "AGENT_STARTING_TOOLS",
            "Answer",
            "BACKGROUND_OUTPUT_TOOLS",
            "agent_id_in_result",
            "agent_id_in_text",
            "exit_code",
            "find_calls",
            "is_same_call",
            "judge_outcome",
            "parse_exit_code",
            "result_blocks",
            "verdict_without_result",
        ],
        "context.cache_breaks": ["find_cache_breaks"],
        "context.filling": [
            "Piece",
            "WindowFiller",
            "WindowSlice",
            "WindowStep",
            "measured_scale",
            "share_out",
        ],
        "context.report": ["ContextPath", "EntrySplitter", "analyze_context", "context_paths", "start_window"],
        "context.windows": ["ContextLimits", "SentRequest", "find_requests"],
        "continuations": ["OtherSession", "detect_continuations"],
        "graph": ["Graph"],
        "requests": ["Requests", "rebuild_request"],
        "state.events": ["ReplayEvent"],
        "state.facts": ["FactKind", "FileFact", "file_facts"],
        "state.files": ["base_name", "full_path"],
        "state.lists": ["TrackedLists", "merge_side_lists"],
        "state.log": ["file_log"],
        "state.patch": ["parse_numbered_lines"],
        "state.replay": ["difference", "state_at"],
        "threads": ["build_history", "find_compactions"],
        "titles": [
            "can_summary_replace",
            "session_tag",
            "session_title",
            "title_from_parts",
            "title_in_entry",
            "title_words",
        ],
        "turns": ["begins_turn", "split_into_turns"],
    },
)
