"""Files while a session is replayed: what each tool's result, each note and each backup proves of them.

A command proves nothing, but it may change any file: it is counted, and where it names a file that is known, it is a
doubt about that file. So is a hook that ran after the file was changed: formatters are run that way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from threadline.model.attachments import EditedTextFile, FileAttachment
from threadline.model.call import Call, Outcome
from threadline.model.entries import AttachmentEntry, ChainEntry, UserEntry
from threadline.model.ids import AgentId
from threadline.model.place import Place
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
from threadline.model.state import Evidence, FileState, How
from threadline.thread.state.hooks import Hook, hook_of
from threadline.thread.state.known import Known, Named
from threadline.thread.state.moments import Moment
from threadline.thread.state.numbered import numbered_lines
from threadline.thread.state.patch import fits, patched, replaced
from threadline.thread.state.paths import base_name, full_path, named_files

Backup = Callable[[str], bytes | None]
"""Gives the bytes of a backup by its file name under `file-history/<session>/`, or None where it is gone."""

Watch = Callable[[Known, ReadFile, Moment], None]
"""Told of each text that was read, with what was known of the file before."""

_SHELLS = frozenset({"Bash", "PowerShell"})
_AGENTS = frozenset({"Task", "Agent"})
_CHANGERS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
# The tool's words for a file that is newer than what the session has seen of it.
_NEWER = "File has been modified since read"
_AFTER_CALL, _AFTER_TURN = "PostToolUse", "Stop"
_SHELL_LINE = "<bash-input>"
_NOTHING_RAN = frozenset({Outcome.DENIED, Outcome.PENDING})


class Ran(Struct, frozen=True):
    """Something that ran and could change any file: a command with its text, or a hook."""

    place: Place
    how: How
    command: str = ""


class Files:
    """The files of a session, replayed moment by moment."""

    def __init__(
        self, backup: Backup | None = None, *, agents: frozenset[AgentId] = frozenset(), watch: Watch | None = None
    ) -> None:
        """`agents` are those whose own transcripts are replayed: what another agent does is not seen."""
        self._known: dict[str, Known] = {}
        self._by_name: dict[str, Named] = {}
        self._backup = backup
        self._agents = agents
        self._watch = watch
        self._hooked: dict[str, Moment] = {}
        self._changed_by: dict[str, Known] = {}
        self._cwd: str | None = None
        self._root: str | None = None
        self.log: list[Ran] = []

    def see(self, moment: Moment) -> None:
        """Learn from one moment."""
        entry = moment.entry
        if isinstance(entry, ChainEntry) and entry.cwd:
            self._cwd = entry.cwd
            self._root = self._root or entry.cwd
        if moment.backup is not None:
            self._backed_up(moment)
        elif moment.call is not None:
            self._called(moment, moment.call)
            self._after_change(moment, moment.call)
        elif (hook := hook_of(entry)) is not None:
            self._hook(hook, moment)
        elif isinstance(entry, AttachmentEntry):
            self._attached(moment, entry)
        elif isinstance(entry, UserEntry) and entry.text.startswith(_SHELL_LINE):
            self._ran(entry.text, moment)

    @property
    def ran(self) -> int:
        """How many acts have run that could change any file."""
        return len(self.log)

    def states(self) -> dict[str, FileState]:
        """How each file stands, in the order in which they were met."""
        return {path: known.state(self.ran) for path, known in self._known.items() if known.evidence}

    def _file(self, path: str) -> Known:
        name = full_path(path, self._cwd)
        known = self._known.get(name)
        if known is None:
            named = self._by_name.setdefault(base_name(name), Named())
            known = self._known[name] = Known(name, named)
        return known

    def _called(self, moment: Moment, call: Call) -> None:
        if call.tool in _SHELLS or call.tool.startswith("mcp__"):
            if call.outcome not in _NOTHING_RAN:
                self._ran("\n".join(_strings(call.input)), moment)
            return
        if call.tool in _AGENTS and call.started not in self._agents:
            self._ran("", moment)
            return
        match call.result:
            case WriteResult() as result:
                self._write(result, moment)
            case EditResult() as result:
                self._edit(result, moment)
            case MultiEditResult() as result:
                self._multi_edit(result, moment)
            case NotebookEditResult() as result:
                self._notebook(result, moment, call)
            case ReadResult() as result:
                self._read(result, moment, How.READ)
            case None if call.outcome is Outcome.OK and isinstance(call.input, dict):
                self._by_input(call, moment)

    def _write(self, result: WriteResult, moment: Moment) -> None:
        if result.file_path is None or result.content is None:
            return
        known, evidence = self._file(result.file_path), _told(moment, How.WRITE, user=result.user_modified)
        if result.original_file is not None or result.type == "create":
            known.was(_text(result.original_file), evidence, self.ran)
        if result.memdir_stamped:
            known.lost(evidence, self.ran)  # the program put a stamp of its own into the text
        else:
            known.written(_text(result.content), evidence, self.ran)

    def _edit(self, result: EditResult, moment: Moment) -> None:
        if result.file_path is None or result.old_string is None or result.new_string is None:
            return
        known, evidence = self._file(result.file_path), _told(moment, How.EDIT, user=result.user_modified)
        old, new, hunks = _text(result.old_string), _text(result.new_string), result.structured_patch
        if result.original_file is not None:
            known.was(_text(result.original_file), evidence, self.ran)
        elif result.stale_recovered:
            known.lost(evidence, self.ran)  # it was edited as it stood then, which is not told
        if result.memdir_stamped:
            known.lost(evidence, self.ran)
        else:
            known.edited(old, new, hunks, evidence, self.ran, all_=bool(result.replace_all))

    def _multi_edit(self, result: MultiEditResult, moment: Moment) -> None:
        if result.file_path is None or result.edits is None:
            return
        known, evidence = self._file(result.file_path), _told(moment, How.EDIT, user=result.user_modified)
        if result.original_file_contents is not None:
            known.was(_text(result.original_file_contents), evidence, self.ran)
        after = _after_all(known.content, result.edits)
        if known.content is not None and (after is None or not fits(after, result.structured_patch)):
            after = patched(
                known.content, result.structured_patch, "".join(one.new_string or "" for one in result.edits)
            )
        if after is not None:
            known.written(after, evidence, self.ran)
        else:
            known.edited("", "", result.structured_patch, evidence, self.ran, all_=False)

    def _notebook(self, result: NotebookEditResult, moment: Moment, call: Call) -> None:
        path = result.notebook_path or _given(call, "notebook_path")
        if not path or result.error:
            return
        known, evidence = self._file(path), _told(moment, How.EDIT)
        if result.original_file is not None:
            known.was(_text(result.original_file), evidence, self.ran)
        if result.updated_file is not None:
            known.written(_text(result.updated_file), evidence, self.ran)
        else:
            known.lost(evidence, self.ran)

    def _read(self, result: ReadResult, moment: Moment, how: How) -> None:
        file = result.file
        if file is None or file.file_path is None:
            return
        known, evidence = self._file(file.file_path), _told(moment, how)
        if result.type == "file_unchanged":
            known.unchanged(evidence, self.ran)
        elif result.type != "text" or file.content is None:
            known.evidence.append(evidence)  # a picture or a notebook: seen, but not as text
        else:
            if self._watch is not None:
                self._watch(known, file, moment)
            self._read_text(known, file, evidence)

    def _read_text(self, known: Known, file: ReadFile, evidence: Evidence) -> None:
        start, count, total = max(1, file.start_line or 1), file.num_lines, file.total_lines
        if start == 1 and count == total and count and not file.truncated_by_token_cap:
            known.found(_text(file.content), evidence, self.ran)
        else:
            known.saw(read_lines(file), total, evidence, self.ran)

    def _by_input(self, call: Call, moment: Moment) -> None:
        """Calls of agents, whose own results are often not written: the input and what the model saw remain."""
        path = _given(call, "file_path")
        if not path:
            return
        match call.tool:
            case "Write" if (content := _given(call, "content")) is not None:
                self._file(path).written(_text(content), _told(moment, How.WRITE), self.ran)
            case "Edit":
                old, new = _given(call, "old_string"), _given(call, "new_string")
                if old is not None and new is not None:
                    every = bool(call.input.get("replace_all"))
                    evidence = _told(moment, How.EDIT)
                    self._file(path).edited(_text(old), _text(new), None, evidence, self.ran, all_=every)
            case "MultiEdit" | "NotebookEdit":
                self._file(path).lost(_told(moment, How.EDIT), self.ran)
            case "Read" if lines := numbered_lines(call.output):
                self._file(path).saw(lines, None, _told(moment, How.READ), self.ran)

    def _attached(self, moment: Moment, entry: AttachmentEntry) -> None:
        match entry.attachment:
            case EditedTextFile(filename=str(path), snippet=snippet):
                lines = numbered_lines(snippet or "")
                self._file(path).changed_outside(lines, _told(moment, How.OUTSIDE), self.ran)
            case FileAttachment(content=dict(content)):
                result = typed_result(content, "Read")
                if isinstance(result, ReadResult):
                    self._read(result, moment, How.ATTACHED)

    def _backed_up(self, moment: Moment) -> None:
        if moment.backup is None:
            return
        path, backup = moment.backup
        cwd = backup.real_parent_dir or self._root
        known = self._file(full_path(base_name(path) if backup.real_parent_dir else path, cwd))
        evidence = _told(moment, How.BACKUP)
        if backup.backup_file_name is None:
            known.missing(evidence, self.ran)
            return
        data = self._backup(backup.backup_file_name) if self._backup is not None else None
        try:
            text = data.decode() if data is not None else None
        except UnicodeDecodeError:
            text = None
        known.backed_up(_text(text), evidence, self.ran)

    def _after_change(self, moment: Moment, call: Call) -> None:
        """What is known of a change beside the change itself: that it was refused, or that a hook followed it."""
        path = _given(call, "file_path") or _given(call, "notebook_path")
        known = self._known.get(full_path(path, self._cwd)) if path and call.tool in _CHANGERS else None
        if known is None:
            return
        if call.outcome is Outcome.OK:
            self._changed_by[call.id] = known
            hooked = self._hooked.pop(call.id, None)
            if hooked is not None:
                self._hook(Hook(_AFTER_CALL, call.id), hooked)
        elif _NEWER in call.output:
            known.doubt(_told(moment, How.OUTSIDE))

    def _hook(self, hook: Hook, moment: Moment) -> None:
        """A hook may change what was just written; its row may stand before or after the result's."""
        if hook.event == _AFTER_TURN:
            self.log.append(Ran(moment.entry.place, How.HOOK))
        elif hook.event == _AFTER_CALL and hook.call is not None:
            known = self._changed_by.get(hook.call)
            if known is None:
                self._hooked[hook.call] = moment
            else:
                self.log.append(Ran(moment.entry.place, How.HOOK))
                known.doubt(_told(moment, How.HOOK))

    def _ran(self, command: str, moment: Moment) -> None:
        """Something ran that could change any file; those that it names are in doubt."""
        self.log.append(Ran(moment.entry.place, How.COMMAND, command))
        for name in named_files(command):
            if (named := self._by_name.get(name)) is not None:
                named.said.append(_told(moment, How.COMMAND))


def read_lines(file: ReadFile) -> dict[int, str]:
    """The lines that were read, by number."""
    if not file.num_lines:
        return {}
    return dict(enumerate(_text(file.content).split("\n"), max(1, file.start_line or 1)))


def _after_all(content: str | None, edits: list[OneEdit]) -> str | None:
    for one in edits:
        if content is not None:
            old, new = _text(one.old_string or ""), _text(one.new_string or "")
            content = replaced(content, old, new, all_=bool(one.replace_all))
    return content


def _text(text: Any) -> Any:
    """Text with newlines as line ends, as Claude Code itself has it in memory."""
    return text.replace("\r\n", "\n") if isinstance(text, str) else text


def _told(moment: Moment, how: How, *, user: bool | None = False) -> Evidence:
    return Evidence(moment.entry.place, How.USER_MODIFIED if user else how, moment.agent)


def _given(call: Call, name: str) -> str | None:
    value = call.input.get(name) if isinstance(call.input, dict) else None
    return value if isinstance(value, str) else None


def _strings(value: Any) -> Iterator[str]:
    """The strings at the top of a call's input."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (item for item in value.values() if isinstance(item, str))
