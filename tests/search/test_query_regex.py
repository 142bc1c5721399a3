"""Regular expressions match like Python's, and always finish."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from threadline.errors import BadQuery, Missing
from threadline.regex_syntax import (
    Anchor,
    AnyChar,
    Atomic,
    BackReference,
    Branch,
    Category,
    CharSet,
    Conditional,
    Group,
    Literal,
    Look,
    Node,
    Repeat,
    Sequence,
    parse_regex,
)
from threadline.search.match import Document, TimeBudget, matches
from threadline.search.query import Regex, parse_query
from threadline.search.regex import (
    CHUNK_CHARS,
    CHUNK_OVERLAP,
    BadRegex,
    RegexFinder,
    _count_parts,
    _literal_parts,
    get_finder,
    regex_matches,
    required_literals,
)

_CHARACTERS = st.sampled_from(
    ["a", "b", "B", "k", "é", ".", r"\d", r"\W", "[ab]", "[^a]", "[a-c1]", r"[^\w]", " ", r"\.", "中"]
)
_EMPTY = st.sampled_from(["^", "$", r"\b", r"\B", ""])
_PATTERNS = st.recursive(
    _CHARACTERS | _EMPTY,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map("".join)
        | st.lists(inner, min_size=2, max_size=3).map(lambda options: f"(?:{'|'.join(options)})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        )
        | inner.map(lambda pattern: f"(?-i:{pattern})")
    ),
    max_leaves=6,
)
_LINES = st.text(st.sampled_from("aAbB1c .é中_K\u212a"), max_size=8)


@pytest.fixture(params=["re2", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """With RE2, and without it."""
    if request.param == "python":
        monkeypatch.setitem(sys.modules, "re2", None)
    get_finder.cache_clear()
    yield request.param
    get_finder.cache_clear()


@given(_PATTERNS, _LINES, st.booleans())
@example("(a|b)*?$", "ab", True)
@example(r"[^\W_]+", "_", False)
@example(r"[\W\d]", "\u00b2", False)
def test_re2_finds_what_python_finds(pattern: str, line: str, exact_case: bool) -> None:
    """Any expression that RE2 accepts matches where Python's engine matches, and starts at the same place."""
    assume(line or r"\B" not in pattern)  # versions of Python disagree about this
    finder = RegexFinder(Regex(pattern, exact_case=exact_case))
    assume(line.isascii() or not finder._has_boundary)
    expected = re.search(pattern, line, re.NOFLAG if exact_case else re.IGNORECASE)
    assert finder._linear is not None
    match = finder._linear.search(line)
    assert (match is not None) == (expected is not None)
    assert match is None or expected is None or match.start() == expected.start()


@given(_PATTERNS, _LINES)
def test_parses_expressions_like_python(pattern: str, line: str) -> None:
    """The tree of an expression, formatted as an expression again, matches the same lines."""
    formatted = _format(parse_regex(re.compile(pattern)))
    assert (re.search(formatted, line) is None) == (re.search(pattern, line) is None)


def _format(nodes: Sequence) -> str:
    return "".join(map(_format_node, nodes))


def _format_node(node: Node) -> str:  # noqa: PLR0911 - one for each kind of node
    match node:
        case Literal(char):
            return re.escape(char)
        case Category(letter):
            return f"\\{letter}"
        case CharSet(members, is_negated):
            return f"[{'^' if is_negated else ''}{''.join(map(_format_member, members))}]"
        case Anchor(name):
            return name if name in "^$" else f"\\{name}"
        case Group(body, on, off):
            return f"(?{on}{f'-{off}' if off else ''}:{_format(body)})"
        case Branch(options):
            return f"(?:{'|'.join(map(_format, options))})"
        case Repeat(body, least, most, mode):
            return f"(?:{_format(body)}){{{least},{'' if most is None else most}}}{mode}"
    return "."


def _format_member(member: str | tuple[str, str] | Category) -> str:
    if isinstance(member, Category):
        return f"\\{member.letter}"
    return re.escape(member) if isinstance(member, str) else f"{re.escape(member[0])}-{re.escape(member[1])}"


@pytest.mark.parametrize(
    ("pattern", "tree"),
    [
        (r"\x41\u00e9\101\0[\1]", [Literal(char) for char in "A\u00e9A\0\x01"]),
        ("a{}b{2}c{,}", [*map(Literal, "a{}"), Repeat((Literal("b"),), 2, 2), Repeat((Literal("c"),), 0, None)]),
        ("[]a-c\\d-]", [CharSet(("]", ("a", "c"), Category("d"), "-"))]),
        ("[--/]", [CharSet((("-", "/"),))]),
        (r"[\b]", [Literal("\b")]),
        ("ab|ac", [Literal("a"), CharSet(("b", "c"))]),
        ("(?x) a b # c\n [ ]", [*map(Literal, "ab ")]),
        ("(?x) a \u00a0 +", [Literal("a"), Repeat((Literal("\u00a0"),), 1, None)]),
        ("a(?#note)+", [Repeat((Literal("a"),), 1, None)]),
        ("(?x:b (?#note) +)", [Group((Repeat((Literal("b"),), 1, None),), "x")]),
        ("(?:(?x: a )) b", [Group((Group((Literal("a"),), "x"),)), *map(Literal, " b")]),
        ("(?#note)a(?P<n>b)(?P=n)", [Literal("a"), Group((Literal("b"),)), BackReference()]),
        (
            "(a)?(?(1)bb|c)",
            [Repeat((Group((Literal("a"),)),), 0, 1), Conditional(((*map(Literal, "bb"),), (Literal("c"),)))],
        ),
        ("(?>a)(?<!b)c++", [Atomic((Literal("a"),)), Look((Literal("b"),)), Repeat((Literal("c"),), 1, None, "+")]),
        (r"\N{DIGIT ONE}(?i:b)(?s-i:.)", [Literal("1"), Group((Literal("b"),), "i"), Group((AnyChar(),), "s", "i")]),
    ],
)
def test_parses_all_of_the_syntax(pattern: str, tree: list[Node]) -> None:
    """Escapes, sets, counts, groups, flags, comments, assertions and references."""
    assert list(parse_regex(re.compile(pattern))) == tree


@given(_PATTERNS, _LINES)
def test_a_match_contains_the_literals_of_its_expression(pattern: str, line: str) -> None:
    """The required literals of an expression are in every line that it matches."""
    regex = Regex(pattern, exact_case=True)
    if regex_matches(regex, line):
        assert all(re.sub("\n+", "\n", literal) in f"\n{line}" for literal in required_literals(regex))


@pytest.mark.parametrize("pattern", ["[a-z]+[0-9]{3}", "[^x]+[yz]", "[ab]?", r"\s+[qz]", ".{3}[z0]", "[^b]*[bq]"])
@given(text=st.text("abxyzq01 \n", max_size=60), times=st.sampled_from([1, 7, 90]))
def test_searching_many_lines_at_once_gives_the_first_match(pattern: str, text: str, times: int) -> None:
    """Without literals, lines are searched together. The result is the match in the first matching line."""
    finder = get_finder(Regex(pattern))
    lines = (text * times).split("\n")
    matches = ((sum(len(previous) + 1 for previous in lines[:at]), finder.first(line)) for at, line in enumerate(lines))
    first = next(((offset + span[0], offset + span[1]) for offset, span in matches if span is not None), None)
    assert finder.first(text * times) == first


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*$", "(a|aa)+$", r"(\w+\s?)+$", "a*a*a*a*b", "(.*)(.*)(.*)[^a]$", "(x?){30}b", "a+$"]
)
def test_exponential_expressions_finish_or_time_out(pattern: str) -> None:
    """An expression that would take Python's engine forever ends with an answer or with an error."""
    assert regex_matches(Regex(pattern), "a" * 5_000 + "!") is (pattern in {"(.*)(.*)(.*)[^a]$", "(a|a)*$"})
    assert not regex_matches(Regex(f"{pattern}(?:x|y|z)"), "a" * 1_000_000 + "b!")
    with pytest.raises(BadQuery, match=r"did not finish within 0 seconds. Make it more specific"):
        regex_matches(Regex(f"{pattern}(?:x|y|z)"), "a" * 1_000_000 + "b!", TimeBudget(0))


def test_without_re2_only_fast_expressions_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without google-re2, Python's engine searches fast expressions. For the rest, the message says what to install."""
    monkeypatch.setitem(sys.modules, "re2", None)
    assert RegexFinder(Regex("^t[a-z]{2}$")).first("one\ntwo three\ntwo") == (14, 17)
    with pytest.raises(Missing, match=r"pip install .*\[search\]'"):
        RegexFinder(Regex("(a+)+$"))


def test_word_characters_are_unicode(engine: str) -> None:
    """Word characters, digits, spaces and word boundaries are those of Unicode, with either engine."""
    assert engine
    text = "\u043f\u0440\u0438\u0432\u0435\u0442 \u00fcber\u00e4ll\u2003\u0663"
    for pattern in (r"\w+\s\d$", r"\w+ll\b", r"\b\u00fcber\u00e4ll\b", r"\B\u0435\u0442\b", "\u00dcBER"):
        assert get_finder(Regex(pattern)).first(text) == re.search(pattern, text, re.IGNORECASE).span()  # type: ignore[union-attr]
    assert get_finder(Regex(r"\bber")).first(text) is None
    assert get_finder(Regex("x.z")).first("a\nx\ud800z") == (2, 5)


def test_slow_expressions_have_ascii_word_boundaries() -> None:
    """If only RE2 can bound the time, word boundaries consider only ASCII letters, as documented."""
    assert get_finder(Regex(r"\w+ \w+\b")).first("one two") == (0, 7)
    assert get_finder(Regex(r"^\w+\b \w+")).first("\u00fcber\u00e4l \u00fcb") == (0, 9)
    assert get_finder(Regex(r"^\w+\b \w+")).first("\u00e9\u00e9 \u00e9") is None


@pytest.mark.parametrize(
    "pattern",
    [r"(a+)+\1", r"(?:(?=a+)a*)*b*$", "(?>a+)+a+$", r"(a)?(?(1)(b+)+)$", "(a{400}){400}b?c*d*"],
)
def test_rejects_expressions_that_could_take_forever(pattern: str) -> None:
    """An expression that no linear engine accepts, and that Python's may not finish, is rejected."""
    with pytest.raises(BadRegex, match="could take forever"):
        get_finder(Regex(pattern))


@pytest.mark.parametrize("pattern", [r"foo(?!bar)", r"(?<=x)foo", r"(\w)\1", r"(?>foo)", r"fo++b?"])
def test_python_handles_fast_lookarounds_and_references(pattern: str) -> None:
    """Lookarounds and back-references are supported if they cannot take long."""
    for line in ("xfoo bar", "foobar", "foo", "fo", ""):
        assert regex_matches(Regex(pattern), line) == (re.search(pattern, line) is not None)


def test_expressions_match_within_lines() -> None:
    """`^` and `$` are the ends of a line, and no match spans two lines."""
    text = "one\ntwo three\nfour"
    assert get_finder(Regex("^two")).first(text) == (4, 7)
    assert get_finder(Regex("three$")).first(text) == (8, 13)
    assert get_finder(Regex(r"one\s+two")).first(text) is None
    assert get_finder(Regex("^three")).first(text) is None
    assert get_finder(Regex("(t|w)+o$|(h|e)+ ")).first(text) is None
    assert get_finder(Regex("(t|w)+o ")).first(text) == (4, 8)


@given(st.integers(0, 2 * CHUNK_CHARS), st.integers(1, CHUNK_OVERLAP - 1))
def test_finds_matches_anywhere_in_a_long_line(before: int, length: int) -> None:
    """A match of up to that length is found anywhere in a long line. The end of a chunk is not the end of a line."""
    line = "-" * before + "x" * length + "-" * CHUNK_CHARS
    assert get_finder(Regex(f"-?x{{{length}}}-")).first(line) == (max(0, before - 1), before + length + 1)
    assert get_finder(Regex("x$")).first(line) is None
    assert get_finder(Regex(r"x\B.?$|-\b-")).first(line) is None
    assert get_finder(Regex("^x")).first(line) == ((0, 1) if before == 0 else None)


@pytest.mark.parametrize("pattern", [f"{'(' * 60}ab{'){2}' * 60}", f"{'(' * 60}a|b{'|c){1}' * 60}"])
def test_nested_repeats_have_a_bounded_number_of_literals(pattern: str) -> None:
    """Each repeat has its body at both ends. Sixty nested repeats must not multiply that."""
    tree = parse_regex(re.compile(pattern))
    assert _count_parts(_literal_parts(tree)) < 1_000


def test_case_is_ignored_by_default() -> None:
    """Case is ignored unless the expression ends in c, or says so itself."""
    document = Document(reply="TypeError: x")
    results = {
        text: matches(parse_query(text), document) for text in ("/typeerror/", "/typeerror/c", "/TypeError/c", "/x/i")
    }
    assert results == {"/typeerror/": True, "/typeerror/c": False, "/TypeError/c": True, "/x/i": True}
    assert not matches(parse_query("/(?-i:typeerror)/"), document)


def test_expressions_ignore_colour_codes() -> None:
    """An expression matches the visible text, without colour sequences."""
    assert regex_matches(Regex("^not ok$"), "\x1b[31mnot\x1b[0m ok")
    assert not regex_matches(Regex("31m"), "\x1b[31mnot\x1b[0m ok")
