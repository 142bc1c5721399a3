"""The pages for those who decide whether to use threadline: configuration, stability, security, platforms."""

from __future__ import annotations

import re
import tomllib

from tests.docs.pages import DOCS, code_names, sections

ROOT = DOCS.parent
SOURCE = ROOT / "src/threadline"
VARIABLE = re.compile(
    r"""environ(?:ment)?(?:\.get\(|\[)["'](\w+)"""
    r"""|["'](\w+)["'] (?:not )?in os\.environ"""
    r"""|\b(_?THREADLINE_[A-Z_]+)"""
    r"""|["'](CLAUDE_CONFIG_DIRS?)["']"""
)


def source_variables() -> set[str]:
    """The environment variables that the source names."""
    matches = (match for path in SOURCE.rglob("*.py") for match in VARIABLE.finditer(path.read_text()))
    return {next(filter(None, match.groups())) for match in matches}


def test_every_environment_variable_is_documented() -> None:
    """`docs/configuration.md` has a row for every variable that the source reads, and none that nothing reads."""
    tables = [
        *sections(DOCS / "configuration.md")["Variables of threadline"].table,
        *sections(DOCS / "configuration.md")["Variables of Claude Code and of the system"].table,
    ]
    documented = {name for row in tables for name in re.findall(r"\w+", row["variable"])}
    used = source_variables()
    assert "THREADLINE_CACHE" in used
    assert used <= documented
    words = set(re.findall(r"\b[A-Z_]{2,}\b", "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))))
    assert documented - {"_THREADLINE_COMPLETE"} <= words  # click's own


def test_stable_views_exist() -> None:
    """The views that `docs/stability.md` promises are the views of the index."""
    page = sections(DOCS / "stability.md")["Stable"].table
    promised = next(code_names(row["rule"]) for row in page if "SQL" in row["what"])
    views = re.findall(r"^### (\w+)\n\nA view", (DOCS / "index.md").read_text(), re.MULTILINE)
    assert promised == views


def test_platforms_are_those_of_ci() -> None:
    """The package claims Linux, on which CI runs, and names no other platform."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    systems = [name for name in project["classifiers"] if name.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]
    assert "apt-get" in (ROOT / ".ci/run").read_text()
    rows = sections(DOCS / "stability.md")["Platforms"].lines
    assert any(line.startswith("| Linux | supported") for line in rows)


def test_readme_says_what_is_written() -> None:
    """README names the commands that write into a home, and links to the pages for teams."""
    readme = (ROOT / "README.md").read_text()
    assert "Two commands add to a home, and only when you run them: `keep restore`" in readme
    for name in ("SECURITY.md", "docs/stability.md", "docs/configuration.md"):
        assert f"({name})" in readme
        assert (ROOT / name).is_file()
    assert len(readme.splitlines()) < 150
