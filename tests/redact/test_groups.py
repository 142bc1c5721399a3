"""Records are searched many at once: the result is that of searching them one by one."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.redact.planted import cases, github, letters

from threadline.redact import SessionRedactor, Settings
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


def test_a_known_secret_is_removed_from_records_that_were_searched_without_finding_anything() -> None:
    """A record whose texts tell no secret may still contain one that another record tells, plain or encoded."""
    records: list[dict[str, Any]] = [
        {"type": "user", "cwd": "/work", "message": {"content": f"see {VALUE} there"}},
        {"type": "user", "cwd": "/work", "message": {"content": [{"type": "text", "text": f"see {escape(VALUE)}"}]}},
        {"type": "user", "cwd": "/work", "other": {f"{VALUE}": 1}},
        {"type": "user", "cwd": "/work", "uuid": "0", "sessionId": "Ann-Example"},
        message(f"DB_PASSWORD={VALUE}"),
    ]
    text = redacted(records)
    assert VALUE not in text
    assert escape(VALUE) not in json.dumps(json.loads(text), ensure_ascii=False).replace("\\\\", "\\")


def test_an_encoded_known_secret_is_reported_where_it_is() -> None:
    """The finding of a known secret that a short text contains in escapes names the field of the text."""
    records = [message(f"DB_PASSWORD={VALUE}"), message(f"see {escape(VALUE)}")]
    redactor = SessionRedactor()
    redactor.learn_all(records)
    list(redactor.redact_all((record, str(at)) for at, record in enumerate(records)))
    assert [finding.place for finding in redactor.findings] == ["0.message.content", "1.message.content"]


def test_a_word_of_the_settings_is_removed_from_ids() -> None:
    """An id is in no text of a record, but is searched for the user's own words."""
    session = "5e550000-0000-4000-8000-00000badcafe"
    redactor = SessionRedactor(Settings(words=("BadCafe",)))
    record = {"type": "user", "sessionId": session, "message": {"content": "plain words"}}
    redactor.learn_all([record])
    assert redactor.redact(record)["sessionId"] == session.replace("badcafe", "<word-1>")


def test_records_with_something_only_in_their_own_fields_are_not_redacted_text_by_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nearly every record contains the path of a home in `cwd`. Its other texts are left as they are."""
    records = [
        {"type": "user", "cwd": "/home/ann/app", "message": {"content": [{"type": "text", "text": f"words {at}"}]}}
        for at in range(20)
    ]
    expected = [{**record, "cwd": "<home>/app"} for record in records]
    redactor = SessionRedactor()
    redactor.learn_all(records)
    monkeypatch.setattr(redactor.redactor, "redact_record", None)
    assert [record for record, _is_safe in redactor.redact_all((record, "") for record in records)] == expected
    assert [(finding.kind, finding.placeholder) for finding in redactor.findings] == [("home", "<home>")]


@pytest.mark.parametrize(
    "record",
    [
        {"type": "user", "message": {"content": {"pin": 482913}}},
        {"type": "user", "message": {"content": {"name": "db_password", "value": 48291357}}},
        {"type": "user", "message": {"content": ({"password": VALUE},)}},
    ],
)
def test_unusual_records_are_redacted_text_by_text(record: dict[str, Any]) -> None:
    """A number that is a password, and values that are not JSON, are not left as they are."""
    redactor = SessionRedactor()
    redactor.learn_all([record])
    left = json.dumps(redactor.redact(record))
    assert not any(value in left for value in (VALUE, "482913", "48291357"))
