"""Redact the records of sessions, once for every output: exports, answers, data sets.

A `SessionRedactor` first learns all records and then redacts them. Unlike a `Redactor`, which knows only texts, it
knows the structure of a transcript: content blocks that follow each other, the lines of a patch, a command and its
output, a question and its answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

from threadline.redact.metrics import keep_metrics
from threadline.redact.records import (
    NAME_KEYS,
    VALUE_KEYS,
    FormatWords,
    JoinedTexts,
    Leaf,
    RecordTexts,
    format_vocabulary,
    join_group,
    join_leaves,
    join_lines,
    join_seams,
    list_leaves,
    positions_in_group,
    quote_secret_numbers,
    replace_pieces,
)
from threadline.redact.redactor import Finding, Redactor, find_strictly
from threadline.redact.rules import identity, provenance
from threadline.redact.rules.assignments import is_credible
from threadline.redact.rules.formats import Span
from threadline.redact.rules.heuristics import is_distinctive, is_password_in_prose, is_secret_name, kind_of
from threadline.redact.rules.patterns import compile_lazily
from threadline.redact.scanner import CONTEXT_KINDS, PERSONAL_KINDS, counts_in_lines, find_spans
from threadline.redact.settings import Level, Settings
from threadline.redact.views import TextView, complete_views

_MAX_ROUNDS = 4
_MAX_COMMANDS = 4096
_LONG_TEXT = 2048
_GROUP_SIZE = 256 * 1024
# Kinds that need a name or a word before the value. Two halves that are joined say nothing about these.
_CONTEXT_KINDS = frozenset(CONTEXT_KINDS) - {"azure-client-secret", "webhook"}
_Record = TypeVar("_Record")


class Match(NamedTuple):
    """What was found in a text of a record. If `is_local`, only the structure of the record reveals it."""

    leaf: Leaf
    span: Span
    is_local: bool = False

    @property
    def value(self) -> str:
        """The secret. It may be longer than the part of it in this text."""
        return self.span.value or self.leaf.text[self.span.start : self.span.end]


class RecordScanner:
    """Finds everything to redact in the records of a session, one after the other.

    It remembers the commands whose output is secret and the questions whose answers are, so records must come in the
    order of the transcript.
    """

    def __init__(
        self,
        fixed: FormatWords | None = None,
        *,
        personal: bool = True,
        strict: bool = False,
        find: Callable[[str, list[TextView] | None], list[Span]] | None = None,
    ) -> None:
        self._fixed = fixed or FormatWords()
        self._personal = personal
        self._strict = strict
        self._find = find or self._find_by_rules
        self._context = ConversationContext(personal=personal)

    def find(self, record: Any) -> list[Match]:
        """Find everything in a record."""
        return [*self._find_in_record(record), *self._context.find(record)]

    def find_all(
        self, records: Iterable[_Record], value_of: Callable[[_Record], Any], note: Callable[[RecordTexts], None]
    ) -> Iterator[tuple[_Record, list[Match]]]:
        """Find everything in many records. The texts of many are searched at once, which is faster.

        `note` gets the texts of each record, with what is known of them.
        """
        group: list[tuple[_Record, RecordTexts]] = []
        size = 0
        for record in records:
            texts = RecordTexts(value_of(record), self._fixed)
            group.append((record, texts))
            size += len(texts.text)
            if size > _GROUP_SIZE:
                yield from self._find_in_group(group, value_of, note)
                group, size = [], 0
        yield from self._find_in_group(group, value_of, note)

    def _find_in_group(
        self,
        group: list[tuple[_Record, RecordTexts]],
        value_of: Callable[[_Record], Any],
        note: Callable[[RecordTexts], None],
    ) -> Iterator[tuple[_Record, list[Match]]]:
        text, starts = join_group([texts.text for _record, texts in group])
        views, is_complete = complete_views(text)
        touched: dict[int, list[Span]] = {} if is_complete else {at: [] for at in range(len(group))}
        for span in (*self._find(text, views), *find_printed(text)):
            for at in positions_in_group(starts, span.start, span.end):
                touched.setdefault(at, []).append(span)
        for view in views:
            for start, end in view.places:
                for at in positions_in_group(starts, start, end):
                    group[at][1].viewed_places.append((start - starts[at], end - starts[at]))
        for at, (record, texts) in enumerate(group):
            value = value_of(record)
            spans = touched.get(at)
            if spans is None:
                matches = list(self._find_by_names(value, texts))
                texts.clean_texts = [] if matches else texts.texts
            else:
                # Nearly every record contains paths in somebody's home, and nothing else.
                is_personal = all(span.kind in PERSONAL_KINDS for span in spans)
                values = {text[span.start : span.end] for span in spans} if is_personal else set()
                matches = self._find_personal(value, texts, values) or list(self._find_in_record(value))
            texts.is_clean = not matches
            if is_complete:
                note(texts)
            yield record, [*matches, *self._context.find(value)]

    def _find_by_names(self, record: Any, texts: RecordTexts) -> Iterator[Match]:
        """The values of a record that only the names of fields make secret."""
        if texts.has_secret_key:
            yield from self._find_in_leaves(list(list_leaves(record, self._fixed)), ())
        if texts.is_telling:
            yield from find_named_fields(record)

    def _find_personal(self, record: Any, texts: RecordTexts, values: set[str]) -> list[Match]:
        """The matches of a record that contains only these personal data; empty if a value is not found in one text."""
        if not values:
            return []
        leaves = list(list_leaves(record, self._fixed))
        touched = {leaf.text for leaf in leaves if any(value in leaf.text for value in values)}
        matches = list(self._find_in_leaves(leaves, touched))
        if not values <= {match.leaf.text[match.span.start : match.span.end] for match in matches}:
            return []
        texts.clean_texts = [text for text in texts.texts if text not in touched]
        return [*matches, *(find_named_fields(record) if texts.is_telling else ())]

    def _find_in_record(self, record: Any) -> Iterator[Match]:
        leaves = list(list_leaves(record, self._fixed))
        joined = join_leaves(leaves)
        spans = self._find_spans(joined.text)
        touched = {piece.leaf.text for span in spans for piece in joined.pieces(span.start, span.end)}
        yield from self._find_in_leaves(leaves, touched)
        # The name of a value may be in the field before it, so that the value alone shows nothing.
        by_context = [span for span in spans if span.kind in _CONTEXT_KINDS]
        yield from _pieces_across(joined, by_context, min_pieces=1)
        yield from _pieces_across(joined, [span for span in spans if span.kind not in _CONTEXT_KINDS])
        seams = join_seams(leaves)
        if seams.leaves:
            by_format = [span for span in self._find_spans(seams.text) if span.kind not in _CONTEXT_KINDS]
            yield from _pieces_across(seams, by_format)
        lines = join_lines(leaves)
        if lines.leaves:
            text = lines.text
            spans = [span for span in self._find_spans(text) if counts_in_lines(span, text)]
            yield from _pieces_across(lines, spans, min_pieces=1)
        yield from find_named_fields(record)
        for leaf in leaves:
            if not leaf.is_key and not leaf.is_patch_line:
                yield from (Match(leaf, span, is_local=True) for span in find_printed(leaf.text))

    def _find_spans(self, text: str) -> list[Span]:
        return self._find(text, None)

    def _find_by_rules(self, text: str, views: list[TextView] | None) -> list[Span]:
        spans = find_spans(text, views, personal=self._personal)
        return [*spans, *find_strictly(text)] if self._strict else spans

    def find_in_text(self, text: str) -> list[Match]:
        """Find everything in a line that is not JSON."""
        leaf = Leaf((), "", text)
        return [Match(leaf, span) for span in (*self._find_spans(text), *find_printed(text))]

    def _find_in_leaves(self, leaves: list[Leaf], touched: Container[str]) -> Iterator[Match]:
        """Search again the texts in which something is, each by itself and by its key."""
        for leaf in leaves:
            if not leaf.is_key and is_secret_name(leaf.key) and is_credible(leaf.key, leaf.text, quoted=True):
                whole = Span(0, len(leaf.text), kind_of(leaf.key, leaf.text), local_only=not is_distinctive(leaf.text))
                yield Match(leaf, whole)
            elif leaf.text in touched:
                yield from (Match(leaf, span) for span in self._find_spans(leaf.text))


_LINES_VIEW = 2


def _pieces_across(joined: JoinedTexts, spans: list[Span], min_pieces: int = 2) -> Iterator[Match]:
    """The parts of spans that extend over several texts."""
    for span in spans:
        pieces = joined.pieces(span.start, span.end)
        if len(pieces) >= min_pieces:
            value = span.value or "".join(piece.leaf.text[piece.start : piece.end] for piece in pieces)
            for piece in pieces:
                is_part = len(pieces) > 1 or span.local_only
                part = Span(piece.start, piece.end, span.kind, local_only=is_part, value=value)
                yield Match(piece.leaf, part, is_local=True)


_TEXT_KEYS = frozenset(("content", "data", "text", "body"))
_INPUT_FIELD = compile_lazily(r" (?:input|field|textbox|text box|box|textfield)\Z", re.IGNORECASE)


@lru_cache(maxsize=4096)
def _is_title(text: str) -> bool:
    """Whether a text names a secret: `DB_PASSWORD`, `VPN password`, `Password input`."""
    return is_secret_name(_INPUT_FIELD.sub("", text)) and text.count(" ") < 4  # noqa: PLR2004 - a sentence


def find_named_fields(record: Any) -> Iterator[Match]:
    """Values of objects that name them in another field (`{"name": "DB_PASSWORD", "value": …}`), and numbers."""
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), record)]
    while pending:
        path, node = pending.pop()
        if isinstance(node, dict):
            quoted = quote_secret_numbers(node)
            for key in quoted if quoted is not node else ():
                if quoted[key] is not node[key]:
                    leaf = Leaf((*path, str(key)), str(key), quoted[key])
                    yield Match(leaf, Span(0, len(leaf.text), "password", local_only=True), is_local=True)
            if path and path[-1] in _CONTAINERS:
                yield from _find_contained(node, path)
            names = [node[key] for key in node if key in NAME_KEYS and isinstance(node[key], str)]
            values = [key for key in node if key in VALUE_KEYS and isinstance(node[key], str)] if names else []
            for key in values:
                name = next((name for name in names if len(name) < 100 and _is_title(name)), None)  # noqa: PLR2004 - a name
                if name is None:
                    continue
                # A title of several words may also be a label. What it names must look like a password.
                is_title = " " in name and key in _TEXT_KEYS
                is_named = is_password_in_prose(node[key]) if is_title else is_credible(name, node[key], quoted=True)
                if is_named:
                    leaf = Leaf((*path, key), key, node[key])
                    span = Span(0, len(leaf.text), kind_of(name, leaf.text), local_only=not is_distinctive(leaf.text))
                    yield Match(leaf, span, is_local=True)
            pending += [((*path, str(key)), inner) for key, inner in node.items() if isinstance(inner, dict | list)]
        elif isinstance(node, list):
            pending += [((*path, at), inner) for at, inner in enumerate(node) if isinstance(inner, dict | list)]


_CONTAINERS = frozenset(("secrets", "passwords"))


def _find_contained(node: dict[str, Any], path: tuple[str | int, ...]) -> Iterator[Match]:
    """The values of an object whose name says that all of them are secret: `"secrets": {"stripe": …}`."""
    for key, value in node.items():
        if isinstance(value, str) and is_password_in_prose(value):
            span = Span(0, len(value), "password", local_only=not is_distinctive(value))
            yield Match(Leaf((*path, str(key)), str(key), value), span, is_local=True)


def find_printed(text: str) -> list[Span]:
    """Secrets by what surrounds them: in shell sessions, announcements of generated passwords and manifests."""
    return [
        *provenance.find_in_shell_sessions(text),
        *provenance.find_announced_passwords(text),
        *provenance.find_in_manifests(text),
    ]


_COMMAND_FIELDS = ("command", "cmd", "script", "code")
_FILE_FIELDS = ("file_path", "path", "filename", "uri", "notebook_path")
_SHELL_INPUT = compile_lazily(r"<bash-input>(.*?)</bash-input>", re.DOTALL)
_SHELL_OUTPUT = compile_lazily(r"<bash-stdout>(.*?)</bash-stdout>", re.DOTALL)
_BACKGROUND_ID = compile_lazily(
    r"(?:running in (?:the )?background with (?:task )?ID:?|shell ID:?)\s*([\w-]{2,40})", re.IGNORECASE
)
_ANSWERED = compile_lazily(r'"([^"\n]{4,500})"="([^"\n]{1,500})"')


_NO_LEAF = Leaf((), "", "")


class ConversationContext:
    """What earlier records say about the texts of later ones: commands, files that were read, questions."""

    def __init__(self, *, personal: bool = True) -> None:
        self._personal = personal
        self._calls: dict[str, tuple[str, str]] = {}
        self._background: dict[str, tuple[str, str]] = {}
        self._shell_input = ""
        self._is_asked = False
        self._last_text = self._last_command = _NO_LEAF

    def find(self, record: Any) -> list[Match]:
        """The secrets that a record contains by what came before it."""
        if not isinstance(record, dict):
            return []
        message = record.get("message")
        path: tuple[str | int, ...] = ("message", "content") if isinstance(message, dict) else ("content",)
        content = message.get("content") if isinstance(message, dict) else record.get("content")
        matches = self._find_across_messages(content, path)
        if isinstance(content, str):
            matches += self._read_prompt(record, Leaf(path, "content", content))
        elif isinstance(content, list):
            for at, block in enumerate(content):
                if isinstance(block, dict):
                    matches += self._read_block(record, block, (*path, at))
        return matches

    def _find_across_messages(self, content: Any, path: tuple[str | int, ...]) -> list[Match]:
        """Both halves of a token that starts in a message and continues in the next, as a page shows them."""
        texts, commands = _message_leaves(content, path)
        pairs = [(self._last_text, texts[:1]), (self._last_text, commands[:1]), (self._last_command, texts[:1])]
        if texts:
            self._last_text = texts[-1]
        if texts or commands:
            self._last_command = commands[-1] if commands else _NO_LEAF
        return [match for before, leaves in pairs for after in leaves for match in _find_across(before, after)]

    def _read_block(self, record: dict[str, Any], block: dict[str, Any], path: tuple[str | int, ...]) -> list[Match]:
        kind = str(block.get("type"))  # of a damaged block, it may be anything
        if kind in {"tool_use", "server_tool_use", "mcp_tool_use"}:
            self._note_call(block)
        elif kind in {"tool_result", "mcp_tool_result"}:
            return self._read_result(record, str(block.get("tool_use_id")), path)
        elif kind == "text" and isinstance(block.get("text"), str):
            text = block["text"]
            if record.get("type") == "assistant":
                self._is_asked = provenance.asks_for_secret(text)
                return []
            return self._read_prompt(record, Leaf((*path, "text"), "text", text))
        return []

    def _note_call(self, block: dict[str, Any]) -> None:
        """Remember a call if its output is secret."""
        arguments = block.get("input")
        if not isinstance(arguments, dict) or not isinstance(block.get("id"), str):
            return
        command = next((arguments[key] for key in _COMMAND_FIELDS if isinstance(arguments.get(key), str)), "")
        path = next((arguments[key] for key in _FILE_FIELDS if isinstance(arguments.get(key), str)), "")
        shell = next(
            (arguments[key] for key in ("bash_id", "shell_id", "task_id") if isinstance(arguments.get(key), str)), ""
        )
        call = ("", "")
        if command and (provenance.analyze_command(command) or identity.analyze_printers(command)):
            call = ("command", command)
        elif shell in self._background:
            call = self._background[shell]
        elif path and str(block.get("name")) not in {"Write", "Edit", "MultiEdit"} and provenance.classify_file(path):
            call = ("file", path)
        elif "questions" in arguments or "question" in arguments:
            call = ("question", "")
        if call[0]:
            if len(self._calls) >= _MAX_COMMANDS:
                del self._calls[next(iter(self._calls))]  # the oldest: the results of the others may still come
            self._calls[block["id"]] = call

    def _read_result(self, record: dict[str, Any], call_id: str, path: tuple[str | int, ...]) -> list[Match]:
        call = self._calls.get(call_id)
        if call is None:
            return []
        leaves = [leaf for leaf in list_leaves(record, FormatWords()) if not leaf.is_key]
        own = [leaf for leaf in leaves if leaf.path[: len(path)] == path and leaf.key not in {"tool_use_id", "type"}]
        result = [leaf for leaf in leaves if leaf.path[0] == "toolUseResult"]
        kind, subject = call
        if kind == "question":
            return [match for leaf in (*own, *result) for match in _find_answers(leaf)]
        for leaf in own:
            background = _BACKGROUND_ID.search(leaf.text)
            if background:
                self._background[background[1]] = call
        outputs = [
            *own,
            *(
                leaf
                for leaf in result
                if leaf.key in {"stdout", "content", "output", "text", "result", "toolUseResult"}
            ),
        ]
        find = self._find_printed if kind == "command" else provenance.find_in_secret_file
        return [Match(leaf, span, is_local=True) for leaf in outputs for span in find(subject, leaf.text)]

    def _find_printed(self, command: str, output: str) -> list[Span]:
        """What a command printed: secrets, and names of people and machines."""
        secrets = provenance.find_printed_secrets(command, output)
        return [*secrets, *identity.find_printed_names(command, output)] if self._personal else secrets

    def _read_prompt(self, record: dict[str, Any], leaf: Leaf) -> list[Match]:
        """Read what the user typed: an answer, or a command after `!`."""
        text = leaf.text
        if record.get("type") == "assistant":
            return []
        matches: list[Match] = []
        typed = _SHELL_INPUT.search(text)
        if typed:
            self._shell_input = typed[1]
        printed = _SHELL_OUTPUT.search(text)
        if printed and self._shell_input:
            for span in self._find_printed(self._shell_input, printed[1]):
                moved = span._replace(start=span.start + printed.start(1), end=span.end + printed.start(1))
                matches.append(Match(leaf, moved, is_local=True))
        if not typed and not printed and record.get("type") == "user":
            answer = provenance.find_answer(text) if self._is_asked else None
            if answer is not None:
                matches.append(Match(leaf, answer, is_local=True))
            self._is_asked = False
        return matches


_SEAM_REACH = 256
# Every token has a sign or a digit before the place where it is broken.
_UNFINISHED_WORD = compile_lazily(r"[A-Za-z0-9]*[0-9_-][A-Za-z0-9_-]*\Z")
_WORD_START = compile_lazily(r"[A-Za-z0-9_-]{2}")
_NEXT_WORD = compile_lazily(r"[0-9]*[A-Za-z_-]*[0-9]*\Z|.{0,7}\Z")


def _message_leaves(content: Any, path: tuple[str | int, ...]) -> tuple[list[Leaf], list[Leaf]]:
    """The texts of a message that a page shows by themselves, and the commands."""
    if isinstance(content, str):
        return [Leaf(path, "content", content)], []
    texts: list[Leaf] = []
    commands: list[Leaf] = []
    for at, block in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(block, dict):
            continue
        texts += [Leaf((*path, at, key), key, block[key]) for key in ("text", "content") if _is_text(block.get(key))]
        inputs = block.get("input")
        if isinstance(inputs, dict):
            commands += [
                Leaf((*path, at, "input", key), key, inputs[key])
                for key in _COMMAND_FIELDS
                if _is_text(inputs.get(key))
            ]
    return texts, commands


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _find_across(before: Leaf, after: Leaf) -> Iterator[Match]:
    """Both halves of a token that one text ends with and the next one starts with."""
    tail, head = before.text[-_SEAM_REACH:], after.text[:_SEAM_REACH]
    if not _UNFINISHED_WORD.search(tail) or not _WORD_START.match(head):
        return
    is_complete = any(span.end == len(tail) for span in find_spans(tail, personal=False))
    for span in find_spans(tail + head, personal=False):
        rest = span.end - len(tail)
        if not span.start < len(tail) < span.end or span.kind in _CONTEXT_KINDS:
            continue
        # After a complete token, the next text continues it only if that is not a word.
        if is_complete and _NEXT_WORD.match(head, 0, rest):
            continue
        for leaf, start, end in (
            (before, len(before.text) - len(tail) + span.start, len(before.text)),
            (after, 0, rest),
        ):
            is_local = not is_distinctive(leaf.text[start:end])
            yield Match(leaf, Span(start, end, span.kind, is_local), is_local=True)


def _find_answers(leaf: Leaf) -> Iterator[Match]:
    """Secrets in the answers to questions of Claude."""
    pairs = [(match[1], match[2], match.start(2)) for match in _ANSWERED.finditer(leaf.text)]
    if len(leaf.path) > 1 and leaf.path[-2] == "answers":
        pairs.append((leaf.key, leaf.text, 0))
    for question, answer, start in pairs:
        span = provenance.find_answer(answer) if provenance.asks_for_secret(question) else None
        if span is not None:
            yield Match(leaf, span._replace(start=span.start + start, end=span.end + start), is_local=True)


class _RedactedRecord(NamedTuple):
    """A record whose texts are redacted one by one, its place, and its texts; a text has none."""

    record: Any
    place: str
    texts: RecordTexts | None


class SessionRedactor:
    """Redacts the records of one or more sessions. Equal values get the same placeholder in all of them.

    Pass every record to `learn`, in the order of the transcripts, and then to `redact`. What it returns is safe for
    every output: in a record, also texts that are next to each other contain no secret together. With the level
    `metrics`, only times, kinds, models, counts and sizes remain.

    >>> redactor = SessionRedactor()
    >>> record = {"type": "user", "message": {"role": "user", "content": "DB_PASSWORD=" + "vK7-quiet-horse"}}
    >>> redactor.learn(record)
    >>> redactor.redact(record)["message"]["content"]
    'DB_PASSWORD=<secret-1>'
    """

    def __init__(self, settings: Settings | None = None, fixed: FormatWords | None = None) -> None:
        self._fixed = format_vocabulary() if fixed is None else fixed
        self.redactor = Redactor(settings, self._fixed)
        self.level = self.redactor.level
        self._scanner = RecordScanner(self._fixed, find=self.redactor.find_spans)
        # Hashes of the texts of records: in which the rules find nothing, which encode nothing, which were searched for
        # known secrets as well; and of the lines that contain them.
        self._clean_records: set[int] = set()
        self._plain_records: set[int] = set()
        self._short_texts: set[str] = set()
        self._searched: set[int] = set()
        self._safe_lines: set[int] = set()
        self._searched_at = 0

    @property
    def findings(self) -> list[Finding]:
        """The replacements so far; see `Redactor.findings`."""
        return self.redactor.findings

    def learn(self, record: Any) -> None:
        """Learn the secrets and names of a record."""
        if self.level is Level.METRICS:
            return
        if isinstance(record, str):
            self.redactor.learn(record)
            return
        self._learn_matches(self._scanner.find(record))
        self.redactor.learn_projects(record)

    def learn_all(self, records: Iterable[Any]) -> None:
        """Learn many records, which is faster than one by one."""
        values = (record for record in records if self.level is not Level.METRICS)
        for record, matches in self._scanner.find_all(values, lambda record: record, self._note):
            self._learn_matches(matches)
            self.redactor.learn_projects(record)
        self.redactor.search_at_once(self._short_texts)
        self._short_texts.clear()

    def _note(self, texts: RecordTexts) -> None:
        # Short texts are searched again by themselves, because a rule may depend on where a text starts or ends.
        self._short_texts.update(text for text in texts.texts if len(text) <= _LONG_TEXT)
        long_texts = [text for text in texts.clean_texts if len(text) > _LONG_TEXT]
        self.redactor.note_clean(long_texts)
        self.redactor.note_clean_views(long_texts)
        self.redactor.note_plain(text for text in texts.plain_texts() if len(text) > _LONG_TEXT)
        if texts.is_clean:
            self._clean_records.add(hash(texts.text))
            if not texts.viewed_places:
                self._plain_records.add(hash(texts.text))

    def redact(self, record: Any, place: str = "") -> Any:
        """A redacted copy of a record that was learned. A text stands for a line that is not JSON.

        The copy may share parts in which nothing is replaced with the record.
        """
        return next(self.redact_all([(record, place)]))[0]

    def redact_all(self, records: Iterable[tuple[Any, str]]) -> Iterator[tuple[Any, bool]]:
        """Redacted copies of many records, each given with its place, which is faster than one by one.

        Each is returned with whether a search in the redacted record found nothing.
        """
        group: list[_RedactedRecord] = []
        size = 0
        for record, place in records:
            if self.level is Level.METRICS:
                yield "" if isinstance(record, str) else keep_metrics(record, self._fixed), False
                continue
            if isinstance(record, str):
                group.append(_RedactedRecord(self.redactor.redact(record, place), place, None))
                size += len(record)
            else:
                redacted, texts = self._redact_one_by_one(record, place)
                group.append(_RedactedRecord(redacted, place, texts))
                size += len(texts.text)
            if size > _GROUP_SIZE:
                yield from self._redact_group(group)
                group, size = [], 0
        yield from self._redact_group(group)

    def _redact_one_by_one(self, record: Any, place: str) -> tuple[Any, RecordTexts]:
        """A copy of a record whose texts are redacted one by one, and its texts.

        Most records have something to redact only in their own fields, such as `cwd`.
        """
        texts = RecordTexts(record, self._fixed)
        is_unchanged = texts.is_regular and not texts.has_secret_key
        if is_unchanged and self.redactor.is_unchanged(texts.inner_texts, texts.ids):
            redacted = self.redactor.redact_own_fields(record, place)
            if redacted == record:
                return redacted, texts
        else:
            redacted = self.redactor.redact_record(record, place)
        return redacted, RecordTexts(redacted, self._fixed)

    def _redact_group(self, group: list[_RedactedRecord]) -> Iterator[tuple[Any, bool]]:
        """Replace what the joined texts of redacted records still contain. Nearly none contain anything."""
        suspects = self._find_suspects([texts for _record, _place, texts in group if texts is not None])
        for redacted, place, texts in group:
            if texts is None or texts.text not in suspects:
                yield redacted, texts is not None and self._searched_at == self.redactor.version
                continue
            again = redacted
            for _round in range(_MAX_ROUNDS):
                before = again
                again = self._redact_across(before, place)
                if again is before:
                    break
            yield again, False

    def note_safe(self, line: bytes) -> None:
        """Note that a line contains only a record in which a search found nothing."""
        self._safe_lines.add(hash(line))

    def is_safe(self, line: bytes) -> bool:
        """Whether a line was noted, and nothing was learned since then."""
        return hash(line) in self._safe_lines and self._searched_at == self.redactor.version

    def find_suspects(self, records: Iterable[Any]) -> Iterator[Any]:
        """Redacted records that may still contain something. Those that `redact_all` returned rarely do."""
        group: list[tuple[Any, RecordTexts]] = []
        size = 0
        for record in records:
            group.append((record, RecordTexts(record, self._fixed)))
            size += len(group[-1][1].text)
            if size > _GROUP_SIZE:
                yield from self._list_suspects(group)
                group, size = [], 0
        yield from self._list_suspects(group)

    def _list_suspects(self, group: list[tuple[Any, RecordTexts]]) -> Iterator[Any]:
        suspects = self._find_suspects([texts for _record, texts in group])
        return (record for record, texts in group if texts.text in suspects)

    def _find_suspects(self, group: list[RecordTexts]) -> set[str]:
        """The texts of the records in which the rules or a search for known secrets find something."""
        if self._searched_at != self.redactor.version:
            self._searched.clear()
            self._safe_lines.clear()
            self._searched_at = self.redactor.version
        suspects: set[str] = set()
        unsearched = {texts.text for texts in group if hash(texts.text) not in self._searched}
        clean = {text for text in unsearched if hash(text) in self._clean_records}
        plain = {text for text in clean if hash(text) in self._plain_records}
        for members in (unsearched - clean, clean - plain, plain):
            texts = sorted(members)
            joined, starts = join_group(texts)
            views, is_complete = complete_views(joined) if members is not plain else ([], True)
            if not is_complete:
                suspects |= members
                continue
            for start, end in self.redactor.find_places(joined, views, only_known=members <= clean):
                suspects.update(texts[at] for at in positions_in_group(starts, start, end))
        searched = set(map(hash, unsearched - suspects))
        self._searched |= searched
        self._clean_records |= searched
        return suspects

    def check(self, record: Any, place: str = "", own_words: frozenset[str] = frozenset()) -> list[Finding]:
        """Find what a redacted record still contains, in each text and in texts that are next to each other."""
        findings: list[Finding] = []
        for joined, ignored in self._views(record):
            checked = self.redactor.check(joined.text, place, own_words)
            findings += [finding for finding in checked if finding.kind not in ignored]
        return findings

    def _views(self, record: Any) -> Iterator[tuple[JoinedTexts, frozenset[str]]]:
        """The joined texts of a record, each with the kinds that do not count in it."""
        leaves = list(list_leaves(record, self._fixed))
        yield join_leaves(leaves), frozenset()
        # Two halves are joined without anything between them, which says nothing about a value and its name.
        yield join_seams(leaves), _CONTEXT_KINDS
        yield join_lines(leaves), _CONTEXT_KINDS

    def _redact_across(self, record: Any, place: str) -> Any:
        """Replace what the joined texts of a redacted record still contain; the record itself if that is nothing."""
        replaced: dict[Leaf, list[tuple[int, int, str]]] = {}
        for number, (joined, ignored) in enumerate(self._views(record)):
            text = joined.text
            counts = partial(_counts, ignored=ignored, lines=text if number == _LINES_VIEW else None)
            for start, end, span in self.redactor.find_leftovers(text, counts) if text else ():
                placeholder = self.redactor.count_placeholder(span, text, place)
                for piece in joined.pieces(start, end):
                    replaced.setdefault(piece.leaf, []).append((piece.start, piece.end, placeholder))
        if not replaced:
            return record
        return replace_pieces(record, {leaf: _replace_spans(leaf.text, spans) for leaf, spans in replaced.items()})

    def _learn_matches(self, matches: Iterable[Match]) -> None:
        for match in matches:
            self.redactor.learn_span(match.leaf.text, match.span)
            if match.is_local:
                self.redactor.mark(match.leaf.text, match.span)


def _counts(span: Span, ignored: frozenset[str], lines: str | None) -> bool:
    """Whether a span in joined texts counts. `lines`: the text, if it is lines joined by blanks."""
    return span.kind not in ignored or (lines is not None and counts_in_lines(span, lines))


def _replace_spans(text: str, spans: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    last = 0
    for start, end, placeholder in sorted(spans):
        if start >= last:
            parts += [text[last:start], placeholder]
            last = end
    return "".join([*parts, text[last:]])
