"""The imports and exports of the page's scripts match. No browser is needed to check that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ASSETS = Path(__file__).parents[2] / "src/threadline/web/assets"
SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in sorted(ASSETS.glob("*.js"))}
MAX_REQUESTS = 36
"""Each module is a request. A page must not need more of them than it does now."""
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";$', re.MULTILINE)
_LATER_IMPORT = re.compile(r'import\("\./([\w.]+)"\)\.then\(\(\{ (\w+) \}\)')
"""A module that is loaded when it is first used."""
_EXPORT = re.compile(r"^export (?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)
_TYPE = re.compile(r'import\("\./([\w.]+)"\)\.(\w+)')


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_import_has_an_export(name: str) -> None:
    """A script imports only what another one exports, and uses all of it. Types in comments exist too."""
    text = SCRIPTS[name]
    imports = [(file, word.strip()) for words, file in _IMPORT.findall(text) for word in words.split(",")]
    imports += _LATER_IMPORT.findall(text)
    assert [pair for pair in imports if pair[1] not in _EXPORT.findall(SCRIPTS.get(pair[0], ""))] == []
    body = _LATER_IMPORT.sub("", _IMPORT.sub("", text))
    assert [word for _file, word in imports if not re.search(rf"\b{word}\b", body)] == []
    types = _TYPE.findall(_LATER_IMPORT.sub("", text))
    assert [(file, word) for file, word in types if not re.search(rf"(?:class|\}}) {word}\b", SCRIPTS[file])] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_export_is_imported(name: str) -> None:
    """Nothing is exported that no other script imports."""
    lists = [words for text in SCRIPTS.values() for words, _file in _IMPORT.findall(text)]
    imported = {word.strip() for words in lists for word in words.split(",")}
    imported |= {word for text in SCRIPTS.values() for _file, word in _LATER_IMPORT.findall(text)}
    assert set(_EXPORT.findall(SCRIPTS[name])) - imported == set()


def test_the_number_of_scripts_is_limited() -> None:
    """Scripts are not split further: each file is one more request before a page works."""
    assert len(SCRIPTS) <= MAX_REQUESTS
