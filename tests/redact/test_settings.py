"""Custom patterns, words to hide and texts to keep. No pattern and no text makes redaction take forever."""

from __future__ import annotations

import time

import pytest
from tests.subtests import for_each

from threadline.errors import BadQuery
from threadline.redact import KINDS, Redactor, Settings


def test_custom_patterns_have_their_own_placeholders() -> None:
    """A match of a custom pattern is replaced by a placeholder with the pattern's name, the same for the same text."""
    redactor = Redactor(Settings(patterns={"ticket": r"TICK-[0-9]{3,6}"}))
    assert redactor.redact("TICK-123, TICK-77777, TICK-123") == "<ticket-1>, <ticket-2>, <ticket-1>"
    assert {finding.kind for finding in redactor.findings} == {"ticket"}


def test_hides_words_in_any_case_and_inside_other_words() -> None:
    """A word to hide is also hidden inside other words, whatever its case and alphabet."""
    redactor = Redactor(Settings(words=("Acme", "Größe")))
    assert redactor.redact("acme, ACMEcorp, my-Acme.io, die größe") == (
        "<word-1>, <word-1>corp, my-<word-1>.io, die <word-2>"
    )


def test_keeps_the_texts_listed_in_keep() -> None:
    """An exact text listed in `keep` stays, even if a rule matches it."""
    assert Redactor(Settings(keep=("ann@corp.io",))).redact("ann@corp.io bob@corp.io") == "ann@corp.io <email-1>"


def test_hides_user_and_host_names_as_whole_words() -> None:
    """User and host names from the settings are hidden as whole words, not inside other words."""
    redactor = Redactor(Settings(users=("anna",), hosts=("box7",)))
    text = redactor.redact("Anna at box7, not in annals or box77")
    assert text == "<user-1> at <host-1>, not in annals or box77"
    assert redactor.check(text) == []


@pytest.mark.parametrize(
    ("name", "pattern", "reason"),
    [
        ("a", "(", "not a valid regular expression"),
        ("a", "x*", "matches an empty text"),
        ("a", r"\s", "matches an empty text or a space"),
        ("a", "(a+)+b", "nested repeat"),
        ("a", "(a|aa)+b", "nested repeat"),
        ("a", r"(a)\1", "back reference"),
        ("a", "a.*b.*c", "Limit all but one"),
        ("a", "x" * 2000, "more than 1,000"),
        ("a", r"\w\s?" * 13 + r"\w?" * 13 + "!!!", "ways, which can take too long"),
        ("a", "[a-z]{0,64}[a-z]{0,64}[a-z]{0,64}!", "ways, which can take too long"),
        ("a", "x(?:a?(?:b|bc)(?:c|d)?)?(?:b|bc)?" + "(?:b|bc|c)" * 12, "ways, which can take too long"),
        ("Secret!", "x", "Invalid pattern name"),
        ("email", "x", "Invalid pattern name"),
    ],
)
def test_rejects_bad_patterns_with_a_reason(name: str, pattern: str, reason: str) -> None:
    """A pattern that is invalid, matches everything or could take forever is rejected with the reason."""
    with pytest.raises(BadQuery, match=reason.replace("(", r"\(")) as error:
        Redactor(Settings(patterns={name: pattern}))
    assert str(error.value).endswith(".")


UNITS = (
    *(
        "A1b2c3d4e5f6g7h8i9j0\n",
        "gh" + "p_a1\n",
        "AK" + "IA\n",
        "abc**defg",
        "a\\_b",
        "&#95;",
        "Z2hwXzEy",
        "name: password\nvalue",
    ),
    *(
        "password: |\n  ",
        "the token is ",
        "| token | ",
        " -p a1",
        "$6$a1$",
        "a:5432:b:c:",
        'a" + "b',
        "password {default=",
    ),
    *("a", "A1b2", "=", "key=", "password=", "token: ", '"password": "', "/home/", "/home/a/", "-home-a-", "@", "a@b."),
    *("-----BEGIN RSA " + "PRIVATE KEY-----\n", "-----END RSA " + "PRIVATE KEY-----\n", "://a:", "://a:b@", "1.1."),
    *("10.2.3.4 ", ":a:b::", " -u a:", "authorization: ", "cookie: a=", "gh" + "p_", "eyJ.eyJ.", "\\", '\\"', "\x1b[3"),
    *(
        "\x1b]",
        "\x1b\x1b[0m[0m",
        "%3D",
        "&sig=",
        "Q~",
        "hook",
        ".local",
        "MIIEvAIBADAN",
        "login a password ",
        "Users\\",
        "<secret-1>",
    ),
)


@pytest.mark.slow
@for_each("unit", UNITS)
def test_time_grows_linearly_with_the_text(unit: str) -> None:
    """Four times as much text takes about four times as long: less than nine times."""

    def measure_seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        best = float("inf")
        for _ in range(3):
            started = time.process_time()
            Redactor().redact(text)
            best = min(best, time.process_time() - started)
        return best

    small, large = measure_seconds(16_000), measure_seconds(64_000)
    assert large / max(small, 0.002) < 9


def test_every_kind_has_a_short_description() -> None:
    """Every kind has a description that fits into a table."""
    assert all(description and len(description) < 80 for description in KINDS.values())


def test_formats_of_the_user_are_redacted() -> None:
    """A format in the notation of the table is redacted under its name. A wrong one is refused with an example."""
    redactor = Redactor(Settings(formats={"acme": "acme_{hex:8}(-{digit:2})?"}))
    assert redactor.redact("see acme_0badf00d-42 and acme_beef") == "see <acme-1> and acme_beef"
    with pytest.raises(BadQuery, match=r"acme_\{alnum:32\}"):
        Redactor(Settings(formats={"acme": "acme_{letters:8}"}))
