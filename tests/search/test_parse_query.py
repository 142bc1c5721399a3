"""Examples: queries as people type them, and what they find."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from tests.search.queries import NOW, by_plan
from tests.subtests import for_each

from threadline.search.match import Document, matches
from threadline.search.query import And, Cost, Has, Is, Not, Or, Regex, Text, When, parse_query, split_camel_case
from threadline.search.ranking import make_plan


def finds(query: str, document: Document) -> bool:
    """Whether a query finds a document. Full text and a scan must agree."""
    tree = parse_query(query, now=NOW)
    by_scan = matches(tree, document)
    assert (by_plan(tree, [document]) == {0}) == by_scan, query
    return by_scan


@for_each(
    "query, text, expected",
    [
        ("snake_case", "def snake_case():", True),
        ("snake_case", "a case of snake", False),
        ("foo.bar", "x.foo.bar()", True),
        ("src/app.py", "/home/me/src/app.py:12", True),
        ("--dry-run", "run it with --dry-run", True),
        ("--dry-run", "dry it, then run", False),
        ("E404", "failed with e404", True),
        ("E404", "e 404", False),
        ("parseTimestamp", "parsetimestamp(x)", True),
        ("parseTimestamp", "parse the timestamp", False),
        ("parseTimestamp", "parse_timestamp(x)", True),
        ("parseTimestamp", "we parse timestamps", False),
        ("parseTime*", "we parse timestamps", True),
        ("parse timestamp", "parseTimestamp(x)", True),
        ("parse timestamp", "the timestamp that we parse", True),
        ("parse timestamp zone", "zone of parseTimestamp", True),
        ('"parse timestamp"', "parseTimestamp(x)", False),
        ('"parseTimestamp"', "parse timestamp", False),
        ("parse -timestamp", "parseTimestamp", False),
        ("HTTPServer", "the http server", True),
        ("http server", "class HTTPServer", True),
        ("数据库", "连接数据库失败", True),
        ("数据库", "数据的库", False),
        ("库失", "连接数据库失败", True),
        ("検索index", "全文検索Index", True),
        ("한국어", "이것은 한국어입니다", True),
        ("cafe", "CAFÉ", True),
        ("CAFÉ", "cafe\u0301", True),
        ("ГОРОД", "город", True),
        ("depl*", "deployment", True),
        ("depl", "deployment", False),
        ('"roll ba"*', "we roll backwards", True),
        ('"roll ba"*', "backwards roll", False),
        ("foo OR bar baz", "foo", True),
        ("(foo OR bar) baz", "foo", False),
        ("-(foo bar)", "foo", True),
        ("a -b", "a", True),
        ("/usr/local/bin", "ls /usr/local/bin", True),
        ("/compact", "typed /compact here", True),
        ("/fo+ b/", "fooo bar", True),
        (r"/usr\/bin/", "/usr/bin/env", True),
        ("TypeError: cannot read", "TypeError: cannot read property", True),
        ("http://host/path", "see http://host/path", True),
        ("std::string", "a std::string", True),
        ("12:30", "at 12:30", True),
        (r"\-v", "with -v", True),
        (r"foo\ bar", "foo bar", True),
        (r"foo\ bar", "bar foo", False),
        (r"\OR", "this or that", True),
        ("NEAR", "near", True),
    ],
)
def test_finds_text_as_people_type_it(query: str, text: str, expected: bool) -> None:
    """Code, prose and scripts without spaces are found as people type them."""
    assert finds(query, Document(prompt=text)) is expected


FULL_DOCUMENT = Document(
    title="Fix the deployment",
    prompt="why does it fail",
    reply="because of timeout",
    path="/srv/app/src/my file.py\n/srv/app/README.md",
    command="make deploy",
    result="Error: timeout after 30 s",
    tool=("Bash",),
    project="/srv/App",
    branch="feature/login",
    model="claude-opus-4-5",
    agent=("a1b2c3", "Explore"),
    session="0123abcd-4567",
    kind="user",
    version="2.1.7",
    timestamp=datetime(2026, 11, 14, 23, 30, tzinfo=UTC),
    failed=True,
    cost=Decimal("1.50"),
)


@for_each(
    "query, expected",
    [
        ("title:deployment", True),
        ("prompt:deployment", False),
        ("prompt:fail reply:timeout", True),
        ("reply:fail", False),
        ('file:"my file.py"', True),
        ("file:src/my", True),
        ("file:deploy", False),
        (r"file:/\.md$/", True),
        ("command:make", True),
        ("thinking:timeout", False),
        ("tool:bash", True),
        ("tool:Ba", False),
        ("tool:Ba*", True),
        ("tool:/^b.sh$/", True),
        ("-tool:Bash", False),
        ("error:timeout", True),
        ("error:nothing", False),
        ("error:*", True),
        ("error:yes", True),
        ("error:no", False),
        ('error:"no"', False),
        ("error:/after \\d+/", True),
        ("project:app", True),
        ("project:/srv/app", True),
        ("project:srv*", False),
        ("project:/srv*", True),
        ("branch:login", True),
        ("model:opus", True),
        ("model:sonnet", False),
        ("agent:explore", True),
        ("agent:a1b2", True),
        ("agent:sub", True),
        ("agent:main", False),
        ("session:0123", True),
        ("session:4567", False),
        ("kind:user", True),
        ("kind:use", False),
        ("version:2.1", True),
        ("version:2", True),
        ("version:2.1.70", False),
        ("version:2.1.7", True),
        ("version:2.1.*", True),
        ("since:yesterday", True),
        ("since:today", False),
        ("until:2026-11-14", True),
        ("until:2026-11-13", False),
        ('since:"last month" until:now', True),
        ("since:12h", False),
        ("since:13h", True),
        ("until:13h", True),
        ("until:14h", False),
        ("cost:>1", True),
        ("cost:>1.5", False),
        ("cost:>=1.50", True),
        ("cost:<$2", True),
        ("cost:=1.5", True),
        ("cost:=2", False),
        ("deployment OR cost:>100", True),
        ("-deployment OR tool:Bash", True),
        ("(zzz OR project:app) -(timeout tool:Edit)", True),
        ("PROMPT:fail", True),
    ],
)
def test_fields_match_their_own_values(query: str, expected: bool) -> None:
    """Each field matches only its own values."""
    assert finds(query, FULL_DOCUMENT) is expected


def test_versions_match_by_whole_numbers() -> None:
    """`2.1` is no beginning of 2.10."""
    assert finds("version:2.10", Document(prompt="x", version="2.10.3"))
    assert not finds("version:2.1", Document(prompt="x", version="2.10.3"))


@pytest.mark.parametrize("query", ["cost:<1", "since:2020", "model:x", "agent:sub", "error:*", "tool:*"])
def test_unknown_values_match_no_comparison(query: str) -> None:
    """An entry without a price, a time or a model is neither above nor below. The negation finds it."""
    query = query.replace("2020", "2020-01-01")
    assert not finds(query, Document(prompt="x"))
    assert finds(f"-{query}", Document(prompt="x"))


def test_parses_a_query_into_a_tree() -> None:
    """OR binds more loosely than adjacency. Parentheses and minus bind tightest."""
    assert parse_query('a b OR -"c d" (e OR f*)') == Or(
        (And((Text("a"), Text("b"))), And((Not(Text("c d", phrase=True)), Or((Text("e"), Text("f", prefix=True))))))
    )
    assert parse_query("(((a)))") == Text("a")
    assert parse_query("-(-a)") == Text("a")
    assert parse_query("tool:mcp__* error:* cost:>=0.1") == And(
        (Is("tool", "mcp__", prefix=True), Has("error"), Cost(">=", Decimal("0.1")))
    )
    assert parse_query("prompt:/a b/c") == Regex("a b", "prompt", exact_case=True)


def test_days_are_days_in_the_given_zone() -> None:
    """A day in a query begins and ends in the zone that is passed."""
    tree = parse_query("since:2026-11-14 until:2026-11-14", zone=ZoneInfo("Asia/Kolkata"))
    assert tree == And(
        (
            When("since", datetime(2026, 11, 13, 18, 30, tzinfo=UTC)),
            When("until", datetime(2026, 11, 14, 18, 29, 59, 999999, tzinfo=UTC)),
        )
    )


@pytest.mark.parametrize(
    ("query", "match", "has_rest"),
    [
        ("foo", '"foo"', False),
        ("foo tool:Bash", '"foo"', True),
        ("-foo", None, True),
        ("tool:Bash", None, True),
        ("foo OR tool:Bash", None, True),
        ("/x foo bar/", '"foo bar"*', True),
        ("/^foo +bar/", '("foo" AND "bar"*)', True),
        ("/foo/", None, True),
        ("result:/ foo /", '{result}:"foo"', True),
        ("/数据库/", '"数 据 库"', True),
        ("/ foo / OR / bar /", '("foo" OR "bar")', True),
        ("/ foo / OR /bar/", None, True),
        ("error:foo", '"foo"', True),
    ],
)
def test_full_text_narrows_the_search(query: str, match: str | None, has_rest: bool) -> None:
    """Words go to full text, including those that a regular expression spells out."""
    plan = make_plan(parse_query(query))
    assert (plan.match, plan.rest is not None) == (match, has_rest)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("parseTimestamp", "parse Timestamp"),
        ("HTTPServer", "HTTP Server"),
        ("getURL", "get URL"),
        ("utf8Decode", "utf8 Decode"),
        ("SHA256Sum", "SHA256 Sum"),
        ("E404", "E404"),
        ("B2B", "B2B"),
        ("Word", "Word"),
        ("WORD", "WORD"),
        ("snake_case", "snake_case"),
        ("größeÄndern", "größe Ändern"),
    ],
)
def test_splits_camel_case(name: str, parts: str) -> None:
    """A name is split before a capital that follows a small letter, and before the last of several capitals."""
    assert split_camel_case(name) == parts
