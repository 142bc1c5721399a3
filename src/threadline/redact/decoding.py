r"""Find and decode encoded parts of a text: escapes, hex, base64, base32, lists of character codes, dumps.

Each decoder is a row of a table: a cheap search for something rare that every use of the encoding contains, and a
function that yields the encoded parts. Only if the search succeeds does the function run. A part is decoded to what it
spells; most parts also know which of their characters spell which decoded character (`unit`).
"""

from __future__ import annotations

import re
import zlib
from base64 import b32decode
from binascii import a2b_base64, a2b_uu
from collections.abc import Callable, Iterator
from html import unescape
from operator import itemgetter
from typing import NamedTuple
from unicodedata import normalize

from threadline.redact.rules.patterns import LiteralPattern, compile_lazily, find_runs


class Part(NamedTuple):
    """A part of a text and what it spells in a view.

    `unit` matches the characters that spell one decoded character. Without it, only the whole part can be mapped.
    """

    start: int
    end: int
    text: str
    unit: re.Pattern[str] | None = None

    def unit_positions(self, source: str) -> list[tuple[int, int]]:
        """The position in the source of each decoded character, if they can be told apart."""
        if self.unit is None:
            return []
        return [match.span() for match in self.unit.finditer(source, self.start, self.end)]


class _Decoder(NamedTuple):
    """A cheap search that succeeds in every text with the encoding, and the function that finds the encoded parts."""

    hint: LiteralPattern
    find: Callable[[str], Iterator[Part]]


_BREAK = r"(?:\r?\n|(?:\\+r)?\\+n)"
_MAX_DECODED = 1 << 20


# Characters that look like ASCII: full-width, mathematical, circled and superscript letters, dashes, quotes.

_LOOKALIKE = compile_lazily(
    "[\u00aa\u00ba\u02b0-\u02b8\u02e0-\u02e4\u1d2c-\u1d6a\u1d9c-\u1dbf\u2070-\u209c\u2100-\u2149\u2460-\u24ea"
    "\ufe50-\ufe6b\uff01-\uff5e\U0001d400-\U0001d7ff\U0001f110-\U0001f149]+"
)
_DASHES = frozenset("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u00b7")
_MAX_DISTINCT = 64
_OPENING_QUOTE = compile_lazily("[\u201c\u201e\u2018\u00ab]")
_QUOTE_HINT = compile_lazily("[\u201c\u201e\u2018\u00ab](?:(?<=[:=(,].)|(?<=[:=(,] .))")
_QUOTE = compile_lazily("[\u201c-\u201f\u00ab\u00bb]|[\u2018-\u201b]")
_HOMOGLYPHS = dict(
    zip(
        "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456"
        "\u0458\u0455\u04bb\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03bd",
        "ABEKMHOPCTXaeopcyxijshABEZHIKMNOPTYXov",
        strict=True,
    )
)
_ANY = compile_lazily(".", re.DOTALL)


_ASCII = bytes(range(128))


def foreign_characters(text: str) -> str:
    """The characters of a text that are not ASCII. Searching them is faster than searching the text."""
    if text.isascii():
        return ""
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


def find_lookalikes(text: str, foreign: str) -> Iterator[Part]:
    """Find characters that are not ASCII but look like it; `foreign` are the characters that are not ASCII."""
    characters = {*foreign}
    if len(characters) > _MAX_DISTINCT and _LOOKALIKE.search(foreign):
        yield from (Part(*match.span(), "".join(map(_to_ascii, match[0])), _ANY) for match in _LOOKALIKE.finditer(text))
    for character in characters:
        if len(characters) <= _MAX_DISTINCT and _LOOKALIKE.match(character):
            plain = _to_ascii(character)
            yield from (Part(*match.span(), plain) for match in re.finditer(re.escape(character), text))
        elif character in _HOMOGLYPHS:
            pattern = f"{character}(?:(?<=[A-Za-z0-9_-].)|(?=[A-Za-z0-9_-]))"
            yield from (Part(*match.span(), _HOMOGLYPHS[character]) for match in re.finditer(pattern, text))
        elif character in _DASHES:
            pattern = f"{character}(?<=[A-Za-z0-9].)(?=[A-Za-z0-9])"
            yield from (Part(*match.span(), "-") for match in re.finditer(pattern, text))
        elif character in _BLANKS:
            pattern = f"{character}(?<=[!-~].)(?<!{_PART_OF_WORD}[!-~].)(?=[!-~](?!{_PART_OF_WORD}))"
            yield from (Part(*match.span(), " ") for match in re.finditer(pattern, text))
    if _OPENING_QUOTE.search(foreign) and _QUOTE_HINT.search(text):
        for match in _QUOTE.finditer(text):
            yield Part(*match.span(), "'" if "\u2018" <= match[0] <= "\u201b" else '"')


_PART_OF_WORD = "[A-Za-z0-9_+/.-]"
# Blanks of other widths count between single characters.
_BLANKS = frozenset("\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000")


def _to_ascii(character: str) -> str:
    plain = normalize("NFKC", character)
    return plain if len(plain) == 1 and plain.isascii() else character


# Escapes: each spells one character, and they may be mixed with plain characters.

_ASCII_HEX = "(?:[2-7][0-9a-fA-F]|0[9aAdD])"
# Letters that are not ASCII, without punctuation and emoji.
_FOREIGN_HEX = "00[c-fC-F][0-9a-fA-F]|0[1-9a-fA-F][0-9a-fA-F]{2}|[3-9a-cA-C][0-9a-fA-F]{3}"
_BACKSLASH_ESCAPE = compile_lazily(
    rf"\\\\*(?:x\{{?0{{0,4}}({_ASCII_HEX})\}}?|u00({_ASCII_HEX})|u\{{0{{0,4}}({_ASCII_HEX})\}}|U000000({_ASCII_HEX})"
    rf"|u([fF][fF][0-5][0-9a-fA-F])|0?([01][0-7][0-7])(?![0-9])|u({_FOREIGN_HEX}))"
)
_PERCENT_ESCAPE = compile_lazily(rf"%(?:25)*(?:u00)?({_ASCII_HEX})")
_ENTITY = compile_lazily(
    r"&(?:amp;)*(?:#(?:0{0,4}[0-9]{1,6}|[xX]0{0,5}[0-9a-fA-F]{1,5});?"
    r"|(?:quot|QUOT|amp|AMP|lt|LT|gt|GT|apos|lowbar|UnderBar|period|hyphen|dash|equals|plus|sol|colon|comma|semi|num"
    r"|excl|quest|ast|midast|lpar|rpar|lsqb|lbrack|rsqb|rbrack|lcub|lbrace|rcub|rbrace|commat|dollar|percnt|grave|bsol"
    r"|verbar|vert|Hat|nbsp|shy|zwj|zwnj|NewLine|Tab);)"
)
_QUOTED_PRINTABLE = compile_lazily(r"=(?:([2-7][0-9A-F])|(?<=[^\n]{40}=)\r?\n)")
_OCTAL_GROUP = 6


def _backslash_escapes(text: str) -> Iterator[Part]:
    for match in _BACKSLASH_ESCAPE.finditer(text):
        group = match.lastindex or 1
        code = int(match[group], 8 if group == _OCTAL_GROUP else 16)
        code -= 0xFEE0 if code > 0xFF00 else 0  # noqa: PLR2004 - full-width letters
        if 0x20 <= code < 0x7F or code >= 0xC0 or code in (9, 10, 13):  # noqa: PLR2004 - printable
            yield Part(*match.span(), chr(code))


def _percent_escapes(text: str) -> Iterator[Part]:
    for match in _PERCENT_ESCAPE.finditer(text):
        yield Part(*match.span(), chr(int(match[1], 16)))


def _entities(text: str) -> Iterator[Part]:
    for match in _ENTITY.finditer(text):
        character = match[0]
        while (plain := unescape(character)) != character:
            character = plain
        if len(character) == 1:
            yield Part(*match.span(), character)


def _quoted_printable(text: str) -> Iterator[Part]:
    for match in _QUOTED_PRINTABLE.finditer(text):
        yield Part(*match.span(), chr(int(match[1], 16)) if match[1] else "")


_ESCAPES = (
    _Decoder(
        LiteralPattern(
            "\\",
            r"\\(?=x\{?0{0,4}[2-7]|u00[2-7]|u\{0{0,4}[2-7]|U000000[2-7]|u[fF][fF][0-5]|0?[01][0-7][0-7](?:\\|[A-Za-z_-])"
            rf"|u(?:{_FOREIGN_HEX}))",
        ),
        _backslash_escapes,
    ),
    _Decoder(LiteralPattern("%", "%(?=[2-7][0-9a-fA-F]|u00[2-7])"), _percent_escapes),
    _Decoder(LiteralPattern("&", r"&(?=#|[A-Za-z]{2,8};)"), _entities),
    _Decoder(LiteralPattern("=", r"=(?=3D|[2-7][0-9A-F]=[2-7][0-9A-F])"), _quoted_printable),
)


def find_escapes(text: str) -> list[Part]:
    """Find all escapes, sorted by position."""
    return _find_parts(text, _ESCAPES)


def find_encoded(text: str) -> list[Part]:
    """Find all encoded parts other than escapes, sorted by position."""
    parts = _find_parts(text, _LISTS) if len(text) > _MIN_LIST else []
    parts += _find_encoded_runs(text)
    return sorted(parts, key=lambda part: (part.start, -part.end))


def _find_parts(text: str, decoders: tuple[_Decoder, ...]) -> list[Part]:
    parts: list[Part] = []
    done: set[Callable[[str], Iterator[Part]]] = set()
    for hint, find in decoders:
        match = hint.search(text) if find not in done else None
        if match is not None:
            done.add(find)
            parts += find(text)
    return sorted(parts, key=itemgetter(0))


_MIN_LIST = 30


# Runs of base64, base32 and hex.

_ALPHABETS = (
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
)
_MIN_RUN = 20
_RUN_TABLE = bytes(0x41 if chr(byte) in "".join(_ALPHABETS) else 0x20 for byte in range(256))


def _digits_without(bit: int) -> str:
    """A class of the base64 digits that do not have this bit."""
    letters = {digits[value] for digits in _ALPHABETS for value in range(64) if not value & bit}
    return "[" + re.escape("".join(sorted(letters))) + "]"


# Bytes of ASCII text have no highest bit. Few words and no hashes look like that for sixteen letters in a row.
# The text may begin with a character that is not ASCII.
_BASE64_TEXT = compile_lazily(
    rf"(?:[\w+/-]{{4}})?(?:{_digits_without(32)}{_digits_without(8)}{_digits_without(2)}[\w+/-]){{4}}", re.ASCII
)
_COMPRESSED = compile_lazily(r"H4sI|eJ[w-z]")
_HEX_TEXT = compile_lazily(
    r"(?:0?[xX])?((?:[2-7][0-9a-fA-F]|0[9aAdD]){10,}|(?:[2-7][0-9a-fA-F]00|00[2-7][0-9a-fA-F]){6,}"
    r"|(?:1[fF]8[bB]08|78(?:01|5[eE]|9[cC]|[dD][aA]))(?:[0-9a-fA-F]{2}){10,})"
)
_COMPRESSED_STARTS = frozenset((b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"))
_BASE32_TEXT = compile_lazily(r"[A-P][A-Z2-7]{23,}")
# One match rules out nearly all runs.
_MAYBE_ENCODED = compile_lazily(
    rf"[+/_nrt-]?(?:{_BASE64_TEXT.pattern}|(?:0?[xX])?(?:[02-7][0-9a-fA-F]){{10}}|{_BASE32_TEXT.pattern}|{_COMPRESSED.pattern}"
    r"|(?:0?[xX])?(?:1[fF]8[bB]08|78(?:01|5[eE]|9[cC]|[dD][aA]))[0-9a-fA-F]{8})"
)
_MAYBE_ENCODED_BYTES = compile_lazily(_MAYBE_ENCODED.pattern.encode())
_BASE64_PIECE = r"[A-Za-z0-9+/_-]+={0,2}"
_MARGIN = r"[ \t]{0,64}(?:[0-9]{1,6}[ \t]{0,4}[\u2192|:\u2502?\t][ \t]{0,8})?"
_NEXT_LINE = compile_lazily(
    r"[\"'`]?[ \t]{0,8}[+.\\]?[ \t]{0,8}" + _BREAK + _MARGIN + r"([+>|-]?)[ \t]{0,64}[+.]?[ \t]{0,8}[\"'`]?"
)
_PIECE = compile_lazily(rf"({_BASE64_PIECE})(?=[ \t]*(?:[\"'`,;\\]|\r?\n|\Z))")
_MIN_WRAP = 40
_FIRST_CHECK = 512
_GROUP = 8
"""How many digits spell whole bytes, in every encoding."""
_SIGNS = frozenset("+-_/")
_TO_STANDARD = str.maketrans("-_", "+/")
_CONTROL = bytes([*range(9), 11, 12, *range(14, 32), 127])
_HIGH = bytes(range(128, 256))
_MAX_BINARY_SHARE = 0.1


def may_be_encoded(view: bytes, start: int) -> bool:
    """Whether the run at a position can be encoded text. Nearly none can."""
    return _MAYBE_ENCODED_BYTES.match(view, start) is not None


def _find_encoded_runs(text: str) -> Iterator[Part]:
    """Find base64, base64url, base32 and hex, also if the lines are wrapped."""
    done = 0
    for start, end in find_runs(text.encode("ascii", "replace").translate(_RUN_TABLE), _MIN_RUN):
        if start < done or not _MAYBE_ENCODED.match(text, start):
            continue
        part = decode_run(text, start, end)
        if part is not None:
            done = part.end
            yield part


def decode_run(text: str, start: int, end: int) -> Part | None:
    """Decode the run from `start` to `end` and the lines that continue it; None if it is not encoded text."""
    # An escape or the sign of a diff may precede it.
    if text[start] in _SIGNS or (start and text[start - 1] == "\\" and text[start] in "nrt"):
        return _decode_run(text, start, end) or _decode_run(text, start + 1, end)
    return _decode_run(text, start, end)


def _decode_run(text: str, start: int, end: int) -> Part | None:
    match = _HEX_TEXT.match(text, start, end)
    if match is not None and match.end() in (end, end - 1):
        return _decode_wrapped(text, start, match.end(), _decode_hex)
    part = None
    if _BASE64_TEXT.match(text, start, end) or _COMPRESSED.match(text, start, end):
        part = _decode_wrapped(text, start, end, _decode_base64)
    if part is None and _BASE32_TEXT.fullmatch(text, start, end):
        part = _decode_wrapped(text, start, end, _decode_base32)
    return part


def _decode_wrapped(text: str, start: int, end: int, decode: Callable[[str], str | None]) -> Part | None:
    """Decode a run and the lines that continue it, as far as they spell text.

    Each time the run has doubled, it is decoded so far. Without that, every line of many that spell nothing would be
    decoded together with all of the following ones.
    """
    sign = text[start - 1 : start]
    end += len(text[end : end + 8]) - len(text[end : end + 8].lstrip("="))
    pieces = [text[start:end]]
    length = size = len(pieces[0])
    known: tuple[str | None, int] | None = None
    check_at = _FIRST_CHECK
    while length >= _MIN_WRAP and not pieces[-1].endswith("=") and len(pieces) < _MAX_DECODED // _MIN_WRAP:
        margin = _NEXT_LINE.match(text, end)
        if margin is None:
            break
        at = margin.start(1) if margin[1] and margin[1] != sign else margin.end()
        piece = _PIECE.match(text, at)
        if piece is None or (len(pieces) > 1 and len(piece[1]) > length) or not _continues(pieces, piece[1], length):
            break
        if known is None:
            known = _try(decode, pieces[0]), end
        pieces.append(piece[1])
        end = piece.end()
        size += len(piece[1])
        if size >= check_at:
            decoded = _try(decode, "".join(pieces)[: size // _GROUP * _GROUP])
            if decoded is None:
                break
            known, check_at = (decoded, end), 2 * size
        if len(piece[1]) < length:
            break
        length = len(piece[1])
    decoded = _try(decode, "".join(pieces))
    if decoded is None and known is not None:
        decoded, end = known  # the next line is not part of it
    return None if decoded is None else Part(start, end, decoded)


def _try(decode: Callable[[str], str | None], digits: str) -> str | None:
    try:
        return decode(digits)
    except ValueError:
        return None


def _continues(pieces: list[str], piece: str, length: int) -> bool:
    """Whether a line continues the encoded lines: it is as long as they are, or it completes the last group."""
    if len(piece) >= length or piece.endswith("="):
        return True
    before = sum(map(len, pieces))
    if before % 4 == 0 and _BASE64_TEXT.match(pieces[0]) and not _encodes_text(piece):
        return False  # the text is complete, and this is another line
    return not piece.isalpha() or (before + len(piece)) % 4 == 0


def _encodes_text(digits: str) -> bool:
    """Whether few of the bytes have the highest bit."""
    data = a2b_base64(digits[: len(digits) & ~3].translate(_TO_STANDARD))
    return sum(byte > 127 for byte in data) * 4 <= len(data)  # noqa: PLR2004 - the last byte of ASCII


def _decode_hex(digits: str) -> str | None:
    digits = digits.lstrip("0").lstrip("xX") if digits[:2].lower().endswith("x") or digits[:1] in "xX" else digits
    return _to_text(_decompress(bytes.fromhex(digits[: len(digits) & ~1])))


def _decode_base64(digits: str) -> str | None:
    digits = digits.rstrip("=").translate(_TO_STANDARD)
    return _to_text(_decompress(a2b_base64(digits[: len(digits) - (len(digits) % 4 == 1)] + "==")))


def _decompress(data: bytes) -> bytes:
    """The bytes, decompressed if they start as those of gzip and zlib do."""
    if data[:2] not in _COMPRESSED_STARTS:
        return data
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data, _MAX_DECODED)
    except zlib.error as error:
        raise ValueError(error) from None


def _decode_base32(digits: str) -> str | None:
    digits = digits.rstrip("=")
    return _to_text(b32decode(digits + "=" * (-len(digits) % 8)))


def _to_text(data: bytes) -> str | None:
    """The text that the bytes spell in UTF-8 or UTF-16, or None if they spell none."""
    zeros = data.count(0)
    if zeros > len(data) // 3:
        return data.replace(b"\0", b"").decode("ascii", "replace")
    if len(data) - len(data.translate(None, _CONTROL)) + zeros > len(data) * _MAX_BINARY_SHARE / 2:
        return None
    if len(data) - len(data.translate(None, _HIGH)) > len(data) * _MAX_BINARY_SHARE:
        text = data.decode("utf-8", "replace")
        return None if text.count("\ufffd") > len(text) * _MAX_BINARY_SHARE else text
    return data.decode("utf-8", "replace")


# Lists of character codes and of single characters, and dumps.

# Groups are atomic, so that the time stays linear.
_SPACE = rf"(?>(?:[ \t]|{_BREAK}){{0,40}})"
_DECIMAL = "(?:3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6]|10|13|9)"
_CODE_END = "(?:u8|i8|[uUlL])?"
_KEY = r"(?:\\*\"[0-9]{1,5}\\*\"[ \t]*:[ \t]*)?"
_SEPARATOR = rf"(?>{_SPACE}[,;:+&|.-]{{1,2}}{_SPACE}|(?:[ \t]|{_BREAK}){{1,40}})"
_CALL = r"(?:\[(?:char|byte)\]|[\w.]{0,24}(?:[cC][hH][aA]?[rR]|CodePoint|CharCode)\w{0,4}\()?[ \t]?"
_MIN_UNITS = 10


def _list_pattern(unit: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of a list of character codes and of one of its items."""
    item = rf"(?>{_KEY}{_CALL}(?:{unit}){_CODE_END}(?:[ \t]?\))?)"
    return (
        compile_lazily(rf"(?<![\w.]){item}(?:{_SEPARATOR}{item}){{{_MIN_UNITS - 1},}}(?![\w])"),
        compile_lazily(rf"{_KEY}{_CALL}({unit}){_CODE_END}(?:[ \t]?\))?{_SEPARATOR}?"),
    )


_DECIMALS, _ONE_DECIMAL = _list_pattern(_DECIMAL)
_HEX_CODE = rf"(?:0[xX]|&[hH]|\\*[xX]|%|\$|#|U\+00)?(?:{_ASCII_HEX}|0[9aAdD]|00)"
_HEX_CODES, _ONE_HEX = _list_pattern(_HEX_CODE)
_OCTALS, _ONE_OCTAL = _list_pattern("(?:0o|0)?(?:0[4-7]|1[0-7])[0-7]|0o[4-7][0-7]")
_BINARIES, _ONE_BINARY = _list_pattern("(?:0b)?0[01]{7}")
_CHARACTERS = compile_lazily(
    rf"(?<![\w\\])(\\*[\"'`])[!-~]\1(?>{_SPACE}[,+.&|]{{0,2}}{_SPACE}\1[ -~]\1){{{_MIN_UNITS - 1},}}"
)
_ONE_CHARACTER = compile_lazily(rf"(\\*[\"'`])([ -~])\1(?:{_SPACE}[,+.&|]{{0,2}}{_SPACE})?")
# A quote or another sign may touch the first and the last character.
_SPACED = compile_lazily(rf"(?<!{_PART_OF_WORD})[!-~](?:(?: {{1,3}}|\t|\r?\n)[!-~]){{15,}}(?!{_PART_OF_WORD})")
_ONE_SPACED = compile_lazily(r"([!-~])(?: {1,3}|\t|\r?\n)?")


# Hints of lists. Each starts with a rare character, and several items must follow.
_FOLLOWING = (
    r"(?=(?>[^\w.]{1,12}(?:[0-9]{1,5}\\*\"[: ]{1,4}|[\w.]{0,24}[(\]])?(?:0[xX]|[xX])?[0-9a-fA-F]{2,3}(?:u8|[uU])?){5}"
    r"(?![0-9a-zA-Z]))"
)
_CODE_HINTS = (
    LiteralPattern("1", r"1(?<=[^\w.]1)[0-7][0-9](?:u8)?" + _FOLLOWING),
    *(
        LiteralPattern(digit, rf"{digit}(?<=[^A-WYZa-wyz0-9_.]{digit})[0-9a-fA-F](?:u8|[uU])?{_FOLLOWING}")
        for digit in "74"
    ),
)
_CHARACTER_HINTS = (
    LiteralPattern(",", r",(?<=[\"'`],)(?:[ \t\r\n]{0,24}\\{0,8}[\"'`][!-~]\\{0,8}[\"'`],){4}"),
    LiteralPattern("+", r"\+(?<=[\"'` ]\+)(?:[ \t]?[\"'`][!-~][\"'`][ \t]?\+){4}"),
)
_OCTAL_HINT = LiteralPattern("0", r"0(?=o[0-7]{2,3}[^\w]{1,4}0o[0-7]{2,3}[^\w]{1,4}0o)")
_BINARY_HINTS = (LiteralPattern("01", r"01[01]{6}(?=[^\w]{1,4}(?:0b)?0[01]{7}[^\w]{1,4}(?:0b)?0[01]{7}(?![01]))"),)
_SPACED_HINTS = (
    *(
        LiteralPattern(
            sign, rf"{sign}(?:(?<=[!-~][ \n]{sign})|(?<=[!-~]   {sign}))(?=(?:(?: {{1,3}}|\r?\n)[!-~]){{4}}[ \r\n])"
        )
        for sign in "-_"
    ),
    LiteralPattern("I", r"I(?:(?<=[AKS][ \n]I)|(?<=[AKS]   I))(?=(?: {1,3}|\r?\n)[Az](?: {1,3}|\r?\n)[!-~][ \r\n])"),
)
_DUMP_HINTS = (
    LiteralPattern("00000", r"00000[0-9a-fA-F]{0,10}:?[ \t]{1,3}(?:[0-9a-fA-F]{2,8}[ \t]|[ \t]{1,2}[!-~\\])"),
)
_REACH = 512
"""How far before a hint a list may start."""


def _near_hints(hints: tuple[LiteralPattern, ...], pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Matches of a slow pattern that include a hint. Only the text near a hint is searched."""
    done = 0
    # One search for each hint is faster than one for all.
    for place in sorted(place.start() for hint in hints for place in hint.finditer(text)):
        if place >= done:
            match = pattern.search(text, max(done, place - _REACH), place + _REACH)
            if match is None:
                done = place + _REACH // 2
            elif match.start() > place:
                done = match.start()
            else:
                match = pattern.match(text, match.start(), place + _MAX_DECODED) or match
                yield match
                done = match.end()


def _decimals(text: str) -> Iterator[Part]:
    for match in _near_hints(_CODE_HINTS, _DECIMALS, text):
        decoded = "".join(chr(int(code)) for code in _ONE_DECIMAL.findall(match[0]))
        yield Part(*match.span(), decoded, _ONE_DECIMAL)


def _hex_codes(text: str) -> Iterator[Part]:
    for match in _near_hints(_CODE_HINTS, _HEX_CODES, text):
        decoded = "".join(chr(int(code[-2:], 16)) for code in _ONE_HEX.findall(match[0]))
        yield Part(*match.span(), decoded.replace("\0", ""), None if "\0" in decoded else _ONE_HEX)


def _codes(text: str) -> Iterator[Part]:
    yield from _decimals(text)
    yield from _hex_codes(text)
    for match in _near_hints((*_CODE_HINTS, _OCTAL_HINT), _OCTALS, text):
        yield Part(
            *match.span(),
            "".join(chr(int(code.lstrip("0o") or "0", 8)) for code in _ONE_OCTAL.findall(match[0])),
            _ONE_OCTAL,
        )


def _binaries(text: str) -> Iterator[Part]:
    for match in _near_hints(_BINARY_HINTS, _BINARIES, text):
        yield Part(
            *match.span(), "".join(chr(int(code[-8:], 2)) for code in _ONE_BINARY.findall(match[0])), _ONE_BINARY
        )


def _characters(text: str) -> Iterator[Part]:
    for match in _near_hints(_CHARACTER_HINTS, _CHARACTERS, text):
        yield Part(*match.span(), "".join(letter for _, letter in _ONE_CHARACTER.findall(match[0])), _ONE_CHARACTER)


def _spaced(text: str) -> Iterator[Part]:
    for match in _near_hints(_SPACED_HINTS, _SPACED, text):
        yield Part(*match.span(), "".join(_ONE_SPACED.findall(match[0])), _ONE_SPACED)


_DUMP_OFFSET = r"[ \t]{0,8}[0-9a-fA-F]{4,16}+:?[ \t]{1,3}"
_DUMP_LINE = rf"(?>{_DUMP_OFFSET}(?:[0-9a-fA-F]{{2,8}}+(?:[ \t]{{1,3}}|(?=[\r\n\\]|\Z))){{1,32}}[^\r\n\\]{{0,80}})"
_LINE_START = r"(?:(?<=\n)|(?<=\\n)|\A)"
_DUMP = compile_lazily(rf"{_LINE_START}{_DUMP_LINE}(?:{_BREAK}{_DUMP_LINE}){{1,65536}}")
_DUMP_WORDS = compile_lazily(rf"{_DUMP_OFFSET}((?:[0-9a-fA-F]{{2,8}}[ \t]{{1,2}}){{0,31}}[0-9a-fA-F]{{2,8}})(?![^\s|])")
_CHARACTER_DUMP_LINE = r"(?>[ \t]{0,4}[0-7]{7}(?: {3}[ -~]| {2}\\[0nrtabfv]| [0-7]{3}){1,16}[ \t]*)"
_CHARACTER_DUMP = compile_lazily(rf"{_LINE_START}{_CHARACTER_DUMP_LINE}(?:{_BREAK}{_CHARACTER_DUMP_LINE}){{1,65536}}")
_LINE_SPLIT = compile_lazily(_BREAK)


def _dumps(text: str) -> Iterator[Part]:
    """Find the output of xxd, hexdump and od. Their words may be of either byte order, or octal."""
    for match in _near_hints(_DUMP_HINTS, _DUMP, text):
        rows = [m[1].split() for line in _LINE_SPLIT.split(match[0]) if (m := _DUMP_WORDS.match(line))]
        readings = [reading for reading in (_read_dump(rows, how) for how in _READINGS) if reading]
        if readings:
            yield Part(*match.span(), "\n".join(readings))
    for match in _near_hints(_DUMP_HINTS, _CHARACTER_DUMP, text):
        lines = [line.strip().partition(" ")[2] for line in _LINE_SPLIT.split(match[0])]
        yield Part(*match.span(), "".join(line[2::4] for line in lines))


def _read_big_endian(word: str) -> bytes:
    return bytes.fromhex(word)


def _read_little_endian(word: str) -> bytes:
    return bytes.fromhex(word)[::-1]


def _read_octal(word: str) -> bytes:
    return int(word, 8).to_bytes(2 if len(word) > 3 else 1, "little")  # noqa: PLR2004 - digits of a byte


_READINGS = (_read_big_endian, _read_little_endian, _read_octal)


def _read_dump(rows: list[list[str]], read: Callable[[str], bytes]) -> str | None:
    try:
        return _to_text(b"".join(read(word) for row in rows for word in row).rstrip(b"\0"))
    except (ValueError, OverflowError):
        return None


_UU_HINT = LiteralPattern("begin ", r"begin (?=[0-7]{3,4} [^\s\\])")
_UU_BLOCK = compile_lazily(
    rf"begin [0-7]{{3,4}} [^\r\n\\]{{1,200}}{_BREAK}((?:[!-M][ -`]{{2,84}}+{_BREAK}){{1,65536}}+)(?:[ `]?{_BREAK}end)?"
)


def _uu_blocks(text: str) -> Iterator[Part]:
    """Find blocks of uuencode. A line has its length before it, and blanks at its end may be lost."""
    for match in _UU_HINT.finditer(text):
        block = _UU_BLOCK.match(text, match.start())
        if block is not None:
            decoded = _try(_decode_uu, block[1])
            if decoded is not None:
                yield Part(*block.span(1), decoded + "\n")


def _decode_uu(block: str) -> str | None:
    return _to_text(b"".join(map(a2b_uu, filter(None, _LINE_SPLIT.split(block)))))


_LISTS = tuple(
    _Decoder(hint, find)
    for hints, find in (
        ((*_CODE_HINTS, _OCTAL_HINT), _codes),
        (_BINARY_HINTS, _binaries),
        (_CHARACTER_HINTS, _characters),
        (_SPACED_HINTS, _spaced),
        (_DUMP_HINTS, _dumps),
        ((_UU_HINT,), _uu_blocks),
    )
    for hint in hints
)
