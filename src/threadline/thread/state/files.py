"""Track a session's files during replay, from tool results, notes, hooks and backups.

A command proves nothing, but it may change any file: it is counted, and if it names a known file, the file is in
doubt. So is a file that was changed just before a hook ran: formatters run as hooks.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Any

from threadline.model.attachments import EditedTextFile, FileAttachment
from threadline.model.calls import Call, Outcome
from threadline.model.entries import AttachmentEntry, ChainEntry, UserEntry
from threadline.model.names import AGENT_TOOLS
from threadline.model.places import AgentId
from threadline.model.results import (
    EditResult,
    MultiEditResult,
    NotebookEditResult,
    OneEdit,
    ReadFile,
    ReadResult,
    WriteResult,
    typed_result,
)
from threadline.model.state import Evidence, EvidenceKind, FileState
from threadline.shape import fit
from threadline.shell_syntax import SHELL_TOOLS
from threadline.thread.state.events import HookRun, ReplayEvent, hook_run_in
from threadline.thread.state.notebook import edit_notebook
from threadline.thread.state.patch import apply_patch, matches_patch, parse_numbered_lines, replace_text
from threadline.thread.state.tracked_file import ChangeObserver, NameMentions, TrackedFile

BackupReader = Callable[[str], bytes | None]
"""Returns the bytes of a backup by its file name under `file-history/<session>/`, or None if it is gone."""

_EDIT_TOOLS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
# The tool's message for a file that changed since the session read it.
_NEWER_FILE_ERROR = "File has been modified since read"
_AFTER_CALL_EVENT, _AFTER_TURN_EVENT = "PostToolUse", "Stop"
_SHELL_INPUT_TAG = "<bash-input>"
NOT_RUN = frozenset({Outcome.DENIED, Outcome.PENDING})
"""The outcomes of calls that did not run, or have not run yet."""


class TrackedFiles:
    """The files of a session, replayed event by event.

    `command_count` is how many commands and hooks have run that may have changed any file.
    """

    def __init__(
        self,
        backup: BackupReader | None = None,
        *,
        agents: frozenset[AgentId] = frozenset(),
        observe: Callable[[str], ChangeObserver | None] | None = None,
        make_file: Callable[[str, NameMentions], TrackedFile] | None = None,
    ) -> None:
        """`agents` are those whose transcripts are replayed. What other agents do is unknown.

        `observe` returns the observer of the changes of a file, by its path. `make_file` creates what tracks a file.
        """
        self._files: dict[str, TrackedFile] = {}
        self._by_name: dict[str, NameMentions] = {}
        self._backup = backup
        self._agents = agents
        self._observe = observe
        self._make_file = make_file
        self._early_hooks: dict[str, ReplayEvent] = {}
        self._changed_by: dict[str, TrackedFile] = {}
        self._cwd: str | None = None
        self._root: str | None = None
        self.command_count = 0

    def apply_event(self, event: ReplayEvent) -> None:
        """Apply the next event."""
        entry = event.entry
        if isinstance(entry, ChainEntry) and entry.cwd:
            self._cwd = entry.cwd
            self._root = self._root or entry.cwd
        if event.backup is not None:
            self._apply_backup(event)
        elif event.call is not None:
            self._apply_call(event, event.call)
            self._after_change(event, event.call)
        elif (hook := hook_run_in(entry)) is not None:
            self._apply_hook(hook, event)
        elif isinstance(entry, AttachmentEntry):
            self._apply_attachment(event, entry)
        elif isinstance(entry, UserEntry) and entry.text.startswith(_SHELL_INPUT_TAG):
            self._record_command(entry.text, event)

    def states(self) -> dict[str, FileState]:
        """Return the state of each file, in the order of first mention."""
        return {path: file.state(self.command_count) for path, file in self._files.items() if file.evidence}

    def _file(self, path: str) -> TrackedFile:
        name = full_path(path, self._cwd)
        file = self._files.get(name)
        if file is None:
            named = self._by_name.setdefault(base_name(name), NameMentions())
            if self._make_file is not None:
                file = self._make_file(name, named)
            else:
                file = TrackedFile(name, named, self._observe(name) if self._observe is not None else None)
            self._files[name] = file
        return file

    def _apply_call(self, event: ReplayEvent, call: Call) -> None:
        if call.tool in SHELL_TOOLS or call.tool.startswith("mcp__"):
            if call.outcome not in NOT_RUN:
                self._record_command("\n".join(_top_level_strings(call.input)), event)
            return
        if call.tool in AGENT_TOOLS and call.started not in self._agents:
            self._record_command("", event)
            return
        match call.result:
            case WriteResult() as result:
                self._apply_write(result, event)
            case EditResult() as result:
                self._apply_edit(result, event)
            case MultiEditResult() as result:
                self._apply_multi_edit(result, event)
            case NotebookEditResult() as result:
                self._apply_notebook_edit(result, event, call)
            case ReadResult() as result:
                self._apply_read(result, event, EvidenceKind.READ)
            case None if call.outcome is Outcome.OK and isinstance(call.input, dict):
                self._apply_input(call, event)

    def _apply_write(self, result: WriteResult, event: ReplayEvent) -> None:
        if result.file_path is None or result.content is None:
            return
        file, evidence = self._file(result.file_path), _evidence(event, EvidenceKind.WRITE, user=result.user_modified)
        if result.original_file is not None or result.type == "create":
            file.record_before(_normalise_newlines(result.original_file), evidence, self.command_count)
        if result.memdir_stamped:
            file.record_unknown_change(evidence, self.command_count)  # Claude Code added a stamp to the text
        else:
            file.record_write(_normalise_newlines(result.content), evidence, self.command_count)

    def _apply_edit(self, result: EditResult, event: ReplayEvent) -> None:
        if result.file_path is None or result.old_string is None or result.new_string is None:
            return
        file, evidence = self._file(result.file_path), _evidence(event, EvidenceKind.EDIT, user=result.user_modified)
        old, new, hunks = (
            _normalise_newlines(result.old_string),
            _normalise_newlines(result.new_string),
            result.structured_patch,
        )
        if result.original_file is not None:
            file.record_before(_normalise_newlines(result.original_file), evidence, self.command_count)
        elif result.stale_recovered:
            file.record_unknown_change(evidence, self.command_count)  # the text that was edited is not recorded
        if result.memdir_stamped:
            file.record_unknown_change(evidence, self.command_count)
        else:
            file.record_edit(old, new, hunks, evidence, self.command_count, all_=bool(result.replace_all))

    def _apply_multi_edit(self, result: MultiEditResult, event: ReplayEvent) -> None:
        if result.file_path is None or result.edits is None:
            return
        file, evidence = self._file(result.file_path), _evidence(event, EvidenceKind.EDIT, user=result.user_modified)
        if result.original_file_contents is not None:
            file.record_before(_normalise_newlines(result.original_file_contents), evidence, self.command_count)
        after = _apply_edits(file.content, result.edits)
        if file.content is not None and (after is None or not matches_patch(after, result.structured_patch)):
            inserted = "".join(edit.new_string or "" for edit in result.edits)
            after = apply_patch(file.content, result.structured_patch, inserted) if result.structured_patch else None
        if after is not None:
            file.record_write(after, evidence, self.command_count)
        else:
            file.record_edit("", "", result.structured_patch, evidence, self.command_count, all_=False)

    def _apply_notebook_edit(self, result: NotebookEditResult, event: ReplayEvent, call: Call) -> None:
        path = result.notebook_path or _string_input(call, "notebook_path")
        if not path or result.error:
            return
        file, evidence = self._file(path), _evidence(event, EvidenceKind.EDIT)
        if result.original_file is not None:
            file.record_before(_normalise_newlines(result.original_file), evidence, self.command_count)
        after = result.updated_file
        if after is None and file.content is not None and isinstance(call.input, dict):
            after = edit_notebook(file.content, call.input, call.output)
        if after is not None:
            file.record_write(_normalise_newlines(after), evidence, self.command_count)
        else:
            file.record_unknown_change(evidence, self.command_count)

    def _apply_read(self, result: ReadResult, event: ReplayEvent, how: EvidenceKind) -> None:
        file = result.file
        if file is None or file.file_path is None:
            return
        tracked, evidence = self._file(file.file_path), _evidence(event, how)
        if result.type == "file_unchanged":
            tracked.record_unchanged(evidence, self.command_count)
        elif result.type != "text" or file.content is None:
            tracked.evidence.append(evidence)  # an image or a notebook: read, but not as text
        else:
            self._read_text(tracked, file, evidence)

    def _read_text(self, tracked: TrackedFile, file: ReadFile, evidence: Evidence) -> None:
        start, count = max(1, file.start_line or 1), file.num_lines
        total = file.total_lines if file.total_lines is not None and file.total_lines > 0 else None
        if start == 1 and count == total and count and not file.truncated_by_token_cap:
            tracked.record_content(_normalise_newlines(file.content), evidence, self.command_count)
        else:
            tracked.record_lines(lines_by_number(file), total, evidence, self.command_count)

    def _apply_input(self, call: Call, event: ReplayEvent) -> None:
        """Apply calls of agents, whose own results are often not written: only the input and the output are known."""
        path = _string_input(call, "notebook_path" if call.tool == "NotebookEdit" else "file_path")
        if not path:
            return
        match call.tool:
            case "Write" if (content := _string_input(call, "content")) is not None:
                self._file(path).record_write(
                    _normalise_newlines(content), _evidence(event, EvidenceKind.WRITE), self.command_count
                )
            case "Edit":
                old, new = _string_input(call, "old_string"), _string_input(call, "new_string")
                replace_all = bool(call.input.get("replace_all"))
                edit = EditResult(file_path=path, old_string=old, new_string=new, replace_all=replace_all)
                self._apply_edit(edit, event)
            case "MultiEdit":
                edits, misfits = fit(call.input.get("edits"), list[OneEdit])
                if edits and not misfits:
                    self._apply_multi_edit(MultiEditResult(file_path=path, edits=edits), event)
                else:
                    self._file(path).record_unknown_change(_evidence(event, EvidenceKind.EDIT), self.command_count)
            case "NotebookEdit":
                self._apply_notebook_edit(NotebookEditResult(notebook_path=path), event, call)
            case "Read" if lines := parse_numbered_lines(call.output):
                self._file(path).record_lines(lines, None, _evidence(event, EvidenceKind.READ), self.command_count)

    def _apply_attachment(self, event: ReplayEvent, entry: AttachmentEntry) -> None:
        match entry.attachment:
            case EditedTextFile(filename=str(path), snippet=snippet):
                lines = parse_numbered_lines(snippet or "")
                self._file(path).record_outside_change(
                    lines, _evidence(event, EvidenceKind.OUTSIDE), self.command_count
                )
            case FileAttachment(content=dict(content)):
                result = typed_result(content, "Read")
                if isinstance(result, ReadResult):
                    self._apply_read(result, event, EvidenceKind.ATTACHED)

    def _apply_backup(self, event: ReplayEvent) -> None:
        if event.backup is None:
            return
        path, backup = event.backup
        cwd = backup.real_parent_dir or self._root
        file = self._file(full_path(base_name(path) if backup.real_parent_dir else path, cwd))
        evidence = _evidence(event, EvidenceKind.BACKUP)
        if backup.backup_file_name is None:
            file.record_absence(evidence, self.command_count)
            return
        data = self._backup(backup.backup_file_name) if self._backup is not None else None
        try:
            text = data.decode() if data is not None else None
        except UnicodeDecodeError:
            text = None
        file.record_backup(_normalise_newlines(text), evidence, self.command_count)

    def _after_change(self, event: ReplayEvent, call: Call) -> None:
        """Apply what follows a change: it was refused, or a hook ran after it."""
        path = _string_input(call, "file_path") or _string_input(call, "notebook_path")
        file = self._files.get(full_path(path, self._cwd)) if path and call.tool in _EDIT_TOOLS else None
        if file is None:
            return
        if call.outcome is Outcome.OK:
            self._changed_by[call.id] = file
            early_hook = self._early_hooks.pop(call.id, None)
            if early_hook is not None:
                self._apply_hook(HookRun(_AFTER_CALL_EVENT, call.id), early_hook)
        elif _NEWER_FILE_ERROR in call.output:
            file.add_doubt(_evidence(event, EvidenceKind.OUTSIDE))

    def _apply_hook(self, hook: HookRun, event: ReplayEvent) -> None:
        """Apply a hook, which may change what was just written. Its row may come before or after the result's."""
        if hook.event == _AFTER_TURN_EVENT:
            self.command_count += 1
        elif hook.event == _AFTER_CALL_EVENT and hook.call is not None:
            file = self._changed_by.get(hook.call)
            if file is None:
                self._early_hooks[hook.call] = event
            else:
                self.command_count += 1
                file.add_doubt(_evidence(event, EvidenceKind.HOOK))

    def _record_command(self, command: str, event: ReplayEvent) -> None:
        """Note something that may have changed any file. Files that it names are in doubt."""
        self.command_count += 1
        for name in file_names_in(command):
            if (named := self._by_name.get(name)) is not None:
                named.evidence.append(_evidence(event, EvidenceKind.COMMAND))


def lines_by_number(file: ReadFile) -> dict[int, str]:
    """Return the lines that were read, by number."""
    if not file.num_lines:
        return {}
    return dict(enumerate(_normalise_newlines(file.content).split("\n"), max(1, file.start_line or 1)))


def _apply_edits(content: str | None, edits: list[OneEdit]) -> str | None:
    for edit in edits:
        if content is not None:
            old, new = _normalise_newlines(edit.old_string or ""), _normalise_newlines(edit.new_string or "")
            content = replace_text(content, old, new, all_=bool(edit.replace_all))
    return content


def _normalise_newlines(text: Any) -> Any:
    r"""Return text with `\n` as line ends, as Claude Code has it in memory."""
    return text.replace("\r\n", "\n") if isinstance(text, str) else text


def _evidence(event: ReplayEvent, how: EvidenceKind, *, user: bool | None = False) -> Evidence:
    return Evidence(event.entry.place, EvidenceKind.USER_MODIFIED if user else how, event.agent)


def _string_input(call: Call, name: str) -> str | None:
    value = call.input.get(name) if isinstance(call.input, dict) else None
    return value if isinstance(value, str) else None


def _top_level_strings(value: Any) -> Iterator[str]:
    """Yield the strings at the top level of a call's input."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (item for item in value.values() if isinstance(item, str))


_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/]|\\\\")
# Splits a shell command into words, without quotes and shell operators.
_SHELL_WORDS = re.compile(r"[^\s\"'`;|&<>()={},]+")


def full_path(path: str, cwd: str | None) -> str:
    r"""Return a normalised path, relative to `cwd` if it is not absolute.

    >>> full_path("src/../a.py", "/work")
    '/work/a.py'
    >>> full_path("src\\a.py", "D:\\work")
    'D:\\work\\src\\a.py'
    """
    if _WINDOWS_PATH.match(path) or (cwd and _WINDOWS_PATH.match(cwd)):
        return ntpath.normpath(ntpath.join(cwd or "", path))
    return posixpath.normpath(posixpath.join(cwd or "", path))


def base_name(path: str) -> str:
    """Return the last part of a path."""
    return path[max(path.rfind("/"), path.rfind("\\")) + 1 :]


def file_names_in(command: str) -> set[str]:
    """Return the last parts of all words in a command that could be file names."""
    return {base_name(word) for word in _SHELL_WORDS.findall(command)}
