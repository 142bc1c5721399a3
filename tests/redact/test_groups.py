"""Records are searched many at once: the result is that of searching them one by one."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.redact.planted import cases, github, letters

from threadline.redact import SessionRedactor
from threadline.redact.views import complete_views

_RANDOM = Random(17)  # noqa: S311 - made-up secrets
TOKEN = github(_RANDOM)
VALUE = letters(_RANDOM, 18)


def message(text: str) -> dict[str, Any]:
    """A prompt."""
    return {"type": "user", "message": {"role": "user", "content": text}}


def redacted(records: list[dict[str, Any]]) -> str:
    """The redacted records as JSON, with learning and redacting many at once."""
    redactor = SessionRedactor()
    redactor.learn_all(records)
    return json.dumps([record for record, _is_safe in redactor.redact_all((record, "") for record in records)])


def escape(text: str) -> str:
    """The text in escapes of a program."""
    return "".join(f"\\x{ord(character):02x}" for character in text)


def test_secrets_are_found_among_many_records() -> None:
    """In one session with all planted cases, whose records are searched at once, every secret is removed."""
    planted = cases(variants=1)
    together = redacted([row for case in planted for row in case.rows])
    assert [case.name for case in planted if any(trace in together for trace in case.traces)] == []


def test_known_secret_in_a_long_text_is_removed_from_its_views() -> None:
    """A long text in which the rules find nothing is still searched for known secrets, also for encoded ones."""
    text = "some words\n" * 400 + escape("plain text") + "\n" + escape(VALUE) + "\n" + "more words\n" * 40
    records = [message(text), message(f"DB_PASSWORD={VALUE}")]
    assert escape(VALUE) not in json.loads(redacted(records))[0]["message"]["content"]
    redactor = SessionRedactor()
    redactor.learn_all(records)
    assert escape(VALUE) not in redactor.redactor.redact(text)  # not as part of a record


def test_a_record_with_very_many_views_hides_nothing_in_others() -> None:
    """If a group has more encoded text than is decoded, each of its records is searched by itself."""
    nested = "some encoded words"
    for _ in range(4):
        nested = b64encode(f"{nested} \\x61\\x62 a%20b".encode()).decode()
    full = "\n".join(f"{nested} {escape('words')} \x1b[1mw\x1b[0m" for _ in range(1500))
    group = "\n\n\n\n".join((full, escape(TOKEN)))
    assert complete_views(group)[1] is False
    assert escape(TOKEN) not in json.loads(redacted([message(full), message(escape(TOKEN))]))[1]["message"]["content"]


def test_a_written_line_is_safe_until_something_is_learned() -> None:
    """A line that was searched is not searched again, unless there is a new secret to look for."""
    redactor = SessionRedactor()
    record = message(f"the word is {VALUE[:10].lower()} here")
    redactor.learn_all([record])
    ((copy, is_safe),) = redactor.redact_all([(record, "")])
    line = json.dumps(copy).encode()
    assert is_safe
    assert not redactor.is_safe(line)
    redactor.note_safe(line)
    assert redactor.is_safe(line)
    redactor.learn(message(f"API_TOKEN={TOKEN}"))
    assert not redactor.is_safe(line)
    assert list(redactor.find_suspects([copy, message(TOKEN)])) == [message(TOKEN)]


def test_lines_that_are_not_json_do_not_pile_up() -> None:
    """A file of any size without a record is redacted as it is read: only a group of its lines is in memory."""
    taken: list[int] = []

    def lines() -> Iterator[tuple[str, str]]:
        for number in range(2000):
            taken.append(number)
            yield f"line {number} " + "x " * 500, ""

    next(SessionRedactor().redact_all(lines()))
    assert len(taken) < 1000
