"""The fields that Claude Code always writes, by kind of entry and version, and those that an entry lacks.

The table was measured on real transcripts of versions 1.0.17 to 2.1.325. A field that some real row lacks is not in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any

from msgspec import Struct

from threadline.model.names import parse_version


class RequiredField(Struct, frozen=True):
    """A field that every entry of a kind has.

    `since` and `until` are the first and the last version that write it; empty means no limit. An entry that names no
    version must have the fields without limits. `only` restricts the rule: to a `subtype` of system entries, or to
    user entries that contain a tool result (`tool_result`). `nullable` fields may be null, but not absent.
    """

    kind: str
    field: str
    since: str = ""
    until: str = ""
    only: str = ""
    nullable: bool = False


def _rules(kind: str, names: str, **limits: Any) -> Iterator[RequiredField]:
    return (RequiredField(kind, name, **limits) for name in names.split())


def _chain_rules(kind: str, names: str) -> Iterator[RequiredField]:
    """Rules for a kind of the conversation graph."""
    yield from _rules(kind, names)
    yield RequiredField(kind, "parentUuid", nullable=True)
    yield from _rules(kind, "timestamp sessionId isSidechain userType cwd version")
    yield RequiredField(kind, "gitBranch", since="1.0.98")


_RESULT = "tool_result"
REQUIRED: tuple[RequiredField, ...] = (
    *_chain_rules("user", "uuid message message.role"),
    RequiredField("user", "message.content", nullable=True),
    RequiredField("user", "sourceToolAssistantUUID", since="2.1.1", only=_RESULT),
    *_chain_rules("assistant", "uuid message message.id message.model message.role message.content message.usage"),
    *_chain_rules("attachment", "attachment"),  # a few are written without a uuid
    *_chain_rules("progress", "uuid data toolUseID parentToolUseID"),
    *_chain_rules("system", "uuid"),
    *_rules("system", "content compactMetadata", only="compact_boundary"),
    *_rules("system", "content microcompactMetadata", only="microcompact_boundary"),
    *_rules("system", "content", only="local_command"),
    *_rules("system", "content", only="away_summary"),
    *_rules("system", "content", only="informational"),
    *_rules("system", "content url", only="bridge_status"),
    *_rules("system", "durationMs", only="turn_duration"),
    *_rules("system", "hookCount hookInfos hookErrors", only="stop_hook_summary"),
    *_rules("system", "error retryInMs retryAttempt maxRetries", only="api_error"),
    *_rules("summary", "summary leafUuid"),
    *_rules("ai-title", "aiTitle sessionId"),
    *_rules("custom-title", "customTitle sessionId"),
    *_rules("tag", "tag sessionId"),
    *_rules("agent-name", "agentName sessionId"),
    *_rules("agent-color", "agentColor sessionId"),
    *_rules("agent-setting", "agentSetting sessionId"),
    *_rules("last-prompt", "sessionId"),
    *_rules("mode", "mode sessionId"),
    *_rules("permission-mode", "permissionMode sessionId"),
    *_rules("pr-link", "prNumber prUrl prRepository timestamp sessionId"),
    *_rules("bridge-session", "bridgeSessionId sessionId"),
    *_rules("relocated", "relocatedCwd sessionId"),
    *_rules("continued-in", "continuedInSessionId sessionId"),
    *_rules("fork-context-ref", "agentId parentSessionId parentLastUuid"),
    *_rules("frame-link", "path frameUrl title timestamp sessionId"),
    *_rules("file-history-snapshot", "messageId snapshot isSnapshotUpdate"),
    *_rules("file-history-delta", "messageId snapshotMessageId trackingPath backup timestamp"),
    *_rules("queue-operation", "operation timestamp sessionId"),
    *_rules("tools-used", "tools sessionId"),
    *_rules("cost-state", "totalCostUSD modelUsage sessionId"),
    *_rules("api-request-shape", "shapeHash shape timestamp version sessionId"),
    *_rules("api-request-blob", "hash message sessionId"),
    *_rules("api-request", "id params timestamp version sessionId"),
)
"""Every required field."""


class _Rule(Struct, frozen=True):
    """A required field, with the names of its attribute."""

    field: RequiredField
    path: tuple[str, ...]


class _Check(Struct, frozen=True):
    """The rules for a kind of entry and a version. `values` reads all attributes in one call.

    If the entry has no message, that raises an `AttributeError`.
    """

    rules: tuple[_Rule, ...]
    values: Callable[[Any], tuple[Any, ...]]

    def is_met_by(self, entries: Iterable[Any]) -> bool:
        """Whether all entries have a value for every field. If not, some may be null."""
        try:
            return None not in chain.from_iterable(map(self.values, entries))
        except AttributeError:
            return False


def _variant_of_user(entry: Any) -> str:
    # Only entries with a tool result need the field, so look for one only if it is missing.
    return _RESULT if entry.source_tool_assistant_uuid is None and entry.call_id is not None else ""


def _variant_of_system(entry: Any) -> str:
    return entry.subtype or ""


# Of these kinds, not all entries have the same fields.
_VARIANTS: dict[object, Callable[[Any], str]] = {"user": _variant_of_user, "system": _variant_of_system}


def find_suspects(entries: Iterable[Any]) -> Iterator[Any]:
    """Yield the entries that may lack a required field.

    Nearly all entries have them all, and many entries are checked faster together than one by one.
    """
    groups: defaultdict[tuple[type[Struct], Any], list[Any]] = defaultdict(list)
    for entry in entries:
        groups[type(entry), getattr(entry, "version", None)].append(entry)
    for (type_, version), group in groups.items():
        variants = {"": group}
        if (variant_of := _VARIANTS.get(type_.__struct_config__.tag)) is not None:
            variants = {}
            for entry in group:
                variants.setdefault(variant_of(entry), []).append(entry)
        for variant, alike in variants.items():
            check = _check_for(type_, variant, version or "")
            if check is not None and not check.is_met_by(alike):
                yield from (entry for entry in alike if not check.is_met_by((entry,)))


def missing_fields(entry: Any) -> tuple[RequiredField, ...]:
    """Return the required fields that an entry lacks.

    A field whose value has the wrong type is not missing.
    """
    type_: type[Struct] = type(entry)
    kind = type_.__struct_config__.tag
    variant_of = _VARIANTS.get(kind)
    variant = variant_of(entry) if variant_of is not None else ""
    check = _check_for(type_, variant, getattr(entry, "version", None) or "")
    if check is None or check.is_met_by((entry,)):
        return ()
    suspects = [rule for rule in check.rules if _read(rule, entry) is None]
    if not suspects or all(_starts_with_null(entry, rule) for rule in suspects):
        return ()
    data = entry.data
    return tuple(rule.field for rule in suspects if _is_missing(data, rule))


def _starts_with_null(entry: Any, rule: _Rule) -> bool:
    """Whether a nullable field is the first of the object and is null: so nothing has to be decoded again.

    That is how Claude Code writes the parent of the first entry of a conversation.
    """
    return rule.field.nullable and bool(entry.line.raw.startswith(b'{"%s":null,' % rule.field.field.encode()))


def describe_rule(rule: RequiredField) -> str:
    """Return a sentence that says which field is missing.

    >>> describe_rule(RequiredField("user", "gitBranch", since="1.0.98"))
    '`gitBranch` is missing: version 1.0.98 and later always write it in `user` entries'
    """
    kind = f"`{rule.kind}` entries"
    if rule.only:
        kind = f"{kind} with a tool result" if rule.kind == "user" else f"{kind} of subtype `{rule.only}`"
    if rule.since and rule.until:
        writers = f"versions {rule.since} to {rule.until} always write"
    elif rule.since:
        writers = f"version {rule.since} and later always write"
    elif rule.until:
        writers = f"versions up to {rule.until} always write"
    else:
        writers = "every version writes"
    return f"`{rule.field}` is missing: {writers} it in {kind}"


@lru_cache(maxsize=1024)
def _check_for(type_: type[Struct], variant: str, version: str) -> _Check | None:
    kind = type_.__struct_config__.tag
    fields = (field for field in REQUIRED if field.kind == kind and field.only in ("", variant))
    rules = tuple(_make_rule(field, type_) for field in fields if _applies(field, parse_version(version)))
    return _Check(rules, _values_getter([".".join(rule.path) for rule in rules])) if rules else None


def _make_rule(field: RequiredField, type_: type[Struct]) -> _Rule:
    first, *rest = field.field.split(".")
    name = type_.__struct_fields__[type_.__struct_encode_fields__.index(first)]
    path = (name, *rest)  # the fields of a message have the same names as their attributes
    return _Rule(field, path)


def _values_getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    getters = [attrgetter(name) for name in names]
    return attrgetter(*names) if len(names) > 1 else lambda value: tuple(get(value) for get in getters)


def _applies(field: RequiredField, version: tuple[int, ...]) -> bool:
    """Whether a version writes the field."""
    if not version:
        return not field.since and not field.until
    return parse_version(field.since) <= version and (not field.until or version <= parse_version(field.until))


def _read(rule: _Rule, entry: Any) -> Any:
    """Return the attribute's value. A field of an object that is missing itself is not reported."""
    value = getattr(entry, rule.path[0])
    if len(rule.path) == 1:
        return value
    return True if value is None else getattr(value, rule.path[1])


def _is_missing(data: Any, rule: _Rule) -> bool:
    value = data
    for name in rule.field.field.split("."):
        if not isinstance(value, dict):
            return False  # a wrong type, which is another problem
        if name not in value:
            return True
        value = value[name]
    return value is None and not rule.field.nullable
