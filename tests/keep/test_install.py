"""Installing: a hook in settings that people wrote, and a timer; and undoing exactly that."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.errors import Unreadable
from threadline.keep import apply, cron_line, installing, uninstalling
from threadline.keep.install import BEFORE, EVENT, hook_of, is_ours
from threadline.keep.settings_text import hooks_of, with_hook, without_hook

COMMAND = ("/opt/my tools/threadline", "keep", "--quiet", "--home", "/home/a b/50%")
HOOK = hook_of(COMMAND)
OTHER = {"matcher": "x", "hooks": [{"type": "command", "command": "echo keep"}]}
TEXTS = [
    "{}",
    "{}\n",
    "{ }",
    "{\n}\n",
    '{"model":"opus"}',
    '{"model": "opus", "env": {}}\n',
    '{\n  "model": "opus"\n}\n',
    '{\n    "model": "opus",\n    "env": {\n        "A": "{\\"hooks\\": 1}"\n    }\n}',
    '{\n\t"model": "opus",\n\t"hooks": {}\n}\n',
    '{\r\n  "model": "opus"\r\n}\r\n',
    '{"hooks": {"Stop": [{"hooks": []}]}}',
    f'{{"hooks": {{"{EVENT}": []}}}}',
    f'{{\n  "hooks": {{\n    "{EVENT}": [\n      {json.dumps(OTHER)}\n    ]\n  }},\n  "z": 1.50\n}}\n',
    f'{{"hooks": {{"{EVENT}": [{json.dumps(OTHER)}], "Stop": []}}, "numbers": [1e3, -0.0, 1E400]}}',
    '  {"a": 1, "a": 2, "hooks": {}}  ',
    '{"name": "caf\u00e9 \\u00e9 \\ud83d\\ude00", "x": "\u2028"}',
]


def _with(text: str) -> str:
    return with_hook(text, EVENT, HOOK)


@pytest.mark.parametrize("text", TEXTS)
def test_a_hook_is_put_in_and_nothing_else_is_touched(text: str) -> None:
    """The value is the old one and the hook; every old byte, but for space in empty brackets, is there in order."""
    made = _with(text)
    told: Any = json.loads(made)
    assert told["hooks"][EVENT][-1] == HOOK
    before: Any = json.loads(text)
    told["hooks"][EVENT].pop()
    if not told["hooks"][EVENT] and EVENT not in before.get("hooks", {}):
        del told["hooks"][EVENT]
    if not told["hooks"] and "hooks" not in before:
        del told["hooks"]
    assert told == before
    rest = iter(made)
    assert all(sign in rest for sign in text.replace(" ", "").replace("\n", "").replace("\r", ""))


@pytest.mark.parametrize("text", TEXTS)
def test_taking_the_hook_out_leaves_the_same_settings(text: str) -> None:
    """Whatever else was changed since: what is left says what was said before, but for what is empty."""
    left: Any = json.loads(without_hook(_with(text), EVENT, is_ours))
    before: Any = json.loads(text)
    for value in (left, before):
        value.get("hooks", {}).pop(EVENT, None) if not value.get("hooks", {}).get(EVENT) else None
        value.pop("hooks", None) if not value.get("hooks") else None
    assert left == before


@pytest.mark.parametrize("text", [text for text in TEXTS if "\n" in text.strip()])
def test_lines_are_written_as_the_others_are(text: str) -> None:
    """With the same indentation and the same ends of lines."""
    made = _with(text)
    assert ("\r\n" in made) == ("\r\n" in text)
    assert made.replace("\r\n", "").count("\r") == 0
    unit = "\t" if "\t" in text else "    " if '\n    "model"' in text else "  "
    assert f"\n{unit * 3}{{" in made.replace("\r\n", "\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        '{"hooks": 3, "hooks": {}}',
        '{"a": 1,}',
        '// mine\n{"a": 1}',
        '{"hooks": []}',
        f'{{"hooks": {{"{EVENT}": {{}}}}}}',
        "{",
    ],
)
def test_what_is_not_what_claude_code_reads_is_left_alone(text: str) -> None:
    """Comments, half of it, lists where objects belong: nothing is guessed."""
    with pytest.raises(Unreadable):
        _with(text)


_SETTINGS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


@given(
    settings=st.dictionaries(st.text(max_size=6).filter(lambda name: name != "hooks"), _SETTINGS, max_size=4),
    hooks=st.none()
    | st.dictionaries(st.sampled_from(["Stop", EVENT]), st.lists(st.just(OTHER), min_size=1, max_size=2)),
    indent=st.sampled_from([None, 1, 2, 4, "\t"]),
    first=st.booleans(),
)
def test_any_settings_come_back_byte_for_byte(
    settings: dict[str, Any], hooks: dict[str, Any] | None, indent: Any, first: bool
) -> None:
    """Where nothing was empty before, taking the hook out gives the very text back."""
    own = {"hooks": hooks} if hooks else {}
    text = json.dumps({**own, **settings} if first else {**settings, **own}, indent=indent)
    made = _with(text)
    assert len(hooks_of(made, EVENT)) == len((hooks or {}).get(EVENT, ())) + 1
    assert without_hook(made, EVENT, is_ours) == (text if settings or own else text.replace(" ", ""))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def _state(folder: Path) -> dict[str, tuple[bytes | str, int]]:
    return {
        str(path.relative_to(folder)): (
            str(path.readlink()) if path.is_symlink() else path.read_bytes(),
            path.lstat().st_mode,
        )
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("text", [None, "", *TEXTS, "\ufeff" + TEXTS[7]])
def test_uninstalling_undoes_exactly_what_installing_did(home: Path, tmp_path: Path, text: str | None) -> None:
    """Files, bytes, modes: all is as before; and installing twice is installing once."""
    if text is not None:
        (home / "settings.json").write_bytes(text.encode())
        (home / "settings.json").chmod(0o640)
    before = _state(tmp_path)
    apply(installing([home], COMMAND, tmp_path / "systemd/user"))
    said = (home / "settings.json").read_bytes().decode().removeprefix("\ufeff")
    assert [one for one in hooks_of(said, EVENT) if is_ours(one)] == [HOOK]
    if text is not None:
        assert (home / f"settings.json{BEFORE}").read_bytes() == text.encode()
        assert (home / "settings.json").stat().st_mode & 0o777 == 0o640
    assert installing([home], COMMAND, tmp_path / "systemd/user") == []
    apply(uninstalling([home], tmp_path / "systemd/user"))
    assert _state(tmp_path) == before
    assert not (tmp_path / "systemd").exists()
    assert uninstalling([home], tmp_path / "systemd/user") == []


def test_settings_that_changed_since_lose_the_hook_alone(home: Path) -> None:
    """What the person added meanwhile stays, byte for byte."""
    (home / "settings.json").write_text('{\n  "model": "opus"\n}\n')
    apply(installing([home], COMMAND, None))
    now = (home / "settings.json").read_text()
    (home / "settings.json").write_text(now.replace('"opus"', '"sonnet",\n  "mine": [1,2]'))
    apply(uninstalling([home], home / "none"))
    assert (home / "settings.json").read_text() == '{\n  "model": "sonnet",\n  "mine": [1,2]\n}\n'
    assert [path.name for path in home.iterdir()] == ["settings.json"]


def test_settings_that_are_a_link_stay_one(home: Path, tmp_path: Path) -> None:
    """People link them from elsewhere: what they lead to is changed."""
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles/claude.json").write_text("{}")
    (home / "settings.json").symlink_to(tmp_path / "dotfiles/claude.json")
    apply(installing([home], COMMAND, None))
    assert (home / "settings.json").is_symlink()
    assert HOOK in hooks_of((tmp_path / "dotfiles/claude.json").read_text(), EVENT)


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe{\x00}\x00", b"// c\n{}"])
def test_settings_that_cannot_be_read_are_told_and_left_alone(home: Path, data: bytes) -> None:
    """Why, and what to do; the timer is written all the same."""
    (home / "settings.json").write_bytes(data)
    writes = installing([home], COMMAND, home / "units")
    assert [write.path.name for write in writes if write.wrong and "by hand" in write.wrong] == ["settings.json"]
    apply(writes)
    assert (home / "settings.json").read_bytes() == data
    assert (home / "units/threadline-keep.timer").exists()


def test_what_changes_between_looking_and_writing_is_not_overwritten(home: Path) -> None:
    """A sentence; nothing is lost."""
    (home / "settings.json").write_text("{}")
    writes = installing([home], COMMAND, None)
    (home / "settings.json").write_text('{"new": 1}')
    with pytest.raises(Unreadable, match="changed just now"):
        apply(writes)
    assert (home / "settings.json").read_text() == '{"new": 1}'


def test_units_that_somebody_else_wrote_are_left_alone(home: Path) -> None:
    """Uninstalling takes away only what installing wrote."""
    (home / "threadline-keep.timer").write_text("[Timer]\n")
    (told,) = uninstalling([], home)
    assert told.wrong is not None
    apply([told])
    assert (home / "threadline-keep.timer").exists()


def test_commands_are_quoted_for_whoever_reads_them(home: Path) -> None:
    """A shell, cron and systemd each have rules of their own for spaces and percent signs."""
    line = HOOK["hooks"][0]["command"]
    words = shlex.split(line.removeprefix("nohup ").split(" >/dev/null")[0])
    assert words == [*COMMAND]
    assert r"50\%" in cron_line(COMMAND)
    apply(installing([], COMMAND, home))
    service = (home / "threadline-keep.service").read_text()
    assert 'ExecStart="/opt/my tools/threadline" keep --quiet --home "/home/a b/50%%"\n' in service
