"""Regular expressions: what Python finds is found, and nothing takes for ever."""

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

_ONE = st.sampled_from(
    ["a", "b", "B", "k", "é", ".", r"\d", r"\W", "[ab]", "[^a]", "[a-c1]", r"[^\w]", " ", r"\.", "中"]
)
_EMPTY = st.sampled_from(["^", "$", r"\b", r"\B", ""])
_PATTERNS = st.recursive(
    _ONE | _EMPTY,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map("".join)
        | st.lists(inner, min_size=2, max_size=3).map(lambda ways: f"(?:{'|'.join(ways)})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?"])).map(
            lambda both: f"({both[0]}){both[1]}"
        )
        | inner.map(lambda one: f"(?-i:{one})")
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
    """Every expression that RE2 takes matches where Python's engine matches it, and begins at the same place."""
    assume(line or r"\B" not in pattern)  # versions of Python disagree about this
    finder = RegexFinder(Regex(pattern, exact_case=exact_case))
    assume(line.isascii() or not finder._has_boundary)
    match = re.search(pattern, line, re.NOFLAG if exact_case else re.IGNORECASE)
    assert finder._linear is not None
    found = finder._linear.search(line)
    assert (found is not None) == (match is not None)
    assert found is None or match is None or found.start() == match.start()


@given(_PATTERNS, _LINES)
def test_an_expression_is_parsed_as_python_does(pattern: str, line: str) -> None:
    """The tree of an expression, written as an expression again, matches the same lines."""
    written = _written(parse_regex(re.compile(pattern)))
    assert (re.search(written, line) is None) == (re.search(pattern, line) is None)


def _written(nodes: Sequence) -> str:
    return "".join(map(_written_node, nodes))


def _written_node(node: Node) -> str:  # noqa: PLR0911 - one for each kind of node
    match node:
        case Literal(char):
            return re.escape(char)
        case Category(letter):
            return f"\\{letter}"
        case CharSet(members, is_negated):
            return f"[{'^' if is_negated else ''}{''.join(map(_written_member, members))}]"
        case Anchor(name):
            return name if name in "^$" else f"\\{name}"
        case Group(body, on, off):
            return f"(?{on}{f'-{off}' if off else ''}:{_written(body)})"
        case Branch(options):
            return f"(?:{'|'.join(map(_written, options))})"
        case Repeat(body, least, most, mode):
            return f"(?:{_written(body)}){{{least},{'' if most is None else most}}}{mode}"
    return "."


def _written_member(member: str | tuple[str, str] | Category) -> str:
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
def test_all_of_the_syntax_is_parsed(pattern: str, tree: list[Node]) -> None:
    """Escapes, sets, counts, groups, flags, comments, assertions and references."""
    assert list(parse_regex(re.compile(pattern))) == tree


@given(_PATTERNS, _LINES)
def test_a_match_has_the_literals_of_its_expression(pattern: str, line: str) -> None:
    """What an expression is said to spell out stands in every line that it is found in."""
    regex = Regex(pattern, exact_case=True)
    if regex_matches(regex, line):
        assert all(re.sub("\n+", "\n", literal) in f"\n{line}" for literal in required_literals(regex))


@pytest.mark.parametrize("pattern", ["[a-z]+[0-9]{3}", "[^x]+[yz]", "[ab]?", r"\s+[qz]", ".{3}[z0]", "[^b]*[bq]"])
@given(text=st.text("abxyzq01 \n", max_size=60), times=st.sampled_from([1, 7, 90]))
def test_many_lines_are_ruled_out_as_each_by_itself(pattern: str, text: str, times: int) -> None:
    """Where nothing is spelt out, lines are looked at together; what is found is what the first that has it gives."""
    finding = get_finder(Regex(pattern))
    lines = (text * times).split("\n")
    each = ((sum(len(one) + 1 for one in lines[:at]), finding.first(line)) for at, line in enumerate(lines))
    first = next(((begin + span[0], begin + span[1]) for begin, span in each if span is not None), None)
    assert finding.first(text * times) == first


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*$", "(a|aa)+$", r"(\w+\s?)+$", "a*a*a*a*b", "(.*)(.*)(.*)[^a]$", "(x?){30}b", "a+$"]
)
def test_what_takes_python_for_ever_is_found_or_given_up(pattern: str) -> None:
    """An expression that Python would work on until the sun is cold ends, with an answer or with a sentence."""
    assert regex_matches(Regex(pattern), "a" * 5_000 + "!") is (pattern in {"(.*)(.*)(.*)[^a]$", "(a|a)*$"})
    assert not regex_matches(Regex(f"{pattern}(?:x|y|z)"), "a" * 1_000_000 + "b!")
    with pytest.raises(BadQuery, match=r"did not finish within 0 seconds. Make it more specific"):
        regex_matches(Regex(f"{pattern}(?:x|y|z)"), "a" * 1_000_000 + "b!", TimeBudget(0))


def test_without_re2_only_what_is_quick_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without google-re2, Python's engine searches what cannot take long; for the rest, the message says what to do."""
    monkeypatch.setitem(sys.modules, "re2", None)
    assert RegexFinder(Regex("^t[a-z]{2}$")).first("one\ntwo three\ntwo") == (14, 17)
    with pytest.raises(Missing, match=r"pip install 'threadline\[search\]'"):
        RegexFinder(Regex("(a+)+$"))


def test_letters_beyond_ascii_are_words(engine: str) -> None:
    """Word characters, digits, spaces and word boundaries are those of Unicode, with either engine."""
    assert engine
    text = "\u043f\u0440\u0438\u0432\u0435\u0442 \u00fcber\u00e4ll\u2003\u0663"
    for pattern in (r"\w+\s\d$", r"\w+ll\b", r"\b\u00fcber\u00e4ll\b", r"\B\u0435\u0442\b", "\u00dcBER"):
        assert get_finder(Regex(pattern)).first(text) == re.search(pattern, text, re.IGNORECASE).span()  # type: ignore[union-attr]
    assert get_finder(Regex(r"\bber")).first(text) is None
    assert get_finder(Regex("x.z")).first("a\nx\ud800z") == (2, 5)


def test_a_slow_expression_knows_the_word_boundaries_of_ascii() -> None:
    """If only RE2 can bound the time, a word boundary regards ASCII letters alone as letters: as documented."""
    assert get_finder(Regex(r"\w+ \w+\b")).first("one two") == (0, 7)
    assert get_finder(Regex(r"^\w+\b \w+")).first("\u00fcber\u00e4l \u00fcb") == (0, 9)
    assert get_finder(Regex(r"^\w+\b \w+")).first("\u00e9\u00e9 \u00e9") is None


@pytest.mark.parametrize(
    "pattern",
    [r"(a+)+\1", r"(?:(?=a+)a*)*b*$", "(?>a+)+a+$", r"(a)?(?(1)(b+)+)$", "(a{400}){400}b?c*d*"],
)
def test_what_could_take_for_ever_is_refused(pattern: str) -> None:
    """An expression that no linear engine takes, and that Python may not end, is no query."""
    with pytest.raises(BadRegex, match="could take forever"):
        get_finder(Regex(pattern))


@pytest.mark.parametrize("pattern", [r"foo(?!bar)", r"(?<=x)foo", r"(\w)\1", r"(?>foo)", r"fo++b?"])
def test_what_python_does_soon_is_left_to_it(pattern: str) -> None:
    """Looking ahead and back at groups is understood as long as it cannot take long."""
    for line in ("xfoo bar", "foobar", "foo", "fo", ""):
        assert regex_matches(Regex(pattern), line) == (re.search(pattern, line) is not None)


def test_an_expression_is_looked_for_in_each_line() -> None:
    """`^` and `$` are the ends of a line, and nothing is found across two lines."""
    text = "one\ntwo three\nfour"
    assert get_finder(Regex("^two")).first(text) == (4, 7)
    assert get_finder(Regex("three$")).first(text) == (8, 13)
    assert get_finder(Regex(r"one\s+two")).first(text) is None
    assert get_finder(Regex("^three")).first(text) is None
    assert get_finder(Regex("(t|w)+o$|(h|e)+ ")).first(text) is None
    assert get_finder(Regex("(t|w)+o ")).first(text) == (4, 8)


@given(st.integers(0, 2 * CHUNK_CHARS), st.integers(1, CHUNK_OVERLAP - 1))
def test_a_long_line_is_seen_whole(before: int, length: int) -> None:
    """A match of up to that length is found wherever it stands in a long line; no end of a piece is a line's."""
    line = "-" * before + "x" * length + "-" * CHUNK_CHARS
    assert get_finder(Regex(f"-?x{{{length}}}-")).first(line) == (max(0, before - 1), before + length + 1)
    assert get_finder(Regex("x$")).first(line) is None
    assert get_finder(Regex(r"x\B.?$|-\b-")).first(line) is None
    assert get_finder(Regex("^x")).first(line) == ((0, 1) if before == 0 else None)


@pytest.mark.parametrize("pattern", [f"{'(' * 60}ab{'){2}' * 60}", f"{'(' * 60}a|b{'|c){1}' * 60}"])
def test_what_is_repeated_within_what_is_repeated_is_spelt_out_in_bounds(pattern: str) -> None:
    """Each repetition has its inside at both of its ends; sixty of them within one another have that a few times."""
    tree = parse_regex(re.compile(pattern))
    assert _count_parts(_literal_parts(tree)) < 1_000


def test_case_counts_only_when_asked() -> None:
    """Case does not count, unless the expression ends in c, or says so itself."""
    document = Document(reply="TypeError: x")
    said = {
        text: matches(parse_query(text), document) for text in ("/typeerror/", "/typeerror/c", "/TypeError/c", "/x/i")
    }
    assert said == {"/typeerror/": True, "/typeerror/c": False, "/TypeError/c": True, "/x/i": True}
    assert not matches(parse_query("/(?-i:typeerror)/"), document)


def test_colours_are_not_part_of_what_is_found() -> None:
    """An expression sees what a person saw, without the sequences that colour it."""
    assert regex_matches(Regex("^not ok$"), "\x1b[31mnot\x1b[0m ok")
    assert not regex_matches(Regex("31m"), "\x1b[31mnot\x1b[0m ok")
