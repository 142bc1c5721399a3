"""The texts of one record of a transcript, joined in reading order, with positions mapped back to the fields.

A secret may be split between fields: two content blocks, the lines of a patch, a name and its value. Searching the
joined text finds it, and `JoinedTexts.pieces` says which part of which field it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import accumulate, pairwise, zip_longest
from typing import Any, NamedTuple

from msgspec import Struct

from threadline.redact.rules.assignments import can_be_number
from threadline.redact.rules.heuristics import is_secret_name, word_set
from threadline.redact.rules.patterns import compile_lazily

MAX_DEPTH = 300
"""Deeper values are left out."""


class FormatWords(Struct, frozen=True):
    """The fixed words of a file format: names of fields, and allowed values of some fields."""

    keys: frozenset[str] = frozenset()
    values: dict[str, frozenset[str]] = {}

    def is_fixed(self, key: str, value: str) -> bool:
        """Whether a value is a fixed word of the format in this field."""
        return key in self.values and value in self.values[key]


_FORMAT_WORDS = word_set(
    "message text thinking redacted_thinking tool_use tool_result image document server_tool_use mcp_tool_use"
    " mcp_tool_result web_search_tool_result web_search_result base64 url file create update user assistant"
    " end_turn tool_use max_tokens stop_sequence"
)
_KIND_KEYS = ("type", "role", "subtype", "stop_reason")


@cache
def format_vocabulary() -> FormatWords:
    """The names of all fields in the model, and the values of fields such as `type`.

    Only structs that are loaded are considered. `model.entries` loads all structs of transcripts.
    """
    from threadline.model.entries import KINDS  # noqa: PLC0415 - a redactor of texts does not need it

    fields: set[str] = set(_KIND_KEYS)
    stack: list[Any] = [Struct]
    while stack:
        for struct in stack.pop().__subclasses__():
            stack.append(struct)
            if struct.__module__.startswith("threadline.model"):
                fields.update(struct.__struct_encode_fields__)
    return FormatWords(frozenset(fields), dict.fromkeys(_KIND_KEYS, frozenset(KINDS) | _FORMAT_WORDS))


class Leaf(NamedTuple):
    """A text in a JSON value: the keys and indexes that lead to it, and its nearest key. A key is also a text."""

    path: tuple[str | int, ...]
    key: str
    text: str
    is_key: bool = False

    @property
    def json_path(self) -> str:
        """The path in JSON Path notation; of a key, that of its object."""
        return "$" + "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" if _PLAIN_KEY.match(step) else f"[{step!r}]"
            for step in (self.path[:-1] if self.is_key else self.path)
        )

    @property
    def is_patch_line(self) -> bool:
        """Whether it is a line of a patch, which starts with a sign."""
        return len(self.path) > 1 and self.path[-2] == "lines" and "structuredPatch" in self.path

    @property
    def is_block(self) -> bool:
        """Whether it is the text of a content block."""
        return self.key == "text" and len(self.path) > 1 and isinstance(self.path[-2], int)

    @property
    def is_own_field(self) -> bool:
        """Whether it is a field of the record itself, such as `cwd`, and not part of the conversation."""
        return self.is_key or (len(self.path) == 1 and self.path[0] not in _TEXT_FIELDS)


_PLAIN_KEY = compile_lazily(r"[A-Za-z_$][\w$-]*\Z")
_TEXT_FIELDS = frozenset(("content", "summary", "display", "text", "prompt", "lastPrompt", "toolUseResult"))
ID_FIELDS = word_set(
    "uuid parentUuid logicalParentUuid leafUuid sessionId session_id id tool_use_id toolUseID parentToolUseID"
    " sourceToolUseID sourceToolAssistantUUID messageId requestId agentId timestamp promptId anchor started ended"
    " tool_call_id source_call_id trajectory_id transcript_id message_id source_id task_id"
)
"""Fields that contain ids and times."""
ID_VALUE = compile_lazily(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,16}(?:Z|[+-][0-9:]{5})"
    r"|(?:toolu|srvtoolu|msg|req|agent)_(?:01)?[0-9A-Za-z]{16,32}|a[0-9a-f]{7,16}|L[0-9]{1,9}"
)
"""Ids and times in the forms that Claude Code writes. Anything else in these fields is a text."""


def list_leaves(value: Any, fixed: FormatWords) -> Iterator[Leaf]:
    """All texts of a JSON value in reading order, except ids, times and fixed words of the format."""
    pending: list[tuple[tuple[str | int, ...], str, Any]] = [((), "", value)]
    while pending:
        path, key, node = pending.pop()
        if isinstance(node, str):
            if node and not (key in ID_FIELDS and ID_VALUE.fullmatch(node)) and not fixed.is_fixed(key, node):
                yield Leaf(path, key, node)
        elif isinstance(node, dict):
            if len(path) > MAX_DEPTH:
                continue
            pending += [((*path, str(name)), str(name), inner) for name, inner in reversed(node.items())]
            for name in node:
                if name not in fixed.keys:
                    yield Leaf((*path, str(name)), "", str(name), is_key=True)
        elif isinstance(node, list | tuple) and len(path) <= MAX_DEPTH:
            pending += [((*path, at), key, node[at]) for at in range(len(node) - 1, -1, -1)]


class RecordTexts:
    """The texts of a record without their paths: all that is needed to see that nothing is in them.

    `text` contains the same neighbours as `join_leaves`, `join_seams` and `join_lines`: a search in it finds the same.
    The text does not show what the names of fields make secret. `has_secret_key` says that there is such a name, and
    `is_telling` also that a field may name the value in another field.

    `inner_texts` are all but the values of the record's own fields, and `ids` are ids and times, which are in no text.
    If a record `is_regular`, it contains only JSON, is not too deep, and has no number that is a password.

    A search notes in `clean_texts` the texts in which it found nothing, in `is_clean` that it found nothing at all, and
    in `viewed_places` where something is encoded.
    """

    __slots__ = (
        "_fixed",
        "_names",
        "_own",
        "clean_texts",
        "has_secret_key",
        "ids",
        "inner_texts",
        "is_clean",
        "is_regular",
        "is_telling",
        "text",
        "texts",
        "viewed_places",
    )

    def __init__(self, record: Any, fixed: FormatWords) -> None:
        self.is_telling = self.has_secret_key = self.is_clean = False
        self.is_regular = type(record) is dict
        self.ids: list[str] = []
        self.viewed_places: list[tuple[int, int]] = []
        self.clean_texts: list[str] = []
        self.texts: list[str] = []
        self._own: list[str] = []
        self._names: list[str] = []
        self._fixed = fixed
        fields = record.items() if isinstance(record, dict) else [("content", record)]
        for key, value in fields:
            if type(value) is str and key not in _TEXT_FIELDS:
                if self._is_text(value, key):
                    self._own.append(value)
            else:
                self._collect(value, key)
        if isinstance(record, dict):
            self._note_keys(record)
        texts = list(dict.fromkeys(self.texts))
        own = OWN_SEPARATOR.join(dict.fromkeys(self._own))
        self.text = "\n".join([*texts, "", own, "", *_seam_texts(texts), *_flat_texts(texts)])
        self.inner_texts = [*texts, *self._names]
        self.texts = [*texts, *self._own]

    def plain_texts(self) -> list[str]:
        """The texts in which nothing is encoded."""
        if not self.viewed_places:
            return self.texts
        starts = list(accumulate((len(text) + 1 for text in self.texts), initial=0))
        viewed = {at for place in self.viewed_places for at in positions_in_group(starts, *place)}
        return [text for at, text in enumerate(self.texts) if at not in viewed]

    def _collect(self, node: Any, key: str, depth: int = 0) -> None:
        """Collect the texts below a value."""
        if type(node) is str:
            if self._is_text(node, key):
                self.texts.append(node)
        elif type(node) is dict and depth < MAX_DEPTH:
            self._note_keys(node)
            for name, inner in node.items():
                if type(inner) not in WITHOUT_TEXT:
                    self._collect(inner, name, depth + 1)
        elif type(node) is list and depth < MAX_DEPTH:
            self._collect_items(node, key, depth)
        elif type(node) not in WITHOUT_TEXT:
            self.is_regular = False

    def _collect_items(self, node: list[Any], key: str, depth: int) -> None:
        if key == "lines":  # of a patch
            self.texts += [line[1:] for line in node if type(line) is str]
        for inner in node:
            if type(inner) not in WITHOUT_TEXT:
                self._collect(inner, key, depth + 1)

    def _is_text(self, value: str, key: str) -> bool:
        """Whether a value is neither empty nor an id, which is noted, nor a fixed word."""
        if not value or self._fixed.is_fixed(key, value):
            return False
        if key in ID_FIELDS and ID_VALUE.fullmatch(value):
            self.ids.append(value)
            return False
        return True

    def _note_keys(self, node: dict[str, Any]) -> None:
        describe = _describe_keys if len(node) <= _MAX_CACHED_KEYS else _describe_keys.__wrapped__
        others, has_secret_key, is_telling = describe(tuple(node), self._fixed.keys)
        self._own += others
        self._names += others
        if quote_secret_numbers(node) is not node:
            self.is_regular = False
        if has_secret_key:
            self.has_secret_key = self.is_telling = True
        elif is_telling:
            self.is_telling = True


_MAX_CACHED_KEYS = 64


@lru_cache(maxsize=4096)
def _describe_keys(names: tuple[str, ...], fixed: frozenset[str]) -> tuple[tuple[str, ...], bool, bool]:
    """The keys of an object that are texts, whether one denotes a secret, and whether one may contain a named value.

    Most objects have the same keys as others.
    """
    others = tuple(name for name in names if name not in fixed)
    return others, any(map(is_secret_name, names)), not VALUE_KEYS.isdisjoint(names)


WITHOUT_TEXT = frozenset((int, float, bool, type(None)))
"""Types of JSON values that contain no text."""
OWN_SEPARATOR = '", "'
"""Between texts that have nothing to do with each other: a secret does not continue after it."""
NAME_KEYS = word_set(
    "name key variable field header label id k question setting env title property parameter param attribute var option"
    " subject element Name Key ParameterKey OptionName Header Label parameterKey optionName headerName secretName"
    " secret_name"
)
"""Fields of an object that name the value in another field."""
VALUE_KEYS = word_set(
    "value val answer answers v default content data text body new_value defaultValue default_value Value"
    " ParameterValue OptionValue parameterValue optionValue headerValue secretValue SecretString secret_value string"
    " plaintext stringValue"
)
"""Fields that contain a value which another field of the same object may name."""


@lru_cache(maxsize=4096)
def _may_have_secret_number(names: tuple[str, ...]) -> bool:
    """Whether an object with these keys may contain a number that is a password. Most cannot."""
    is_naming = not NAME_KEYS.isdisjoint(names) and not VALUE_KEYS.isdisjoint(names)
    return is_naming or any(can_be_number(str(name)) for name in names)


def quote_secret_numbers(value: dict[str, Any]) -> dict[str, Any]:
    """An object whose numbers are texts if they are passwords by their name, or by another field that names them."""
    if len(value) <= _MAX_CACHED_KEYS and not _may_have_secret_number(tuple(value)):
        return value
    numbers = {name for name, item in value.items() if type(item) in {int, float} and len(str(item)) >= 4}  # noqa: PLR2004 - shorter ones are counts
    if not numbers:
        return value
    is_named = not numbers.isdisjoint(VALUE_KEYS) and any(
        name in NAME_KEYS and isinstance(item, str) and is_secret_name(item) and can_be_number(item)
        for name, item in value.items()
    )
    secret = {name for name in numbers if can_be_number(str(name)) or (is_named and name in VALUE_KEYS)}
    return {name: str(item) if name in secret else item for name, item in value.items()} if secret else value


def _seam_texts(texts: list[str]) -> Iterator[str]:
    """The ends and starts of neighbours that may be two halves of one token, each with an empty line after it."""
    for first, second in pairwise(texts):
        if first[-1:].isalnum() and second[:1].isalnum():
            tail = _TOKEN_END.search(first, max(0, len(first) - _SEAM_LENGTH))
            head = _TOKEN_START.match(second) if tail else None
            if tail and head and _can_be_halves(tail[0], head[0]):
                yield f"{tail[0]}{head[0]}\n"


def _flat_end(text: str) -> int:
    """Where the beginning of a text that is joined to one line ends. A word is not cut."""
    if len(text) <= _FLAT_LENGTH or text[_FLAT_LENGTH].isspace():
        return _FLAT_LENGTH
    blank = _LAST_BLANK.search(text, 0, _FLAT_LENGTH)
    return blank.start() if blank else _FLAT_LENGTH


_LAST_BLANK = compile_lazily(r"\s(?=\S*\Z)")


def _flat_texts(texts: list[str]) -> Iterator[str]:
    """The beginnings of texts as one line: those with several lines, and the first texts together."""
    for text in texts:
        if "\n" in text[:_FLAT_LENGTH]:
            yield " ".join(text[: _flat_end(text)].split()) + "\n"
    if len(texts) > 1:
        yield " ".join(word for text in texts[:_FLAT_TEXTS] for word in text[: _flat_end(text)].split()) + "\n"


_GROUP_SEPARATOR = "\n\n\n\n"


def join_group(group: Iterable[str]) -> tuple[str, list[int]]:
    """Many texts as one, to be searched at once, and where each of them starts."""
    texts = list(group)
    starts = list(accumulate((len(text) + len(_GROUP_SEPARATOR) for text in texts), initial=0))
    return _GROUP_SEPARATOR.join(texts), starts


def positions_in_group(starts: list[int], start: int, end: int) -> range:
    """The positions of the texts that a span touches."""
    return range(bisect_right(starts, start) - 1, bisect_right(starts, max(start, end - 1)))


class Piece(NamedTuple):
    """A part of a leaf."""

    leaf: Leaf
    start: int
    end: int


class JoinedTexts:
    """Texts joined to one, which maps positions back to the texts."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._starts: list[int] = []
        self._sources: list[tuple[Leaf, int, int]] = []
        self._size = 0

    def add(self, leaf: Leaf, start: int, end: int, separator: str) -> None:
        """Append a part of a leaf, and the separator before the next."""
        self._starts.append(self._size)
        self._sources.append((leaf, start, end))
        self._parts += [leaf.text[start:end], separator]
        self._size += end - start + len(separator)

    @property
    def text(self) -> str:
        """The joined text."""
        return "".join(self._parts)

    @property
    def is_open(self) -> bool:
        """Whether the last part was joined to the next by a blank."""
        return bool(self._parts) and self._parts[-1] == " "

    @property
    def leaves(self) -> list[Leaf]:
        """The leaves, in order."""
        return [leaf for leaf, _start, _end in self._sources]

    def pieces(self, start: int, end: int) -> list[Piece]:
        """The parts of leaves in a span of the joined text, without separators."""
        pieces = []
        for at in range(max(0, bisect_right(self._starts, start) - 1), bisect_right(self._starts, end - 1)):
            leaf, first, last = self._sources[at]
            offset = first - self._starts[at]
            begin, stop = max(first, start + offset), min(last, end + offset)
            if begin < stop:
                pieces.append(Piece(leaf, begin, stop))
        return pieces


def join_leaves(leaves: list[Leaf]) -> JoinedTexts:
    """Join the texts of a record by line ends: the conversation first, then the record's own fields.

    A text that occurs twice, as in `message` and `toolUseResult`, is joined once. Lines of patches lose their sign.
    """
    joined = JoinedTexts()
    seen: set[str] = set()
    own: list[Leaf] = []
    for leaf in leaves:
        if leaf.is_own_field:
            own.append(leaf)
        elif leaf.is_patch_line:
            joined.add(leaf, 1, len(leaf.text), "\n")
        elif leaf.text not in seen:
            seen.add(leaf.text)
            joined.add(leaf, 0, len(leaf.text), "\n")
    for leaf in own:
        if leaf.text not in seen:
            seen.add(leaf.text)
            joined.add(leaf, 0, len(leaf.text), OWN_SEPARATOR)
    return joined


_SEAM_LENGTH = 512
_TOKEN_END = compile_lazily(r"[A-Za-z0-9_+/=.~-]{4,512}\Z")
_TOKEN_START = compile_lazily(r"[A-Za-z0-9_+/=.~-]{4,512}")
_MIN_SPLIT_TOKEN = 16


_ORDINARY_WORD = compile_lazily(r"[A-Za-z]?[a-z]{1,16}[.]?")
_DIGEST = compile_lazily(r"(?:[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})")


def _can_be_halves(first: str, second: str) -> bool:
    """Whether two texts can be halves of one token: not an id, a digest, an ordinary word, or too short."""
    return (
        len(first) + len(second) >= _MIN_SPLIT_TOKEN
        and not _ORDINARY_WORD.fullmatch(first)
        and not _DIGEST.fullmatch(first)
        and not _DIGEST.fullmatch(second)
        and not ID_VALUE.fullmatch(first)
        and not ID_VALUE.fullmatch(second)
    )


def join_seams(leaves: list[Leaf]) -> JoinedTexts:
    """Join only the ends and starts of neighbours that may be two halves of one token, without a separator."""
    joined = JoinedTexts()
    last: Leaf | None = None
    for leaf in leaves:
        if leaf.is_own_field or leaf.is_patch_line:
            continue
        if last is not None and last.text != leaf.text and last.text[-1].isalnum() and leaf.text[0].isalnum():
            tail = _TOKEN_END.search(last.text, max(0, len(last.text) - _SEAM_LENGTH))
            head = _TOKEN_START.match(leaf.text)
            if tail and head and _can_be_halves(tail[0], head[0]):
                joined.add(last, tail.start(), len(last.text), "")
                joined.add(leaf, 0, head.end(), "\n\n")
        last = leaf
    return joined


_FLAT_LENGTH = 400
_FLAT_TEXTS = 8
_LINE = compile_lazily(r"[^\s](?:[^\n]*[^\s])?")


def join_lines(leaves: list[Leaf]) -> JoinedTexts:
    """Join the first lines of each text by blanks, and text blocks that follow each other, as titles show them."""
    joined = JoinedTexts()
    seen: set[str] = set()
    shown = [leaf for leaf in leaves if not (leaf.is_own_field or leaf.is_patch_line)]
    for leaf, following in zip_longest(shown, shown[1:]):
        is_joined = following is not None and leaf.is_block and following.is_block
        if leaf.text in seen or not (is_joined or joined.is_open or "\n" in leaf.text[:_FLAT_LENGTH]):
            continue
        seen.add(leaf.text)
        lines = [match.span() for match in _LINE.finditer(leaf.text, 0, _flat_end(leaf.text))]
        for at, (start, end) in enumerate(lines, 1):
            joined.add(leaf, start, end, " " if at < len(lines) or is_joined else "\n\n")
    return joined


def replace_pieces(value: Any, replacements: dict[Leaf, str]) -> Any:
    """A copy of a JSON value with other texts in place of some leaves."""
    by_path = {(leaf.path, leaf.is_key): text for leaf, text in replacements.items()}
    return _replace_below(value, (), by_path) if by_path else value


def _replace_below(value: Any, path: tuple[str | int, ...], by_path: dict[tuple[Any, bool], str]) -> Any:
    if isinstance(value, str):
        return by_path.get((path, False), value)
    if len(path) > MAX_DEPTH:
        return value
    if isinstance(value, dict):
        return {
            by_path.get(((*path, str(name)), True), name): _replace_below(inner, (*path, str(name)), by_path)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_replace_below(inner, (*path, at), by_path) for at, inner in enumerate(value)]
    return value
