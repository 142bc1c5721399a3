"""Answer what people ask after seeing the bill.

`attribute_costs` distributes every dollar of a session over what caused it: each prompt, result, reply and the system
prompt pays for being written to the cache, for every later request that carried it, and for being written again after
a cache break. The rows of an `Attribution` sum to the session's amount exactly; `group_rows` adds them up by kind,
tool, file, server, turn or agent.

`CauseList` has the causes of many sessions. `read_insight` reads a session for both.

`session_outcomes` finds the commits, pull requests, test runs and edits of a session, and an `OutcomeReport` puts those
of many together.

`split_request_costs` divides the cost of each request into new input, input that was written to the cache again, cache
reads and output.

`find_waste` runs the `DETECTORS` of avoidable costs in a session, such as reading an unchanged file again.

`FileHistory` says who wrote each line of a file: it joins what sessions recorded with the history in git, in order of
time. `read_owned_facts` reads what sessions recorded, `read_versions` the history in git.

`attribution_record`, `waste_record`, `outcome_record` and `blame_record` are the JSON values for commands and pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.insight.attribution import attribute_costs
    from threadline.insight.blame.agent_trace import agent_trace_record
    from threadline.insight.blame.commands import moved_paths, names_path, written_runs
    from threadline.insight.blame.git_versions import CommittedVersion, GitVersions, read_versions, worktrees
    from threadline.insight.blame.history import FileHistory, OwnedFact, blamed_lines
    from threadline.insight.blame.origins import split_lines
    from threadline.insight.blame.recorded_facts import read_owned_facts
    from threadline.insight.causes import (
        GROUP_KEYS,
        AttributedSessions,
        CauseGroup,
        CauseList,
        CauseSource,
        CauseTotals,
        group_rows,
        merge_groups,
    )
    from threadline.insight.git import Repository
    from threadline.insight.outcomes.changed_lines import ChangedLines, LineOwners, changed_lines
    from threadline.insight.outcomes.extract import extract_outcomes, link_row, may_have_outcome
    from threadline.insight.outcomes.pull_requests import COUNTED_ACTIONS
    from threadline.insight.outcomes.report import OUTCOME_KEYS, OutcomeReport
    from threadline.insight.outcomes.session_outcomes import LineChange, OutcomeFacts, find_commits, session_outcomes
    from threadline.insight.outcomes.test_runners import count_tests
    from threadline.insight.outcomes.verification import RepositoryCheck
    from threadline.insight.records import (
        attribution_record,
        blame_record,
        blamed_line_record,
        cause_record,
        causes_record,
        group_record,
        outcome_group_record,
        outcome_record,
        waste_record,
    )
    from threadline.insight.request_costs import split_request_costs
    from threadline.insight.session_insight import SessionInsight, read_insight
    from threadline.insight.shell_effects import may_write_files
    from threadline.insight.tool_stats import (
        COST_SORTS,
        TOOL_KEYS,
        TOOL_SORTS,
        ResultCost,
        ToolCall,
        add_costs,
        add_up_calls,
        select_tool_groups,
        time_key,
        tool_group_record,
    )
    from threadline.insight.waste import DETECTORS, find_waste
    from threadline.insight.waste.detector import WasteContext, add_amounts

export_lazily(
    __name__,
    {
        "attribution": ["attribute_costs"],
        "blame.agent_trace": ["agent_trace_record"],
        "blame.commands": ["moved_paths", "names_path", "written_runs"],
        "blame.git_versions": ["CommittedVersion", "GitVersions", "read_versions", "worktrees"],
        "blame.history": ["FileHistory", "OwnedFact", "blamed_lines"],
        "blame.origins": ["split_lines"],
        "blame.recorded_facts": ["read_owned_facts"],
        "git": ["Repository"],
        "causes": [
            "AttributedSessions",
            "CauseGroup",
            "CauseList",
            "CauseSource",
            "CauseTotals",
            "GROUP_KEYS",
            "group_rows",
            "merge_groups",
        ],
        "records": [
            "attribution_record",
            "blame_record",
            "blamed_line_record",
            "cause_record",
            "causes_record",
            "group_record",
            "outcome_group_record",
            "outcome_record",
            "waste_record",
        ],
        "request_costs": ["split_request_costs"],
        "session_insight": ["SessionInsight", "read_insight"],
        "shell_effects": ["may_write_files"],
        "outcomes.changed_lines": ["ChangedLines", "LineOwners", "changed_lines"],
        "outcomes.extract": ["extract_outcomes", "link_row", "may_have_outcome"],
        "outcomes.pull_requests": ["COUNTED_ACTIONS"],
        "outcomes.report": ["OUTCOME_KEYS", "OutcomeReport"],
        "outcomes.session_outcomes": ["LineChange", "OutcomeFacts", "find_commits", "session_outcomes"],
        "outcomes.test_runners": ["count_tests"],
        "outcomes.verification": ["RepositoryCheck"],
        "tool_stats": [
            "COST_SORTS",
            "ResultCost",
            "TOOL_KEYS",
            "TOOL_SORTS",
            "ToolCall",
            "add_costs",
            "add_up_calls",
            "select_tool_groups",
            "time_key",
            "tool_group_record",
        ],
        "waste": ["DETECTORS", "find_waste"],
        "waste.detector": ["WasteContext", "add_amounts"],
    },
)
