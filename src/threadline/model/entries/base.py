"""The fields that every entry has, and the entry for lines that no kind fits."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import field

from threadline.model.places import NOWHERE, AgentId, EntryId, Line, Place, Problem, ProblemKind, SessionId
from threadline.model.times import parse_timestamp
from threadline.shape import OTHER_TAG, OWN_PREFIX, Shape, lenient_loads, strip_line


class Entry(Shape, frozen=True, tag_field="type"):
    """One line understood. Each kind is a class of its own; all have these.

    `line` is set by the reader, whatever the JSON says.
    """

    line: Line = field(default=NOWHERE, name="threadline:line")
    uuid: EntryId | None = None
    session_id: SessionId | None = None
    timestamp_text: str | int | float | None = field(default=None, name="timestamp")

    @property
    def kind(self) -> str:
        """The wire's word for this entry, such as `user` or `ai-title`."""
        return str(type(self).__struct_config__.tag)

    @property
    def raw(self) -> bytes:
        """The bytes this entry was made of, line ending included."""
        return self.line.raw

    @property
    def place(self) -> Place:
        """Where to find it again."""
        return self.line.place

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was wrong with the line, if anything."""
        return self.line.problems

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        """What was wrong with the line, including a timestamp that names no moment."""
        if self.timestamp_text is None or self.timestamp is not None:
            return self.problems
        message = f"{str(self.timestamp_text)[:40]!r} names no moment"
        return (*self.problems, Problem(ProblemKind.BAD_TIMESTAMP, self.place.within("$.timestamp"), message))

    @property
    def timestamp(self) -> datetime | None:
        """When it was written, in UTC; None when the line does not say."""
        return parse_timestamp(self.timestamp_text)

    @property
    def data(self) -> Any:
        """The line's JSON as it stands, decoded anew: every field, known or not. None when it is not JSON."""
        try:
            return lenient_loads(strip_line(self.raw)).value
        except (ValueError, RecursionError):
            return None

    @property
    def extra(self) -> dict[str, Any]:
        """The top-level fields that this kind has no attribute for."""
        data = self.data
        if not isinstance(data, dict):
            return {}
        known = {*type(self).__struct_encode_fields__, "type"}
        return {key: value for key, value in data.items() if key not in known}

    def __repr__(self) -> str:
        said = (f"{name}={value!r}" for name, value in self._said() if value is not None)
        return f"{type(self).__name__}({', '.join(said)})"

    def _said(self) -> tuple[tuple[str, Any], ...]:
        """What is worth showing in a notebook; kinds add their own."""
        place = str(self.place) if self.line is not NOWHERE else None
        return (("place", place), ("uuid", self.uuid), ("timestamp", self.timestamp_text))


class ForkedFrom(Shape, frozen=True):
    """The entry that a branched session's copy was made of."""

    session_id: SessionId | None = None
    message_uuid: EntryId | None = None


class ChainEntry(Entry, frozen=True):
    """What the five kinds of the conversation graph share."""

    parent_uuid: EntryId | None = None
    logical_parent_uuid: EntryId | None = None
    is_agent: bool | None = field(default=None, name="isSidechain")
    user_type: str | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    slug: str | None = None
    agent_id: AgentId | None = None
    entrypoint: str | None = None
    is_meta: bool | None = None
    session_kind: str | None = None
    session_id_again: SessionId | None = field(default=None, name="session_id")
    team_name: str | None = None
    agent_name: str | None = None
    is_teammate: bool | None = None
    forked_from: ForkedFrom | None = None
    spawning_uuid: EntryId | None = field(default=None, name="sidechainParentUuid")
    parent_call_id: str | None = field(default=None, name="parent_tool_use_id")


class OtherEntry(Entry, frozen=True, tag=OTHER_TAG):
    """A line kept whole because no kind fits it.

    `tag` is the line's own `type` when it is an object of an unknown kind, else one of these words:
    `blank` (an empty line), `damaged` (no entry could be made of it), `pending` (a last line still being
    written), `untyped` (an object without a `type`).
    """

    tag: str = field(default="", name=f"{OWN_PREFIX}tag")

    @property
    def kind(self) -> str:
        """The line's own word for itself, or `blank`, `damaged`, `pending`, `untyped`."""
        return self.tag

    def _said(self) -> tuple[tuple[str, Any], ...]:
        return (("kind", self.tag), *super()._said())
