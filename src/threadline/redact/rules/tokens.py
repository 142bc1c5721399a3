"""Find credentials that their format identifies, by testing only long runs of letters and digits.

One translation and one search skip nearly all text. What remains are words of eighteen characters and more, most of
which are ids and names that a cheap test rules out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from threadline.redact.rules.checksums import has_checksum, is_filler, is_random
from threadline.redact.rules.formats import FORMATS, Span, TokenFormat
from threadline.redact.rules.patterns import compile_lazily, trie_pattern
from threadline.redact.rules.prefilter import MAX_SIGNS, PHRASE, RareMarks, gate, match_at_sign

MIN_RUN = 18
_WORD_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/.~"
_BASE64_BYTES = _WORD_BYTES.translate(None, b"_-.~")
WORD_TABLE = bytes(0x41 if byte in _WORD_BYTES else 0x20 for byte in range(256))
_MAX_JOINED = 80
_LONG_BASE64 = 400
_DIGIT_OR_LETTERS = compile_lazily(rb"[0-9]|[A-Za-z]{24}")
_JOINED_BACKWARDS = compile_lazily(rb"[\w.~:|$!/+-]{1,80}")
JOINING_BYTES = frozenset(b":|$!")
CONTINUATIONS = (b"=", b"::")
"""What may join a run to the rest of a token after it."""
_ANCHOR_ENDS = frozenset(b"_.~:|$-")
_KEY_LENGTH = 3
_LOOSE_ENDS = frozenset(("_", "-", "."))
_LOOSE_BODY = compile_lazily(rb"[A-Za-z0-9_-]{20,400}(?![A-Za-z0-9_-])")
_ALL_CLASSES = compile_lazily(rb"(?=[^0-9]*[0-9])(?:(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])|[0-9a-f_]{32,}\Z)")
_AZURE = compile_lazily(rb"Q~[A-Za-z0-9_~.-]{31,34}")
_AZURE_GATE = gate(rb"Q~[A-Za-z0-9_~.-]")
_AZURE_PREFIX = 4
_ESCAPES = frozenset(b"nrtbf")
_UNICODE = compile_lazily(rb"u[0-9a-fA-F]{4}")
_HEX = frozenset(b"0123456789abcdefABCDEF")


_MIN_LETTERS = 11


class _CompiledRule:
    """A rule with an anchor as bytes, and its pattern, which is compiled when first needed."""

    __slots__ = ("_pattern", "alone", "anchor", "before", "is_fixed", "is_loose", "kind", "rule")

    def __init__(self, rule: TokenFormat, anchor: str, before: int = 0) -> None:
        self.rule = rule
        self.kind = rule.kind
        self.anchor = anchor.encode()
        self.before = before
        self.alone = not rule.is_distinctive
        # One of twenty tokens with 16 letters and digits has no digit. The length and the prefix identify it.
        self.is_fixed = rule.has_own_prefix and "-" not in rule.token.rpartition("{")[2]
        # Prefixes of ids and common words need the exact format.
        self.is_loose = anchor[-1:] in _LOOSE_ENDS and not before and rule.has_own_prefix
        self._pattern: re.Pattern[bytes] | None = None

    @property
    def pattern(self) -> re.Pattern[bytes]:
        """The pattern of the whole token. Without a distinctive prefix, no letter or digit may follow."""
        if self._pattern is None:
            self._pattern = re.compile(self.rule.pattern.encode() + (b"(?![A-Za-z0-9])" if self.alone else b""))
        return self._pattern

    def is_token(self, text: str) -> bool:
        """Whether a text that has the format is a token, by its checksum and its characters."""
        body = text[len(self.anchor) :] if not self.before else text
        if is_filler(body):
            return False
        name = self.rule.checksum
        if not name:
            # One of thirty AWS key ids has no digit, but no word in capitals has so many different letters.
            has_letters = len(set(body)) >= _MIN_LETTERS and (body.isupper() or (self.is_fixed and not body.islower()))
            return has_letters or any(map(str.isdigit, body)) or is_random(body) or self._has_mixed_letters(body)
        if name.endswith("!"):
            return has_checksum(name[:-1], text)
        # A token with a wrong checksum may be mistyped or made up for a test. Words with a prefix are neither.
        return (name != "random" and has_checksum(name, text)) or is_random(body)

    def _has_mixed_letters(self, body: str) -> bool:
        """Whether a body of letters, after a prefix of its own, has more capitals than a name has."""
        body = body.replace("-", "").replace("_", "")
        capitals = sum(map(str.isupper, body))
        return (
            self.rule.has_own_prefix
            and body.isalpha()
            and len(set(body)) >= _MIN_LETTERS
            and _CAPITALS[0] * len(body) <= capitals <= _CAPITALS[1] * len(body)
        )


_CAPITALS = (0.3, 0.7)  # the share of capitals in a random text of letters
_RuleTable = dict[bytes, list[_CompiledRule]]
_LengthTable = dict[int, list[_CompiledRule]]


def _index_rules() -> tuple[_RuleTable, _RuleTable, _LengthTable, _LengthTable]:
    """Index rules by the end of a distinctive anchor, by the start of any other anchor, and by length.

    The lengths are those of a long word, and of a whole run if there is no long word.
    """
    tails: _RuleTable = {}
    heads: _RuleTable = {}
    words: _LengthTable = {}
    runs: _LengthTable = {}
    for rule in FORMATS:
        inner_anchor, before = rule.inner_anchor if not rule.anchors else ("", 0)
        for anchor in rule.anchors or ((inner_anchor,) if inner_anchor else ()):
            compiled = _CompiledRule(rule, anchor, before)
            if compiled.anchor[-1] in _ANCHOR_ENDS and (before or rule.is_distinctive):
                tails.setdefault(compiled.anchor[-_KEY_LENGTH:], []).append(compiled)
            else:
                heads.setdefault(compiled.anchor[:_KEY_LENGTH], []).append(compiled)
        if not rule.anchors and not inner_anchor:
            stretch = rule.word or rule.run
            compiled = _CompiledRule(rule, "", stretch.before)
            for length in range(stretch.least, stretch.most + 1):
                (words if rule.word else runs).setdefault(length, []).append(compiled)
    return tails, heads, words, runs


_TAILS, _HEADS, _WORD_LENGTHS, _RUN_LENGTHS = _index_rules()
_MIN_WORD = min(_WORD_LENGTHS)
_PADDED_LENGTHS = {length for length, rules in _RUN_LENGTHS.items() if any(r.rule.token.endswith("=") for r in rules)}
# One lookbehind at the end of a word decides whether an anchor may end there. One match at the start of a word decides
# whether an anchor starts there.
_TAIL = compile_lazily(b"[_.~:|$-](?<=" + trie_pattern(_TAILS) + b")")
_HEAD_ANCHORS = sorted({rule.anchor for rules in _HEADS.values() for rule in rules})
_HEAD = compile_lazily(
    b"(?:[A-Za-z0-9]*+[_.~:|$!/+-])*?(?=["
    + b"".join(sorted({re.escape(anchor[:1]) for anchor in _HEAD_ANCHORS}))
    + b"])("
    + trie_pattern(_HEAD_ANCHORS)
    + b")"
)
_WORD_END = compile_lazily(rb"[A-Za-z0-9]*+[_.~:|$!/+-]")
# The next long word and the words before it. It is matched at the start of a word, so each letter is read once.
_LONG_WORD = compile_lazily(rb"(?:[A-Za-z0-9_-]{0,23}+[^A-Za-z0-9_-])*+([A-Za-z0-9_-]{24,}+)")
_BACKSLASH, _PERCENT, _SPACE = b"\\% "
ESCAPE_SIGNS = frozenset((_BACKSLASH, _PERCENT))
_DOT = b"."[0]
_IN_BASE64 = frozenset(b"+/")
_BASE64 = compile_lazily(rb"(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])(?=[^0-9]*[0-9])[A-Za-z0-9+/]{20}")


def skip_escape(view: bytes, start: int) -> int:
    """The start of a word, without the end of an escape that a backslash or `%` begins."""
    if view[start - 1] == _BACKSLASH:
        return start + (1 if view[start] in _ESCAPES else 5 if _UNICODE.match(view, start) else 0)
    return start + 2 * (view[start] in _HEX and view[start + 1] in _HEX)


# Cache of runs that are not credentials, because the same names and paths recur.
_HARMLESS_CACHE: set[bytes] = set()
_MAX_HARMLESS_CACHE = 32768
_MAX_CACHED_RUN = 128


def find_token(view: bytes, start: int, end: int) -> Span | None:
    """The credential at a run, if it has one of the formats."""
    before = view[start - 1] if start else _SPACE
    begin = start
    if before in JOINING_BYTES:
        begin = _start_of_joined(view, start)
    run = view[begin:end]
    # A token may continue after this sign. Then the run is only a part of it, and the cache does not apply.
    may_continue = view.startswith(CONTINUATIONS, end)
    if run in _HARMLESS_CACHE and not may_continue:
        return None
    span = _find_token(view, begin, start, end)
    if (
        span is None
        and not may_continue
        and end - begin < _MAX_CACHED_RUN
        and start - begin < _MAX_JOINED
        and before not in _IN_BASE64
        and not view[max(0, begin - 1) : begin].isdigit()  # of an escape such as %20, unlike in other places
    ):
        if len(_HARMLESS_CACHE) > _MAX_HARMLESS_CACHE:
            _HARMLESS_CACHE.clear()
        _HARMLESS_CACHE.add(run)
    return span


def find_token_uncached(view: bytes, start: int, end: int) -> Span | None:
    """The credential in a part of a view, without the cache."""
    begin = _start_of_joined(view, start) if start and view[start - 1] in JOINING_BYTES else start
    return _find_token(view, begin, start, end)


def _start_of_joined(view: bytes, start: int) -> int:
    """The start of the words that are joined to the run at `start`."""
    joined = _JOINED_BACKWARDS.match(view[max(0, start - _MAX_JOINED) : start][::-1])
    begin = start - (joined.end() if joined else 0)
    return skip_escape(view, begin) if 0 < begin < start and view[begin - 1] in ESCAPE_SIGNS else begin


def _find_token(view: bytes, begin: int, start: int, end: int) -> Span | None:
    """The same without the cache. From `begin` to `start` are words that are joined to the run."""
    at = begin
    # A long run of only base64 has no sign that could end an anchor.
    is_base64 = end - begin > _MAX_CACHED_RUN and only_base64(view, begin, end)
    while not is_base64 and (match := _TAIL.search(view, at, end)):
        at = match.end()
        span = _find_by_anchor_end(view, at)
        if span:
            return span
    at = begin
    while match := _HEAD.match(view, at, end):
        span = _find_by_anchor_start(view, match.start(1))
        if span:
            return span
        word = _WORD_END.match(view, match.start(1), end)
        if word is None:
            break
        at = word.end()
    # In a long run of base64, a word of the right length is a coincidence.
    if is_base64 and end - start > _LONG_BASE64:
        return None
    # Nearly every token has a digit. The others have many letters in a row, unlike most names and paths.
    if not _DIGIT_OR_LETTERS.search(view, begin, end):
        return None
    return _find_by_run(view, start, end) or _find_by_word(view, start, end)


def only_base64(view: bytes, start: int, end: int) -> bool:
    """Whether a run has only letters, digits and the two signs of base64."""
    return not view[start:end].translate(None, _BASE64_BYTES)


def find_azure_secrets(view: bytes, marks: RareMarks) -> Iterator[Span]:
    """Find client secrets of Azure, the only format with its anchor in the middle."""
    for mark in match_at_sign(_AZURE, b"~", view, 1) if _AZURE_GATE in marks.gates else ():
        start = mark.start() - _AZURE_PREFIX
        if start >= 0 and re.fullmatch(rb"[A-Za-z0-9_~.]{3}[0-9]", view[start : mark.start()]):
            yield Span(start, mark.end(), "azure-client-secret")


# Wallets: the words of a seed phrase after a label, and Solana's list of 64 numbers.
_SEED_QUALIFIER = compile_lazily(rb"(?:mnemonic|seed|recovery|secret|backup|wallet|bip-?39)[ _-]?\Z")
_AFTER_SEED_LABEL = compile_lazily(
    rb"s?(?:[ _-](?:phrase|words?|code|seed)s?)?(?:[ \t]{1,2}(?:is|are|was|were|for|of|my|the|our|wallet|account)){0,4}"
    rb"(?:[^\n:\\]{0,80}:(?=\s|\\n))?(?:[\s\"'`:=>|*(\[-]|\\+[nrt\"]){1,40}"
)
_SEED_SEPARATOR = rb"(?:[\s,;|\"'`]|\\+[nrt\"]){1,12}"
_SEED_NUMBER = rb"(?:[0-9]{1,2}[.):]?[ \t]{0,3})?"
_SEED_WORDS = compile_lazily(
    _SEED_NUMBER + rb"[a-z]{3,8}(?![a-z])(?:" + _SEED_SEPARATOR + _SEED_NUMBER + rb"[a-z]{3,8}(?![a-z])){11,23}"
)
_SEED_WORD = compile_lazily(rb"(?<![a-z\\])[a-z]{3,8}(?![a-z])|(?<=\\[nrt])[a-z]{3,8}(?![a-z])")
_SEED_LENGTHS = (24, 21, 18, 15, 12)
# Frequent words that are not in the list of BIP 39.
_NOT_SEED_WORDS = frozenset(
    b"the and for are but not was with from has its his her our your who how which been were their them these those"
    b" would should could here because did does had may might must need needs each both between through before being"
    b" file files using used uses see via per let get set new old null none true false".split()
)
# After these words a phrase must be alone: on its line, or one numbered word on each line.
_AFTER_LOOSE_LABEL_GATE = rb"s?(?:\.txt|[ _-](?:words?|backup|key)s?)?[\"'`*]*[ \t]*[:=]"
_LOOSE_SEED_LABELS = tuple(
    (gate(rb"(?i)" + label + _AFTER_LOOSE_LABEL_GATE), compile_lazily(label)) for label in (b"wallet", b"seed")
)
_MNEMONIC_GATE = gate(rb"(?i)mnemonic")
_AFTER_LOOSE_LABEL = compile_lazily(
    rb"s?(?:\.txt|[ _-](?:words?|backup|key)s?)?[\"'`*]{0,3}[ \t]{0,4}[:=](?:[\s\"'`>|*]|\\+[nrt\"]){0,40}"
)
_AFTER_SEED_WORDS = compile_lazily(rb"[ \t]{0,8}[.;,]?(?:[\r\n\"'`]|\\+[nr\"]|\Z)")
_WALLET_LABEL = compile_lazily(rb"solana|keypair|wallet|secret_?key|private_?key|id\.json")
_WALLET_REACH = 400
_MARGIN, _MAX_MARGIN = b" \t\r\n0123456789?", 40
_WALLET_BYTES = compile_lazily(rb"\[(?=[\s0-9])\s{0,4}(?:[0-9]{1,3}\s{0,4},\s{0,8}){63}[0-9]{1,3}\s{0,4}\]")
_WALLET_BYTES_GATE = gate(rb"\[\s*(?:[0-9]+\s*,\s*){9}")
_NUMBER = compile_lazily(rb"[0-9]+")
_MIN_DISTINCT_WORDS, _MIN_DISTINCT_NUMBERS, _MAX_BYTE = 10, 24, 255


def find_wallet_keys(view: bytes, lower: bytes, marks: RareMarks) -> Iterator[Span]:
    """Find seed phrases after a label, and private keys of Solana as lists of numbers."""
    labels = [b"phrase"] if PHRASE in marks.words else []
    for label in labels + [b"mnemonic"] * (_MNEMONIC_GATE in marks.gates):
        at = lower.find(label)
        for _ in range(MAX_SIGNS):
            if at < 0:
                break
            is_label = label == b"mnemonic" or _SEED_QUALIFIER.search(lower, max(0, at - 12), at)
            start = _AFTER_SEED_LABEL.match(lower, at + len(label)) if is_label else None
            words = _SEED_WORDS.match(lower, start.end()) if start else None
            end = _end_of_phrase(words) if words else 0
            if start and end:
                yield Span(start.end(), end, "seed-phrase")
            at = lower.find(label, max(at + 1, end))
    for label_gate, loose_label in _LOOSE_SEED_LABELS:
        for name in islice(loose_label.finditer(lower), MAX_SIGNS) if label_gate in marks.gates else ():
            start = _AFTER_LOOSE_LABEL.match(lower, name.end())
            end = _end_of_lone_phrase(lower, start.end()) if start else 0
            if start and end:
                yield Span(start.end(), end, "seed-phrase")
    for match in _WALLET_BYTES.finditer(view) if _WALLET_BYTES_GATE in marks.gates else ():
        numbers = {*map(int, _NUMBER.findall(match[0]))}
        is_key = len(numbers) >= _MIN_DISTINCT_NUMBERS and max(numbers) <= _MAX_BYTE
        around = match.start() + len(view) - match.end()
        is_alone = around < _MAX_MARGIN and not (view[: match.start()] + view[match.end() :]).strip(_MARGIN)
        if is_key and (is_alone or _WALLET_LABEL.search(lower, max(0, match.start() - _WALLET_REACH), match.start())):
            yield Span(*match.span(), "wallet-key-bytes")


def _end_of_lone_phrase(lower: bytes, start: int) -> int:
    """The end of a phrase of a length of BIP 39 that is followed by no other word of its line; 0 if there is none."""
    words = _SEED_WORDS.match(lower, start)
    end = _end_of_phrase(words) if words else 0
    return end if end and _AFTER_SEED_WORDS.match(lower, end) else 0


def find_lone_phrase(text: str) -> Span | None:
    """The seed phrase that a text consists of."""
    view = text.encode("ascii", "replace")
    start = len(view) - len(view.lstrip(b" \t\r\n\"'"))
    end = _end_of_lone_phrase(view, start)
    return Span(start, end, "seed-phrase") if end and not view[end:].strip(b" \t\r\n\"'.;,") else None


def _end_of_phrase(match: re.Match[bytes]) -> int:
    """The end of the longest phrase that has a length of BIP 39 and no other frequent words; 0 if there is none."""
    words = list(_SEED_WORD.finditer(match.string, *match.span()))
    for length in _SEED_LENGTHS:
        phrase = {word[0] for word in words[:length]}
        if len(words) >= length and len(phrase) >= _MIN_DISTINCT_WORDS and not phrase & _NOT_SEED_WORDS:
            return words[length - 1].end()
    return 0


def _find_by_anchor_end(view: bytes, at: int) -> Span | None:
    rules = [
        rule
        for rule in _TAILS.get(view[max(0, at - _KEY_LENGTH) : at], ())
        if view.startswith(rule.anchor, at - len(rule.anchor)) and at >= len(rule.anchor)
    ]
    for rule in rules:
        span = _match_rule(rule, view, at - len(rule.anchor))
        if span:
            return span
    return _match_loosely(rules[0], view, at - len(rules[0].anchor)) if rules else None


def _find_by_anchor_start(view: bytes, at: int) -> Span | None:
    rules = [
        rule
        for length in (_KEY_LENGTH, _KEY_LENGTH - 1)
        for rule in _HEADS.get(view[at : at + length], ())
        if view.startswith(rule.anchor, at)
    ]
    for rule in rules:
        span = _match_rule(rule, view, at)
        if span:
            return span
    return _match_loosely(rules[0], view, at) if rules else None


def _match_loosely(rule: _CompiledRule, view: bytes, at: int) -> Span | None:
    """The random text after a prefix at `at`. Services change the length and alphabet of their tokens."""
    if not rule.is_loose or not is_standalone(view, at):
        return None
    body = _LOOSE_BODY.match(view, at + len(rule.anchor))
    if body is None or _ALL_CLASSES.match(view, *body.span()) is None or not is_random(body[0].decode()):
        return None
    return Span(at, body.end(), rule.kind)


def _find_by_run(view: bytes, start: int, end: int) -> Span | None:
    """The credential that is a whole run, the last part of a path, or base64 with padding at the end of a path."""
    while end > start and view[end - 1] == _DOT:
        end -= 1
    starts = {start, view.rfind(b"/", start, end) + 1}
    if view[end : end + 1] == b"=":
        starts.update(end - length for length in _PADDED_LENGTHS)
    for first in starts:
        for rule in _RUN_LENGTHS.get(end - first, ()) if first >= start else ():
            span = _match_rule(rule, view, first)
            if span:
                return span
    return None


def _find_by_word(view: bytes, start: int, end: int) -> Span | None:
    if end - start < _MIN_WORD:
        return None
    at = start
    while word := _LONG_WORD.match(view, at, end):
        first, at = word.span(1)
        rules = _WORD_LENGTHS.get(at - first)
        if rules is None:
            continue
        joined = first > 0 and view[first - 1] in JOINING_BYTES
        for rule in rules:
            span = _match_rule(rule, view, first) if joined or not rule.before else None
            if span:
                return span
    return None


def _match_rule(rule: _CompiledRule, view: bytes, at: int) -> Span | None:
    """The rule's credential that includes position `at`."""
    pattern = rule.pattern
    match = pattern.match(view, at)
    if match is None and rule.before:
        match = pattern.search(view, max(0, at - rule.before), at + 400)
        if match is None or not match.start() <= at < match.end():
            return None
    if match is None or (rule.alone and not is_standalone(view, match.start())):
        return None
    if not rule.is_token(match[0].decode("latin-1")):
        return None
    return Span(match.start(), match.end(), rule.kind)


def is_standalone(view: bytes, at: int) -> bool:
    """Whether no letter or digit precedes it, except as part of an escape, and it is not inside base64."""
    before = view[max(0, at - 2) : at]
    if before and before[-1] in _IN_BASE64 and _BASE64.fullmatch(view, max(0, at - 20), at):
        return False
    if not before or not before[-1:].isalnum():
        return True
    return (
        before[:1] == b"\\"
        or view[max(0, at - 4) : at] == b"/bot"
        or view[max(0, at - 3) : at - 2] == b"%"
        or view[max(0, at - 6) : at - 4] == b"\\u"
    )
