"""Find random-looking values that have neither a known format nor a telling name.

In the level `standard`, a value must look random and also be where secrets are: alone on a line, a quoted argument,
after a word such as `token`, or with a prefix that means key. The level `strict` removes every random-looking value.
Ids, hashes, fingerprints, public keys, file names and encoded files are recognized by their form and context.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Iterator
from itertools import pairwise

from threadline.redact.rules.formats import Span
from threadline.redact.rules.heuristics import entropy
from threadline.redact.rules.patterns import compile_lazily

RANDOM_VALUE = "random-value"
_MIN_LENGTH, _MAX_LENGTH = 20, 160
_MIN_SINGLE_CASE = 24
_MIN_STRICT = 16
_MIN_ENTROPY = 3.6
_MIN_LONG_ENTROPY = 4.0
_LONG = 28
_MIN_CHANGES = 0.38
_MIN_SINGLE_CASE_CHANGES = 0.18
_MIN_SINGLE_CASE_ENTROPY = 3.3
_MIN_STRICT_CHANGES = 0.2
_MIN_STRICT_DISTINCT = 6
_MAX_STRICT_WORD_SHARE = 0.75
_MAX_SIGN_SHARE = 0.125
_MAX_DISTINCT_SIGNS = 2

# The cheapest test: letters of two kinds and a digit. Nearly all names and paths fail here or at the next one.
_MAY_BE_RANDOM = compile_lazily(
    rb"(?=[^0-9]*[0-9])(?:(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])|(?=(?:[^0-9]*[0-9]){3})(?=[^g-zG-Z]*[g-zG-Z]))"
    rb"[A-Za-z0-9+/_-]{%d,%d}\Z" % (_MIN_LENGTH, _MAX_LENGTH)
)
_STRICT_VALUE = compile_lazily(rb"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{%d,}={0,2}" % _MIN_STRICT)
# Words as in names, and longer ones. The shares are those that 98 of 100 random values of 32 characters have at most.
_WORD = compile_lazily(r"[A-Z][a-z]{2,}|[a-z]{3,}|[A-Z]{3,}")
_LONG_WORD = compile_lazily(r"[A-Z][a-z]{3,}|[a-z]{4,}|[A-Z]{4,}")
_MAX_WORD_SHARE, _MAX_LONG_WORD_SHARE = 0.72, 0.55
_LETTERS = compile_lazily(r"[a-z]{13,}|[A-Z]{18,}")
_SIGNS = compile_lazily(r"[_+/-]")
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
# Values that are random but public: ids of Claude and of other services, digests, public keys, encoded files, symbols.
_PUBLIC = compile_lazily(
    rf"{_UUID}|(?:toolu|srvtoolu|mcptoolu|msg|req|agent|batch|file|container|cse|session|conv|wrkspc|org)_[0-9A-Za-z]"
    r"|(?:chatcmpl|resp|call|run|asst|thread|step|msgbatch|ftjob|modr|cmpl|fc|rs|task|job|user|org|team|proj|acct|cus"
    r"|price|prod|sub|pi|ch|evt|in|pm|src|txn|cs_test|cs_live|seti|usr|evt)[_-][0-9A-Za-z]"
    r"|sha(?:1|224|256|384|512)-|md5-|h1:|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}T?[0-9]{6}|_Z[A-Z]|_R[A-Z]|_T[0-9]"
    r"|AAAA[BCE][23]N|AAAAE2Vj|AAAAGn|MI[IGH][A-Za-z0-9]|iVBORw0K|R0lGOD|/9j/|UEsDB|JVBERi|d09G[RM]|AAEAAA|H4sI"
    r"|data:|[A-Z]{1,5}_k[gw]DO|MD[A-Z0-9]{2}O?|Qm[1-9A-HJ-NP-Za-km-z]{44}\Z|baf[ky][a-z2-7]{20}|0x[0-9a-fA-F]{40}\Z|ey[JI]|v[0-9]+[._-]"
)
# A word that ends a line with a backtick is joined to the next line, as in PowerShell: there may be an id of Claude.
_CLAUDE_ID_END = compile_lazily(r"(?:toolu|msg|req)_01[0-9A-Za-z]{22}\Z")
# What a random value follows if it is a digest, a fingerprint, encoded data, an anchor, or part of a path or name.
_BEFORE_PUBLIC = compile_lazily(
    rb"(?i:(?:sha[0-9]{1,3}|md5|h1|integrity|checksum|digest|fingerprint|etag|hash|base64|revision|commit|blob|tree"
    rb"|build[ _-]?id|nonce|signature|x-request-id|request[ _-]id|trace[ _-]?id|span[ _-]?id|cursor|cid|id|uuid|guid"
    rb"|public[ _-]?key|pubkey|class|class[ _-]?name|address|tx|wallet|account|version|ssh-[a-z0-9-]+|ecdsa-[a-z0-9-]+)"
    rb"\\*[\"'`]?[ \t]*[:=,(]*[ \t]*\\*[\"'`(]?)\Z|[@#%&?/.~\w+-]\Z|[$]\Z"
)
# Fingerprints, paths and names do not end here.
_AFTER_PUBLIC = compile_lazily(rb"={0,2}\\*[\"'`][ \t]*:|={0,2}[(@/.\[]\w|[ \t]*\(|[ \t]+=|=[\w$({\[/]|=\\*[\"'`]\w")
_LINE_START = compile_lazily(rb"[ \t]*(?:\Z|[\r\n]|n\\)")
_LINE_END = compile_lazily(rb"={0,2}[ \t]*(?:\Z|\r?\n|\\+[nr])")
_LONG_LINE = compile_lazily(rb"[A-Za-z0-9+/=_-]{40,}")
_QUOTED_ARGUMENT = compile_lazily(rb"[\"'`]\\*[ \t]*[(,\[]|[\"'`]\\*[ \t]+[^:=\s]")
_CLOSING_QUOTE = compile_lazily(rb"={0,2}\\*[\"'`][ \t]*[),;\]\s]")
_FILL_WORDS = rb"(?:[ \t]+(?:is|was|to|as|of|for|with|value|here|my|our|the|a|new|use)){0,3}[ \t\"'`:=>(,]{1,6}"
_SECRET_WORD = compile_lazily(
    rb"(?i)(?:token|secret|key|passwor[dt]|passwd|pwd|passphrase|passcode|credentials?|creds?|bearer|licen[cs]e|api|jwt|psk"
    rb"|webhook|auth)s?" + _FILL_WORDS + rb"\\*[\"'`]?\Z"
)
_WORD_DELIMITERS = frozenset((b" ", b"\t", b"`"))
_WORD_ENDS = compile_lazily(rb"={0,2}[.,;!?]?(?:[ \t\r\n`]|\\+[nrt]|\Z)")
# A line of PEM or MIME before or after a word: joined to it by a blank, or with a margin between them.
_LINE_GAP = (
    rb"(?:[ \t]{1,4}|[ \t]{0,4}(?:\r?\n|(?:\\+r)?\\+n))[ \t>|+-]{0,24}"
    rb"(?:[0-9]{1,6}[ \t|:?\x80-\xff]{1,4})?[+-]?[ \t]{0,8}"
)
_LINE_BEFORE = compile_lazily(rb"[A-Za-z0-9+/]{60,76}" + _LINE_GAP + rb"\Z")
_LINE_AFTER = compile_lazily(rb"={0,2}" + _LINE_GAP + rb"[A-Za-z0-9+/]{60,76}={0,2}(?![A-Za-z0-9+/_=-])")
_LINE_REACH = 128
_MIXED = compile_lazily(rb"(?=(?:[^0-9]*[0-9]){2})(?=(?:[^A-Z]*[A-Z]){3})(?=(?:[^a-z]*[a-z]){3})")
_TO_STANDARD_BASE64 = bytes.maketrans(b"-_", b"+/")
_TEXT_BYTES = bytes([0x09, 0x0A, 0x0D, *range(0x20, 0x7F)])
_MAX_BINARY_SHARE = 0.1
_CONTEXT = 48
_MIN_HEX = 32
_HEX_DELIMITERS = frozenset((b" ", b'"', b"'", b"`"))
_SECRET_HEX_WORD = compile_lazily(
    rb"(?:(?<!hash )token|secret|passwor[dt]|passphrase|credentials?|bearer|(?:api|private|secret|access|auth"
    rb"|signing|encryption)[ _-]?key)s?" + _FILL_WORDS + rb"\Z"
)
_PREFIXED = compile_lazily(
    r"(?:[A-Za-z0-9]{1,12}[_-]){0,3}"
    r"(?:sk|pk|rk|key|apikey|api|pat|tok|token|secret|live|prod|production|priv|private|auth|access|refresh|svc|admin"
    r"|bot|hook|whsec|jwt|pw|pass|cred|sess|sandbox|prv|sec|master|root|deploy)"
    r"(?:[_-](?:live|test|prod|dev|v[0-9]|[a-z]{2}[0-9]?)){0,2}[_-]([A-Za-z0-9]{16,}(?:_[A-Za-z0-9]{4,}){0,2})\Z"
)


def is_random_run(run: bytes) -> bool:
    """Whether a run looks like a random value that is not public by its form. The text around it is not considered."""
    if _MAY_BE_RANDOM.match(run) is None:
        return False
    value = run.decode("latin-1")
    if _PUBLIC.match(value) or _CLAUDE_ID_END.search(value):
        return False
    if (prefixed := _PREFIXED.match(value)) is not None:
        value = prefixed[1].replace("_", "")
    return _is_random(value) and not _is_encoded_text(run)


def _is_encoded_text(run: bytes) -> bool:
    """Whether it is base64 of a text. What the text contains is checked where it is decoded."""
    whole = run[: len(run) // 4 * 4].translate(_TO_STANDARD_BASE64)
    text = a2b_base64(whole)
    return len(text.translate(None, _TEXT_BYTES)) <= len(text) * _MAX_BINARY_SHARE


def _is_random(value: str) -> bool:
    """Whether the characters change class as often as random ones, and form no words."""
    signs = _SIGNS.findall(value)
    # A path is not base64: its length is arbitrary, and it has no plus sign.
    is_path = "/" in signs and "+" not in signs and len(value) % 4 in {1, 2}
    if is_path or len(signs) > len(value) * _MAX_SIGN_SHARE or len({*signs} - {"/"}) > _MAX_DISTINCT_SIGNS:
        return False
    bare = _SIGNS.sub("", value)
    has_case = not bare.islower() and not bare.isupper()
    if len(bare) < (_MIN_LENGTH - 4 if has_case else _MIN_SINGLE_CASE):
        return False
    changes = _class_changes(bare)
    if not has_case:
        is_mixed = not signs and changes >= _MIN_SINGLE_CASE_CHANGES and _LETTERS.search(bare) is None
        return is_mixed and entropy(bare) > _MIN_SINGLE_CASE_ENTROPY
    if (
        sum(map(len, _WORD.findall(value))) > len(value) * _MAX_WORD_SHARE
        or sum(map(len, _LONG_WORD.findall(value))) > len(value) * _MAX_LONG_WORD_SHARE
    ):
        return False
    return changes >= _MIN_CHANGES and entropy(bare) > (_MIN_LONG_ENTROPY if len(bare) > _LONG else _MIN_ENTROPY)


def _class_changes(text: str) -> float:
    classes = ["d" if c.isdigit() else "u" if c.isupper() else "l" for c in text]
    return sum(a != b for a, b in pairwise(classes)) / max(1, len(text))


def find_random_value(view: bytes, start: int, end: int) -> Span | None:
    """The random-looking run from `start` to `end`, if its context is that of a secret. Call it if `is_random_run`."""
    before = view[max(0, start - _CONTEXT) : start]
    stop = end + len(view[end : end + 2]) - len(view[end : end + 2].lstrip(b"="))
    if _AFTER_PUBLIC.match(view, end):
        return None
    is_secret = (
        _PREFIXED.match(view[start:end].decode("latin-1")) is not None if not before[-1:].isalnum() else False
    ) or _SECRET_WORD.search(before) is not None
    if not is_secret:
        if _BEFORE_PUBLIC.search(before):
            return None
        if not (
            _is_alone_on_line(view, start, end)
            or _is_quoted_argument(view, start, end)
            or _is_separate_word(view, start, end)
        ) or _is_line_of_data(view, start, end):
            return None
    return Span(start, stop, RANDOM_VALUE)


def find_random_hex(view: bytes, start: int, end: int) -> Span | None:
    """The hexadecimal run from `start` to `end`, if a word directly before it says that it is a secret."""
    if end - start < _MIN_HEX or b"-" in view[start:end] or view[start - 1 : start] not in _HEX_DELIMITERS:
        return None
    before = view[max(0, start - _CONTEXT) : start].lower()
    # Every word of the pattern contains one of these.
    may_match = b"k" in before or b"cre" in before or b"pass" in before or b"bear" in before
    return Span(start, end, RANDOM_VALUE) if may_match and _SECRET_HEX_WORD.search(before) else None


def _is_alone_on_line(view: bytes, start: int, end: int) -> bool:
    """Whether nothing else is on the line, and the lines around it are not of the same kind, as in encoded files."""
    first = _LINE_START.match(view[max(0, start - _CONTEXT) : start][::-1])
    last = _LINE_END.match(view, end)
    if first is None or last is None or (first.end() == 0 and start > 0):
        return False
    above = view[max(0, start - 200) : start - first.end()].rstrip(b"\r\n\\n")
    line_above = above[max(above.rfind(b"\n"), above.rfind(b"\\n")) + 1 :]
    return not _LONG_LINE.fullmatch(line_above.strip()) and not _LONG_LINE.match(view, last.end())


def _is_line_of_data(view: bytes, start: int, end: int) -> bool:
    """Whether it is next to a line of a certificate or another encoded file, indented or joined to it by a blank."""
    is_after_line = _LINE_BEFORE.search(view, max(0, start - _LINE_REACH), start) is not None
    return is_after_line or _LINE_AFTER.match(view, end) is not None


def _is_separate_word(view: bytes, start: int, end: int) -> bool:
    """Whether a long value of all kinds of characters is a word of its own in a text."""
    return (
        end - start >= _LONG
        and view[start - 1 : start] in _WORD_DELIMITERS
        and _WORD_ENDS.match(view, end) is not None
        and _MIXED.match(view, start, end) is not None
    )


def _is_quoted_argument(view: bytes, start: int, end: int) -> bool:
    """Whether it is a whole literal between quotes that is passed to a function or a command, or is in a list."""
    before = view[max(0, start - 8) : start][::-1]
    return _QUOTED_ARGUMENT.match(before) is not None and _CLOSING_QUOTE.match(view, end) is not None


def find_random_values(view: bytes) -> Iterator[Span]:
    """Find every random-looking value of sixteen characters or more, for the level `strict`."""
    for match in _STRICT_VALUE.finditer(view):
        value = match[0].rstrip(b"=").decode()
        if _is_random_strictly(value):
            yield Span(*match.span(), RANDOM_VALUE)


_KEPT_STRICTLY = compile_lazily(
    rf"{_UUID}\Z|(?:toolu|srvtoolu|mcptoolu|msg|req|agent)_[0-9A-Za-z]+\Z|[0-9-]+\Z|[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}"
)
_PATH_SIGNS = compile_lazily(r"[/_-]")


def _is_random_strictly(value: str) -> bool:
    """The same with less evidence: digits and letters that alternate, or both cases in no order of words."""
    if _KEPT_STRICTLY.match(value):
        return False
    parts = _PATH_SIGNS.split(value)
    # Few signs are those of base64; many separate the words of a name or path.
    if len(parts) - 1 <= len(value) * _MAX_SIGN_SHARE:
        parts.append("".join(parts))
    return any(map(_is_random_part, parts))


def _is_random_part(part: str) -> bool:
    if len(part) < _MIN_STRICT - 4 or len(set(part)) < _MIN_STRICT_DISTINCT:
        return False
    if any(map(str.isdigit, part)):
        return _class_changes(part) >= _MIN_STRICT_CHANGES
    is_name = sum(map(len, _LONG_WORD.findall(part))) > len(part) * _MAX_STRICT_WORD_SHARE
    return not is_name and _class_changes(part) >= _MIN_CHANGES
