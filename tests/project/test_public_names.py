"""Tests of the names that `threadline` exports."""

from __future__ import annotations

import threadline

NAMES = """
Act ActKind Agent AgentList AgentResult Ambiguous AnyEntry Archive ArtifactResult AskUserQuestionResult AssistantEntry
AttachmentEntry BadQuery Block Branch Budget BudgetUse Call CallFilter CallList ChainEntry Charge Compaction Content
ContentBlock Context Continuation CronResult DocumentBlock EditResult EnterPlanModeResult Entry EntryFilter EntryStream
Error Examination ExitPlanModeResult Failure FailureFilter FailureList FileEdit FileList FileLog FileState Flag Follower
Found GlobResult GrepResult Head Hit Hits Home Hunk ImageBlock Index IndexBusy KINDS Ledger Line ListAgentsResult
ListedAgent ListedCall ListedFile ListedProblem Listing LspResult McpResourceResult McpResult Message Missing
MissingAgent MonitorResult MultiEditResult NotFound NotebookEditResult OneEdit OtherBlock OtherEntry OtherResult Outcome
OutputResult OutputTask Overview Place Problem ProblemKind ProblemList ProgressEntry Project PromptFilter PromptHistory
PromptList Rate Rates ReadFile ReadResult ReportFindingsResult Request Row Rows ScanResult ScheduleWakeupResult
SecretFilter SendMessageResult SendUserFileResult Session SessionCosts SessionFilter SessionList SessionPrompt
SessionSummary ShellOutputResult ShellResult SideFile SkillResult State StatusChange StopResult Sum SystemEntry Table
Task TaskListResult TaskResult TaskState TaskUpdateResult TeamResult TextBlock ThinkingBlock Thread Title Todo TodoState
TodoWriteResult ToolResult ToolResultBlock ToolSearchResult ToolStats ToolUseBlock Transcript Turn TypedPrompt
Unreadable Usage UserEntry WebFetchResult WebSearchResult WorkflowResult WorktreeResult WriteResult entries extract_text
folder_matches folder_name heads homes ledger look open parse_timestamp rates read read_side_file typed_result
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
