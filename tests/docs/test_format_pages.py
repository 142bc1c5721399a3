"""The pages of `docs/format` and the model agree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, FORMAT, SHAPES, Section, anchor, code_names, links, sections, strip_markup
from tests.docs.shapes import (
    ATTACHMENTS,
    KIND_CLASSES,
    ON_EVERY_PAGE,
    PROGRESS,
    base,
    describe_type,
    own_fields,
    shapes,
    tag,
)
from tests.subtests import Subtests

import threadline
from threadline.model.entries import KINDS, SUBTYPES, OtherEntry, SystemEntry
from threadline.model.homes import SideFileKind
from threadline.model.results import TOOL_RESULTS
from threadline.shape import find_unknown, wire_fields

EVIDENCE = {"official", "corpus", "client", "peers", "one source", "seed"}
COLUMNS = ["field", "attribute", "type", "versions", "meaning", "evidence"]
MODEL = shapes()
KIND_PAGES = {path.stem: path for path in sorted(FORMAT.glob("*.md")) if path.stem != "README"}
SHAPE_PAGES = {path.stem: path for path in sorted(SHAPES.glob("*.md"))}
ALL_PAGES = sorted(DOCS.rglob("*.md"))


def documented_sections() -> dict[str, Section]:
    """Return the section of each struct: `Fields` on the page of its kind, or a heading with its name."""
    by_name: dict[str, Section] = {}
    for kind, path in KIND_PAGES.items():
        for title, section in sections(path).items():
            name = KINDS[kind].__name__ if title == "Fields" and kind in KINDS else title
            if name in MODEL:
                assert name not in by_name, f"{name} is described twice"
                by_name[name] = section
    for path in SHAPE_PAGES.values():
        for title, section in sections(path).items():
            if title in MODEL:
                assert title not in by_name, f"{title} is described twice"
                by_name[title] = section
    return by_name


SECTIONS = documented_sections()


def examples() -> list[tuple[str, str]]:
    """Return every example line with the kind of its page."""
    return [(kind, line) for kind, path in KIND_PAGES.items() for line in sections(path)["Example"].code("json")]


def test_every_kind_has_a_page_and_every_page_a_kind() -> None:
    """Kinds and pages are the same set."""
    assert set(KIND_PAGES) == set(KINDS)


def test_every_struct_is_described_once() -> None:
    """Everything read from disk has a section: entries, nested shapes, blocks, attachments, results, side files."""
    assert set(SECTIONS) == set(MODEL)


def check_fields_equal_rows(name: str) -> None:
    """Each field that a struct adds to its base has a row in its table, and each row names such a field."""
    rows = [strip_markup(row["field"]) for row in SECTIONS[name].table]
    assert sorted(rows) == sorted(own_fields(MODEL[name]))


def check_rows_match_the_model(name: str) -> None:
    """Each row has the field's attribute and type, a meaning, and evidence in the defined words."""
    fields = own_fields(MODEL[name])
    for row in SECTIONS[name].table:
        assert list(row) == COLUMNS
        field = fields[strip_markup(row["field"])]
        assert strip_markup(row["attribute"]) == field.name
        assert strip_markup(row["type"]) == describe_type(field.type), f"{name}.{field.name}"
        assert row["meaning"].endswith((".", "…"))
        assert row["versions"]
        assert set(row["evidence"].split(", ")) <= EVIDENCE


def check_base_is_named(name: str) -> None:
    """A section names the base that its struct inherits fields from."""
    parent = base(MODEL[name]).__name__
    if parent not in ON_EVERY_PAGE:
        assert f"[{parent}]" in SECTIONS[name].text


def check_tag_is_named(name: str) -> None:
    """The section of a block, attachment or progress names its `type`."""
    if tag(MODEL[name]) and name not in KIND_CLASSES:
        assert f"`type`: `{tag(MODEL[name])}`" in SECTIONS[name].lines


@pytest.mark.parametrize(
    "check",
    [
        check_fields_equal_rows,
        check_rows_match_the_model,
        check_base_is_named,
        check_tag_is_named,
    ],
)
def test_sections_match_the_model(check: Callable[[str], None]) -> None:
    """The check passes for the section of every struct."""
    with Subtests() as subtests:
        for name in sorted(MODEL):
            with subtests.test(name):
                check(name)


def test_pages_name_class_versions_and_evidence() -> None:
    """A kind's page starts with its meaning, then its class, versions and evidence."""
    with Subtests() as subtests:
        for kind in sorted(KINDS):
            with subtests.test(kind):
                head = sections(KIND_PAGES[kind])[kind]
                facts = dict(line[2:].split(": ", 1) for line in head.lines if line.startswith("- "))
                assert head.lines[1].endswith(".")
                assert facts["Class"] == f"`threadline.model.entries.{KINDS[kind].__name__}`"
                assert facts["Versions"]
                assert set(facts["Evidence"].split(", ")) <= EVIDENCE


def test_every_page_has_an_example() -> None:
    """Every kind has an example line."""
    assert [kind for kind in sorted(KINDS) if not sections(KIND_PAGES[kind])["Example"].code("json")] == []


def test_examples_are_entries_of_their_page(tmp_path: Path) -> None:
    """An example decodes as the kind of its page, without problems or unknown fields."""
    transcript = tmp_path / "example.jsonl"
    with Subtests() as subtests:
        for kind, line in examples():
            with subtests.test(f"{kind}: {line}"):
                transcript.write_text(line + "\n", encoding="utf-8")
                (entry,) = threadline.entries(transcript)
                assert type(entry) is KINDS[kind]
                assert entry.problems == ()
                assert list(find_unknown(entry.data, KINDS[kind])) == []


def test_every_subtype_of_system_has_a_row() -> None:
    """The table of subtypes has exactly the known ones."""
    rows = sections(KIND_PAGES["system"])["Subtypes"].table
    assert {strip_markup(row["subtype"]) for row in rows} == {*SUBTYPES, "(none)"}


def test_subtypes_have_fields_that_exist() -> None:
    """The table of subtypes names only fields of the entry or other subtypes, and omits no field."""
    rows = sections(KIND_PAGES["system"])["Subtypes"].table
    named = {name for row in rows for name in code_names(row["fields"])}
    fields = {field.encode_name for field in wire_fields(SystemEntry)}
    assert named - fields <= set(SUBTYPES)
    assert set(own_fields(SystemEntry)) - named == {"subtype", "content", "level"}


@pytest.mark.parametrize(
    ("kind", "page", "members"), [("attachment", "attachments", ATTACHMENTS), ("progress", "progress", PROGRESS)]
)
def test_types_are_listed(kind: str, page: str, members: dict[str, str]) -> None:
    """The page of a kind with types lists each with its class and a link to its fields."""
    rows = sections(KIND_PAGES[kind])["Types"].table
    listed = {strip_markup(row["type"]): row["class"] for row in rows}
    assert listed == {word: f"[{name}](shapes/{page}.md#{name.lower()})" for word, name in members.items()}


def test_results_are_listed_by_tool() -> None:
    """The table of tools has each known tool with the class of its result."""
    rows = sections(SHAPE_PAGES["results"])["By tool"].table
    listed = {strip_markup(row["tool"]): strip_markup(row["class"]) for row in rows if row["tool"] != "`mcp__…`"}
    assert listed == {tool: shape.__name__ for tool, shape in TOOL_RESULTS.items()}


def test_every_kind_of_side_file_has_a_heading() -> None:
    """Each kind of side file has a heading, and there are no others."""
    titles = {section.title for section in sections(SHAPE_PAGES["side-files"]).values() if section.level == 2}
    assert titles == {kind.value for kind in SideFileKind}


def test_index_lists_every_kind() -> None:
    """The index links every page once, with its meaning, versions and evidence."""
    index = sections(FORMAT / "README.md")
    rows = [row for section in index.values() for row in section.table if "kind" in row]
    assert sorted(strip_markup(row["kind"]) for row in rows) == sorted(KINDS)
    for row in rows:
        lines = sections(KIND_PAGES[strip_markup(row["kind"])])[strip_markup(row["kind"])].lines
        assert [row["meaning"], f"- Versions: {row['versions']}", f"- Evidence: {row['evidence']}"] == [
            lines[1],
            *lines[4:6],
        ]


def test_index_defines_the_words_for_evidence() -> None:
    """Exactly the words that a page may use for evidence are defined."""
    assert {row["word"] for row in sections(FORMAT / "README.md")["Evidence"].table} == EVIDENCE


def test_index_explains_how_unknown_data_is_kept() -> None:
    """Each stand-in for unknown data is named."""
    text = sections(FORMAT / "README.md")["How unknown data is kept"].text
    stand_ins = [OtherEntry.__name__, "OtherBlock", "OtherAttachment", "OtherProgress", "OtherResult"]
    assert all(f"`{name}`" in text for name in [*stand_ins, "entry.data", "entry.extra", "entry.raw"])


def test_kinds_without_fields_are_declared() -> None:
    """Each kind, attachment and progress without fields is listed, because drift would report its fields."""
    text = sections(FORMAT / "README.md")["Known and not modelled"].text
    words = {**{kind: shape.__name__ for kind, shape in KINDS.items()}, **ATTACHMENTS, **PROGRESS}
    bare = [
        word
        for word, name in words.items()
        if not own_fields(MODEL[name]) and base(MODEL[name]).__name__ in ON_EVERY_PAGE
    ]
    foreign = {"turn_end", "checkpoint"}
    assert [word for word in bare if word not in foreign and f"`{word}`" not in text and "marble" not in word] == []


def test_links_have_targets() -> None:
    """Each link within the docs leads to a page, and to a heading if it names one."""
    with Subtests() as subtests:
        for path in ALL_PAGES:
            for link in links(path):
                if "://" not in link:
                    with subtests.test(f"{path.relative_to(DOCS)}: {link}"):
                        target, _, name = link.partition("#")
                        page = (path.parent / target).resolve() if target else path
                        assert page.exists(), link
                        assert not name or name in {anchor(title) for title in sections(page)}, link
