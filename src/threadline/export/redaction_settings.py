"""Load what to hide in an export: the user's words and patterns and this machine's names.

Words of Claude Code's own format are never hidden, because the file could not be read without them. Words in
threadline's own output (labels, anchors such as L120) are not reported as leaks.
"""

from __future__ import annotations

import getpass
import platform
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from threadline.errors import BadQuery, NotFound, Unreadable
from threadline.files import REDACTION, read_file, settings_file
from threadline.redact import GENERIC_USER_NAMES, Level, Settings, word_set

_LIST_KEYS = ("words", "keep", "users", "hosts")
_MIN_HOST_LENGTH = 4
_MIN_WORD_LENGTH = 2
_MAX_FILE_SIZE = 64_000_000


def user_settings_file() -> Path:
    """The path of the user's settings, which apply to every export."""
    return settings_file(REDACTION)


def load_settings(
    words: Iterable[str] = (),
    lists: Iterable[Path] = (),
    files: Iterable[Path] = (),
    level: Level | None = None,
) -> Settings:
    """Combine words, word lists and settings files with the user's own settings.

    Without a `level`, that of the last file that has one applies.

    Raises:
        NotFound: a file does not exist.
        BadQuery: a file is invalid.
    """
    user_file = user_settings_file()
    parts = [_read_settings(path) for path in (*([user_file] if user_file.is_file() else []), *files)]
    lines = [line.strip() for path in lists for line in _read_text(path).splitlines() if line.strip()]
    hidden = [*words, *lines, *(word for part in parts for word in part.words)]
    for word in hidden:
        if len(word.strip()) < _MIN_WORD_LENGTH:
            raise BadQuery(f"The word {word!r} is too short to hide. Use at least {_MIN_WORD_LENGTH} characters.")
    levels = [part.level for part in parts if part.level is not Level.STANDARD]
    settings = Settings(
        level=level or (levels[-1] if levels else Level.STANDARD),
        patterns={name: pattern for part in parts for name, pattern in part.patterns.items()},
        formats={name: text for part in parts for name, text in part.formats.items()},
        words=tuple(dict.fromkeys(hidden)),
        keep=tuple(word for part in parts for word in part.keep),
        users=tuple(dict.fromkeys([*(name for part in parts for name in part.users), *_user_names()])),
        hosts=tuple(dict.fromkeys([*(name for part in parts for name in part.hosts), *_host_names()])),
    )
    settings.compile_patterns()  # report an invalid pattern before any work is done
    return settings


def _read_settings(path: Path) -> Settings:
    try:
        values = tomllib.loads(_read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise BadQuery(f"{str(path)!r} is not TOML: {error}.") from None
    unknown = sorted(set(values) - {*_LIST_KEYS, "patterns", "formats", "level"})
    if unknown:
        keys = ", ".join((*_LIST_KEYS, "level"))
        raise BadQuery(f"Unknown key {unknown[0]!r} in {str(path)!r}. Keys: {keys}, [patterns] and [formats].")
    level = values.get("level", Level.STANDARD)
    if level not in list(Level):
        raise BadQuery(f"Unknown level {level!r} in {str(path)!r}. Levels: {', '.join(Level)}.")
    lists: dict[str, Any] = {name: tuple(_check_strings(values.get(name, []), path, name)) for name in _LIST_KEYS}
    patterns = values.get("patterns", {})
    if not isinstance(patterns, dict) or not all(isinstance(pattern, str) for pattern in patterns.values()):
        raise BadQuery(f"[patterns] in {str(path)!r} must be names and regular expressions: ticket = 'TICK-[0-9]+'.")
    formats = values.get("formats", {})
    if not isinstance(formats, dict) or not all(isinstance(text, str) for text in formats.values()):
        raise BadQuery(f"[formats] in {str(path)!r} must be names and token formats: acme = 'acme_{{alnum:32}}'.")
    return Settings(patterns=patterns, formats=formats, level=Level(level), **lists)


def _check_strings(value: Any, path: Path, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadQuery(f"{name!r} in {str(path)!r} must be a list of strings.")
    return value


def _read_text(path: Path) -> str:
    try:
        return read_file(path, follow_symlinks=True, limit=_MAX_FILE_SIZE).decode("utf-8-sig")
    except FileNotFoundError:
        raise NotFound(f"There is no file {str(path)!r}. Check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise Unreadable(f"{str(path)!r} cannot be read: {reason}.") from None


def _user_names() -> list[str]:
    """The names of this machine's user."""
    try:
        names = [getpass.getuser(), Path.home().name]
    except (OSError, KeyError, RuntimeError):  # an account without a name
        return []
    return [name for name in names if name and name.lower() not in GENERIC_USER_NAMES]


def _host_names() -> list[str]:
    """The names of this machine, with and without the domain."""
    host = platform.node()
    names = [host, host.partition(".")[0]]
    return [
        name
        for name in names
        if len(name) >= _MIN_HOST_LENGTH and name.lower() not in GENERIC_USER_NAMES | {"localhost"}
    ]


_ANCHOR = re.compile("l[0-9]{1,9}")


class _OwnWords(frozenset[str]):
    """The words, and anchors of entries, such as `L120`."""

    __slots__ = ()

    def __contains__(self, word: object) -> bool:
        return super().__contains__(word) or (isinstance(word, str) and _ANCHOR.fullmatch(word) is not None)


_WORDS = word_set(
    "a abandoned act active after agent agents all amount an and another answer api as assistant at background base64"
    " became behind bound branch branches by cache call called calls changes characters charges claude cleared code"
    " command compacted compaction contains content context continuations continued continues conversation cost"
    " created deeper denied description details did diff done duration edited empty ended entries entry error errors"
    " evidence exit export exports failed failure feedback file files first folded format found from full git goes h"
    " has hash have here home hour html id image images in index input interrupted is it items its join json jsonl k"
    " kept kind known label last left limited line lines link list local lost lower m main markdown md memory message"
    " messages meta min missing mode model models moment more ms name nested new no none not nothing notice number of"
    " ok old on only open or other out output page pages part parts pdf pending person place plan previous price"
    " priced problem problems programmatic project prompt prompts read reason recurring redacted redirected remotely"
    " removed replies reply result results resume resumes retrieval role run runs s saved search searches seconds"
    " session sessions shell show shown shows side signature site size skip so source spent started state status"
    " steering stood stopped subtype summary sureness system task tasks team text that the them there these things"
    " thinking thread threadline time timed timeout timestamp title to todo todos token tokens took tool tools"
    " transcript transcripts tree trigger truncated turn turns txt type typed unchanged under unknown unpriced"
    " untitled updated usage user utc uuid version versions view was web were what when where which while whole window"
    " with without words work working write written you"
)
OWN_WORDS = _OwnWords(_WORDS)
"""Words of threadline's own output, in lower case."""
