"""Regular expressions: what Python finds is found, and nothing takes for ever."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from threadline.errors import BadQuery
from threadline.search.match import Document, matches
from threadline.search.parse import parse_query
from threadline.search.query import Regex
from threadline.search.regex import (
    CHUNK_CHARS,
    CHUNK_OVERLAP,
    Automaton,
    BadRegex,
    TimeBudget,
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


@given(_PATTERNS, _LINES, st.booleans())
@example("(a|b)*?$", "ab", True)
def test_an_automaton_finds_what_python_finds(pattern: str, line: str, exact_case: bool) -> None:
    """For every expression that it takes, the linear engine says the same as Python's."""
    assume(line or r"\B" not in pattern)  # of which versions of Python are not of one mind
    flags = re.NOFLAG if exact_case else re.IGNORECASE
    automaton = Automaton(import_module("re._parser").parse(pattern, flags), re.compile(pattern, flags).flags)
    assert (automaton.end(line, lambda: None) is not None) == (re.search(pattern, line, flags) is not None)


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
    with pytest.raises(BadQuery, match=r"not through after 0\.2 seconds; make it more exact"):
        regex_matches(Regex(f"{pattern}(?:x|y|z)"), "a" * 10_000_000 + "b!", TimeBudget(0.2))


@pytest.mark.parametrize(
    "pattern",
    [r"(a+)+\1", r"(?:(?=a+)a*)*b*$", "(?>a+)+a+$", r"(a)?(?(1)(b+)+)$", "(a{400}){400}b?c*d*", "(?:(?:){400}){400}x"],
)
def test_what_could_take_for_ever_is_refused(pattern: str) -> None:
    """An expression that no linear engine takes, and that Python may not end, is no query."""
    with pytest.raises(BadRegex, match="could take for ever"):
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
    tree = import_module("re._parser").parse(pattern)
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
