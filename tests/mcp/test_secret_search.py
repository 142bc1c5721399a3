"""Secrets that only another line of a session reveals are removed from the first answer, however large it is."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from tests.redact.credentials import password, seeded
from tests.redact.structures import STRUCTURES
from tests.transcripts import Pen, Writer, call, prompt, reply, transcript, write

import threadline
from threadline.mcp import Answers, SecretSearch, list_words, surroundings
from threadline.model.places import Place
from threadline.redact import Settings

SESSION = "5e551011-0000-4000-8000-00000000000a"
SECRET = password(seeded(19))


def search_of(*texts: str, path: Path, learn_at_once: int = 0) -> SecretSearch:
    """A search of a transcript that contains these texts as replies."""
    rows = transcript(prompt("Begin"), *map(reply, texts), pen=Pen(session=SESSION))
    write(path, *rows)
    return SecretSearch(Settings(), learn_at_once)


def test_first_answer_about_a_large_session(tmp_path: Path) -> None:
    """It contains hardly more of what another line reveals than an answer after a complete search.

    Each of many structures names a password once; the last turn quotes the passwords without their names.
    """
    structures = STRUCTURES[::5]
    secrets = [password(seeded(7000 + number)) for number in range(len(structures))]
    parts: list[Writer] = [prompt("Begin")]
    for number, (structure, secret) in enumerate(zip(structures, secrets, strict=True)):
        text = structure.replace("{}", secret)
        parts += [call("Bash", "look", f"number {number}"), (prompt, reply)[number % 2](text)]
    parts += [prompt("Which ones?"), reply("\n".join(f"Try {secret} again." for secret in secrets))]
    write(tmp_path / f"projects/-work-app/{SESSION}.jsonl", *transcript(*parts, pen=Pen(session=SESSION)))

    def leaked(learn_at_once: int) -> set[str]:
        answers = Answers(partial(threadline.open, tmp_path), None, Settings(), learn_at_once=learn_at_once)
        turn = next(row.turns for row in answers.recent_sessions())
        answer = answers.session(SESSION, turn=turn, max_tokens=16_000)
        assert "Which ones?" in answer
        assert "cut" not in answer
        return {secret for secret in secrets if secret in answer}

    assert len(leaked(0) - leaked(1 << 30)) <= len(secrets) * 0.01


def test_words_that_could_be_secrets() -> None:
    """Not the words of sentences, dates and ids; of paths and assignments only the parts that could be one."""
    assert list_words(["It was decided on 2026-11-03, in README by Ann."]) == []
    assert list_words([f"session {SESSION} of /home/ann/app"]) == []
    assert list_words(["x=vK7-quiet-horse, (p@ssword)"]) == [b"vK7-quiet-horse", b"p@ssword"]
    assert len(list_words(f"word{number}" for number in range(5000))) == 1000


def test_surroundings() -> None:
    """The text before and after the first occurrences of a word, without escapes. Frequent words end early."""
    data = rb'{"text":"the password:\n\tvK7-quiet"}' + b"." * 2000 + b"caf\\u00e9 vK7-quiet" + b"word-1 " * 5000
    first, second = surroundings(data, [b"vK7-quiet", b"word-1"])
    assert first.startswith("{\nthe password:\n\tvK7-quiet\n")
    assert "café vK7-quiet" in second
    assert second.count("word-1") < 100


def test_part_that_was_added(tmp_path: Path) -> None:
    """Lines that were written after the search of a transcript are searched; also if a file was written again."""
    path = tmp_path / f"projects/-work-app/{SESSION}.jsonl"
    search = search_of("Nothing", path=path, learn_at_once=1 << 20)
    search.learn_session([str(path)])
    assert SECRET in search.redact(f"Try {SECRET}.")
    with path.open("ab") as file:
        file.write(path.read_bytes().splitlines(keepends=True)[-1].replace(b"Nothing", f"password = {SECRET}".encode()))
    search.learn_words({str(path): [f"Try {SECRET}."]})
    assert SECRET not in search.redact(f"Try {SECRET}.")
    other = password(seeded(20))
    write(path, *transcript(reply(f"password = {other}")))
    search.learn_session([str(path)])
    assert other not in search.redact(f"Try {other}.")


@pytest.mark.parametrize("is_grown", [False, True])
def test_transcript_that_was_rewritten(tmp_path: Path, is_grown: bool) -> None:
    """It is searched again: also if it has the same size, inode and mtime as before, or was written longer."""
    path = tmp_path / f"projects/-work-app/{SESSION}.jsonl"
    search = search_of("x" * 40, "Nothing", path=path, learn_at_once=1 << 20)
    search.learn_session([str(path)])
    status = path.stat()
    told = f"password = {SECRET}"
    data = path.read_bytes().replace(b"x" * 40, told.encode().ljust(40, b"."))
    assert len(data) == status.st_size
    path.write_bytes(data.replace(b"Nothing", b"Nothing at all.") if is_grown else data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    search.learn_words({str(path): [f"Try {SECRET}."]})
    assert SECRET not in search.redact(f"Try {SECRET}.")


@pytest.mark.parametrize("end", ["", "\n"])
def test_everything_is_searched_in_the_end(tmp_path: Path, end: str) -> None:
    """In small steps, and the last line as well, if it is complete or not."""
    path = tmp_path / f"projects/-work-app/{SESSION}.jsonl"
    search = search_of(*("word " * 20_000 for _ in range(4)), f"password = {SECRET}", path=path)
    path.write_bytes(path.read_bytes().rstrip(b"\n") + end.encode())
    search.learn_session([str(path)])
    steps = 1
    while search.learn_more(0.001):
        steps += 1
    assert steps > 1
    assert SECRET not in search.redact(f"Try {SECRET}.")
    assert not search.learn_more()


def test_files_that_are_gone(tmp_path: Path) -> None:
    """A transcript that was deleted is not an error."""
    search = SecretSearch(Settings(), 0)
    search.learn_session([str(tmp_path / "gone.jsonl")])
    search.learn_words({str(tmp_path / "gone.jsonl"): ["vK7-quiet-horse"]})
    search.learn_places([Place(str(tmp_path / "gone.jsonl"), 1, 0, 100)])
    assert not search.learn_more()


def test_without_redaction(tmp_path: Path) -> None:
    """Nothing is read."""
    search = SecretSearch(None, 0)
    search.learn_session([str(tmp_path)])
    search.learn_words({str(tmp_path): ["vK7-quiet-horse"]})
    search.learn_lines([b"x"])
    assert search.redact(SECRET) == SECRET


@pytest.mark.parametrize("learn_at_once", [0, 1 << 30])
def test_output_that_was_quoted_before_its_command_was_searched(tmp_path: Path, learn_at_once: int) -> None:
    """A search quotes the output of a command; then the whole session is searched. Its output is known as a secret."""
    path = tmp_path / f"projects/-work-app/{SESSION}.jsonl"
    secret = f"quietmoonhorse{77}"
    ask, result = transcript(call("Bash", "pass show prod/db", secret), pen=Pen(session=SESSION))
    fillers = transcript(*(reply(f"Filler {number}.") for number in range(10)), pen=Pen(session=SESSION))
    write(path, ask, *fillers, result)
    lines = path.read_bytes().splitlines(keepends=True)
    search = SecretSearch(Settings(), learn_at_once)
    search.learn_places([Place(str(path), len(lines), sum(map(len, lines[:-1])), len(lines[-1]))])
    search.learn_session([str(path)])
    while search.learn_more():
        pass
    assert secret not in search.redact(f"Try {secret} again.")


def test_line_that_is_nested_too_deep(tmp_path: Path) -> None:
    """A line that cannot be decoded is searched as text, and does not end the search."""
    path = tmp_path / f"projects/-work-app/{SESSION}.jsonl"
    search = search_of(f"DB_PASSWORD={SECRET}", path=path, learn_at_once=1 << 30)
    path.write_bytes(b"[" * 200_000 + b"\n" + path.read_bytes())
    search.learn_session([str(path)])
    assert SECRET not in search.redact(f"Try {SECRET} again.")
