"""Tests of listing transcripts and side files in every layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.find.home_files import OTHER_SESSION, SESSION, list_home, write

from threadline.errors import NotFound
from threadline.find import parse_transcript_name
from threadline.model.homes import SideFileKind, TranscriptKind

if TYPE_CHECKING:
    from pathlib import Path

    from threadline.model.homes import Transcript

KIND = TranscriptKind
SIDE = SideFileKind


def only_transcript(home: Path) -> Transcript:
    """Return the only transcript."""
    (transcript,) = list_home(home).transcripts
    return transcript


@pytest.mark.parametrize(
    ("path", "kind", "session", "agent", "run"),
    [
        (f"{SESSION}.jsonl", KIND.MAIN, SESSION, None, None),
        (f"{SESSION.upper()}.jsonl", KIND.MAIN, SESSION.upper(), None, None),
        ("agent-1a2b3c4d.jsonl", KIND.AGENT, None, "1a2b3c4d", None),
        (f"{SESSION}/subagents/agent-a0.jsonl", KIND.AGENT, SESSION, "a0", None),
        (f"{SESSION}/subagents/agent-acompact-0f.jsonl", KIND.AGENT, SESSION, "acompact-0f", None),
        (f"{SESSION}/subagents/deeper/still/agent-a0.jsonl", KIND.AGENT, SESSION, "a0", None),
        (f"{SESSION}/subagents/workflows/wf_1/agent-a0.jsonl", KIND.WORKFLOW_AGENT, SESSION, "a0", "wf_1"),
        (f"{SESSION}/subagents/workflows/wf_1/x/agent-a0.jsonl", KIND.WORKFLOW_AGENT, SESSION, "a0", "wf_1"),
        (f"{SESSION}/subagents/workflows/wf_1/journal.jsonl", KIND.JOURNAL, SESSION, None, "wf_1"),
        (f"{SESSION}/subagents/journal.jsonl", KIND.OTHER, SESSION, None, None),
        (f"{SESSION}/subagents/workflows/agent-a0.jsonl", KIND.AGENT, SESSION, "a0", None),
        ("ses_1/subagents/agent-a0.jsonl", KIND.AGENT, "ses_1", "a0", None),
        (f"{SESSION}/stray.jsonl", KIND.OTHER, SESSION, None, None),
        (f"{SESSION}/workflows/stray.jsonl", KIND.OTHER, SESSION, None, None),
        (f"{SESSION}/subagents/{OTHER_SESSION}.jsonl", KIND.AGENT, SESSION, OTHER_SESSION, None),
        (f"{SESSION}/subagents/workflows/wf_1/helper.jsonl", KIND.WORKFLOW_AGENT, SESSION, "helper", "wf_1"),
        ("stray.jsonl", KIND.MAIN, "stray", None, None),
        ("Ses_1.jsonl", KIND.MAIN, "Ses_1", None, None),
        (f"{SESSION}0.jsonl", KIND.MAIN, f"{SESSION}0", None, None),
        (f"{SESSION} (1).jsonl", KIND.MAIN, f"{SESSION} (1)", None, None),
        (f"._{SESSION}.jsonl", KIND.OTHER, None, None, None),
        ("deep/er/still/stray.JSONL", KIND.OTHER, None, None, None),
        ("agent-.jsonl", KIND.OTHER, None, None, None),
        (".jsonl", KIND.OTHER, None, None, None),
    ],
)
def test_transcript_layouts(
    *,
    tmp_path: Path,
    path: str,
    kind: TranscriptKind,
    session: str | None,
    agent: str | None,
    run: str | None,
) -> None:
    """Every layout is recognised by its path, without a parent transcript. Unknown layouts are listed, too."""
    file = write(tmp_path, f"projects/-a/{path}", {"type": "user"})
    transcript = only_transcript(tmp_path)
    assert (transcript.kind, transcript.session, transcript.agent, transcript.run) == (kind, session, agent, run)
    assert (transcript.path, transcript.folder, transcript.meta) == (file, "-a", None)
    assert (transcript.size, transcript.mtime_ns) == (file.stat().st_size, file.stat().st_mtime_ns)


def test_meta_file_belongs_to_its_agent(tmp_path: Path) -> None:
    """The `.meta.json` next to an agent's transcript is listed with it, and as a side file."""
    write(tmp_path, f"projects/-a/{SESSION}/subagents/agent-a0.jsonl")
    meta = write(tmp_path, f"projects/-a/{SESSION}/subagents/agent-a0.meta.json", {})
    write(tmp_path, f"projects/-a/{SESSION}/subagents/agent-a1.meta.json", {})
    assert only_transcript(tmp_path).meta == meta
    assert [file.kind for file in list_home(tmp_path).side_files] == [SIDE.AGENT_META] * 2


def test_transcript_outside_any_folder_is_listed(tmp_path: Path) -> None:
    """A `.jsonl` file directly in `projects/` belongs to no project."""
    write(tmp_path, f"projects/{SESSION}.jsonl")
    assert (only_transcript(tmp_path).folder, only_transcript(tmp_path).session) == ("", SESSION)
    assert list_home(tmp_path).projects == ()


def test_empty_transcripts_and_empty_projects_are_listed(tmp_path: Path) -> None:
    """A transcript without bytes and a folder without files are listed."""
    write(tmp_path, f"projects/-a/{SESSION}.jsonl")
    (tmp_path / "projects" / "-b").mkdir()
    assert only_transcript(tmp_path).size == 0
    assert [project.folder for project in list_home(tmp_path).projects] == ["-a", "-b"]


def test_file_outside_a_session_is_classified_by_its_name() -> None:
    """Any name may be a session's; its rows decide whether it is listed."""
    assert parse_transcript_name(("x.jsonl",)) == (KIND.MAIN, "x", None, None)


@pytest.mark.parametrize(
    ("path", "kind", "session"),
    [
        ("history.jsonl", SIDE.HISTORY, None),
        ("stats-cache.json", SIDE.STATS_CACHE, None),
        (".claude.json", SIDE.CONFIG, None),
        (".claude.json.backup", SIDE.CONFIG, None),
        ("backups/.claude.json.backup.17", SIDE.CONFIG, None),
        (".config.json", SIDE.CONFIG, None),
        ("settings.json", SIDE.SETTINGS, None),
        ("settings.local.json", SIDE.SETTINGS, None),
        ("remote-settings.json", SIDE.SETTINGS, None),
        ("keybindings.json", SIDE.OTHER, None),
        ("__store.db", SIDE.OTHER, None),
        (f"todos/{SESSION}-agent-{OTHER_SESSION}.json", SIDE.TODOS, SESSION),
        (f"tasks/{SESSION}/1.json", SIDE.TASK, SESSION),
        ("tasks/my-team/1.json", SIDE.TASK, None),
        (f"tasks/{SESSION}/.highwatermark", SIDE.TASK_MARK, SESSION),
        (f"tasks/{SESSION}/.lock", SIDE.TASK_MARK, SESSION),
        ("teams/t/config.json", SIDE.TEAM, None),
        ("teams/t/inboxes/team-lead.json", SIDE.INBOX, None),
        (f"file-history/{SESSION}/0123456789abcdef@v2", SIDE.FILE_HISTORY, SESSION),
        ("plans/three-word-name.md", SIDE.PLAN, None),
        ("shell-snapshots/snapshot-zsh-1-x.sh", SIDE.SHELL_SNAPSHOT, None),
        (f"session-env/{SESSION}/hook-0.sh", SIDE.SESSION_ENV, SESSION),
        ("sessions/4711.json", SIDE.LIVE_SESSION, None),
        ("sessions/x.json", SIDE.OTHER, None),
        ("jobs/0a1b2c3d/state.json", SIDE.JOB, None),
        ("jobs/0a1b2c3d/timeline.jsonl", SIDE.JOB, None),
        ("daemon/roster.json", SIDE.JOB, None),
        ("ide/4711.lock", SIDE.IDE_LOCK, None),
        ("paste-cache/0a1b.txt", SIDE.PASTE, None),
        (f"image-cache/{SESSION}/1.png", SIDE.IMAGE, SESSION),
        (f"debug/{SESSION}.txt", SIDE.DEBUG, SESSION),
        (f"usage-data/session-meta/{SESSION}.json", SIDE.USAGE_DATA, SESSION),
        ("projects/-a/sessions-index.json", SIDE.SESSIONS_INDEX, None),
        ("projects/-a/.session-aliases", SIDE.SESSION_ALIASES, None),
        ("projects/-a/memory/MEMORY.md", SIDE.MEMORY, None),
        ("projects/-a/memory/security_notes.md", SIDE.MEMORY, None),
        ("projects/-a/memory/x.jsonl", SIDE.MEMORY, None),
        (f"projects/-a/{SESSION}/tool-results/toolu_1.txt", SIDE.TOOL_RESULT, SESSION),
        (f"projects/-a/{SESSION}/tool-results/x.jsonl", SIDE.TOOL_RESULT, SESSION),
        (f"projects/-a/{SESSION}/workflows/wf_1.json", SIDE.WORKFLOW_RUN, SESSION),
        (f"projects/-a/{SESSION}/workflows/scripts/n-wf_1.js", SIDE.WORKFLOW_SCRIPT, SESSION),
        (f"projects/-a/{SESSION}.jsonl.bak", SIDE.OTHER, SESSION),
        ("projects/-a/agent-1a.meta.json", SIDE.AGENT_META, None),
        (".credentials.json", SIDE.SECRET, None),
        ("sessions/4711.key", SIDE.SECRET, None),
        ("security_warnings_state.json", SIDE.SECRET, None),
        (".env", SIDE.SECRET, None),
        (".env.local", SIDE.SECRET, None),
        (f"session-env/{SESSION}/.ENV", SIDE.SECRET, SESSION),
        ("projects/-a/x.key", SIDE.SECRET, None),
    ],
)
def test_side_files(tmp_path: Path, path: str, kind: SideFileKind, session: str | None) -> None:
    """Each other file is classified by its path. Sizes of secrets and settings are not recorded."""
    file = write(tmp_path, path, "12345")
    result = list_home(tmp_path)
    (side_file,) = result.side_files
    assert (side_file.path, side_file.kind, side_file.session) == (file, kind, session)
    assert side_file.size == (0 if kind in {SIDE.SECRET, SIDE.SETTINGS} else 5)
    assert (result.transcripts, result.problems, result.not_entered) == ((), (), ())


def test_configuration_next_to_a_home_is_listed(tmp_path: Path) -> None:
    """`~/.claude.json` belongs to `~/.claude`, and to no home with another name."""
    (tmp_path / ".claude").mkdir()
    config = write(tmp_path, ".claude.json", {})
    assert [file.path for file in list_home(tmp_path / ".claude").side_files] == [config]
    (tmp_path / "other").mkdir()
    assert list_home(tmp_path / "other").side_files == ()


def test_directories_without_sessions_are_not_entered(tmp_path: Path) -> None:
    """Plugins and unknown directories may contain whole repositories. They are only named."""
    write(tmp_path, "plugins/repository/x.jsonl")
    write(tmp_path, "new-thing/x")
    assert list_home(tmp_path).not_entered == (tmp_path / "new-thing", tmp_path / "plugins")
    assert list_home(tmp_path).side_files == ()


def test_listing_is_sorted_by_path(tmp_path: Path) -> None:
    """Two listings are equal, whatever the order on disk."""
    for name in ("z", "a", "M", "-b"):
        write(tmp_path, f"projects/{name}/{SESSION}.jsonl")
        write(tmp_path, f"projects/{name}/{SESSION}/subagents/agent-a.jsonl")
        write(tmp_path, f"plans/{name}.md")
    first = list_home(tmp_path)
    assert [project.folder for project in first.projects] == ["-b", "M", "a", "z"]
    transcripts = [str(transcript.path) for transcript in first.transcripts]
    side_files = [str(file.path) for file in first.side_files]
    assert (transcripts, side_files) == (sorted(transcripts), sorted(side_files))
    assert list_home(tmp_path) == first


def test_missing_home_is_an_error(tmp_path: Path) -> None:
    """Listing it is the caller's mistake."""
    with pytest.raises(NotFound, match=r"There is no directory .*\.$"):
        list_home(tmp_path / "gone")


def test_home_without_projects_is_empty(tmp_path: Path) -> None:
    """It is valid."""
    assert list_home(tmp_path).projects == ()
