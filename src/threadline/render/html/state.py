"""Render the state at a point of a session: the proven content of files, todo lists, settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from threadline.model.session import Session
from threadline.model.state import Evidence, FileDifference, FileState, ListSource, ProofLevel, State, TodoState
from threadline.model.text import count, format_tokens, short_model_name
from threadline.render import shorten
from threadline.render.html.calls.components import bullet_list, file_link, split_head
from threadline.render.html.calls.diff import (
    DiffRows,
    first_rows,
    hunks_of_texts,
    hunks_of_unified_diff,
    more_lines,
    render_diff,
    split_lines,
)
from threadline.render.html.calls.files import numbered_code
from threadline.render.html.calls.planning import status_row
from threadline.render.html.code import language_of_file
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.sections import PlaceLinks, Scene

_MAX_FILES, _MAX_LINES, _MAX_CHARACTERS, _MAX_HIGHLIGHTS = 12, 120, 12_000, 40
"""Limits unless the scene is uncut: files with content, and lines, characters and highlights per file."""
_MAX_NAMES = 200
_PROOF_LABELS = {
    ProofLevel.WHOLE: "exact",
    ProofLevel.PARTIAL: "partly known",
    ProofLevel.ABSENT: "does not exist",
    ProofLevel.UNKNOWN: "unknown",
}


def render_state(
    state: State,
    session: Session,
    scene: Scene,
    against: State | None = None,
    differences: Sequence[FileDifference] = (),
) -> Markup:
    """Render a state. If there is another state to compare with, the differences come first.

    `differences` are those from `against` to `state`, as computed by `threadline.thread.difference`.
    """
    places = PlaceLinks(session, scene)
    return el(
        "div",
        el("h2", "State ", places.position(state.place, state.agent)),
        _render_settings(state, scene),
        _render_differences(against, differences, places, scene) if against is not None else EMPTY,
        _render_files(state, places, scene),
        *(_render_todos(todo, places) for todo in state.todos),
        _render_tasks(state),
        class_="state",
    )


def _render_settings(state: State, scene: Scene) -> Markup:
    rows = {
        "Time": scene.format_time(state.time) if state.time is not None else "",
        "Agent": shorten(str(state.agent), 80) if state.agent is not None else "",
        "Model": shorten(short_model_name(state.model), 80),
        "Effort": shorten(state.effort or "", 40),
        "Mode": shorten(state.permission_mode or "", 40),
        "Directory": shorten(state.cwd or "", 300),
        "Git branch": shorten(state.git_branch or "", 200),
        "Context": f"{format_tokens(state.context_tokens)} tokens" if state.context_tokens is not None else "",
    }
    pairs = [join((el("dt", name), el("dd", value))) for name, value in rows.items() if value]
    return el("dl", *pairs, class_="settings") if pairs else EMPTY


def _render_differences(
    against: State, differences: Sequence[FileDifference], places: PlaceLinks, scene: Scene
) -> Markup:
    """The differences from another state."""
    title = el("h3", "Changes since the state ", places.position(against.place, against.agent))
    if not differences:
        return el("section", title, el("p", "No file is known to differ.", class_="facts"), class_="compared")
    limit = len(differences) if scene.uncut else _MAX_FILES
    rest = differences[limit:]
    return el(
        "section",
        title,
        *(_render_difference(difference, places, scene) for difference in differences[:limit]),
        bullet_list((el("li", file_link(difference.path, scene)) for difference in rest[:_MAX_NAMES]), "files"),
        class_="compared",
    )


def _render_difference(difference: FileDifference, places: PlaceLinks, scene: Scene) -> Markup:
    proven = "exact" if difference.proven else "partly known"
    return el(
        "details",
        el(
            "summary",
            unlinked_file_name(difference.path, scene),
            " ",
            el("span", proven, class_="proof proven" if difference.proven else "proof"),
        ),
        el("p", places.short(difference.statement), class_="facts"),
        _render_changes(hunks_of_unified_diff(difference.text), scene),
        class_="differs",
        open=bool(difference.text),
    )


def unlinked_file_name(path: str, scene: Scene) -> Markup:
    """A file name without a link, for use in a `<summary>`."""
    return el("span", shorten(scene.relative_path(path), 300), class_="path", title=shorten(path, 300))


def _render_changes(hunks: Sequence[DiffRows], scene: Scene) -> Markup:
    if scene.uncut:
        return render_diff(hunks)
    shown, left = first_rows(hunks, _MAX_LINES, _MAX_CHARACTERS)
    return join((render_diff(shown, uncut=False), el("p", more_lines(left), class_="more") if left else EMPTY))


def _render_files(state: State, places: PlaceLinks, scene: Scene) -> Markup:
    """The files, those that the session changed first."""
    files = sorted(state.files.values(), key=lambda file: file.changed is None)
    if not files:
        return EMPTY
    limit = len(files) if scene.uncut else _MAX_FILES
    html = [_render_file(file, places, scene) for file in files[:limit]]
    rest = files[limit:]
    return el(
        "section",
        el("h3", f"Files ({len(files):,})"),
        *html,
        *(_render_unloaded_file(file, state, places, scene) for file in rest[:_MAX_NAMES]),
        el("p", f"{len(rest) - _MAX_NAMES:,} more", class_="more") if len(rest) > _MAX_NAMES else EMPTY,
        _all_files_link(state, places, scene) if rest else EMPTY,
        class_="files",
    )


def _all_files_link(state: State, places: PlaceLinks, scene: Scene) -> Markup:
    """A link to the page with all files."""
    address = scene.links.state(places.anchor(state.place, state.agent)) if state.place is not None else None
    return el("a", "all files in full", href=address, class_="more") if address is not None else EMPTY


def _file_marks(file: FileState, scene: Scene) -> Iterator[Child]:
    """The name of a file, how well its content is known, and whether it changed."""
    yield unlinked_file_name(file.path, scene)
    is_exact = file.proven is ProofLevel.WHOLE
    yield from (" ", el("span", _PROOF_LABELS[file.proven], class_="proof proven" if is_exact else "proof"))
    if file.changed is not None:
        yield from (" ", el("span", "changed", class_="changed"))
    if file.doubts:
        yield from (" ", el("span", f"{count(len(file.doubts), 'command')} may have changed it", class_="doubts"))


def _render_file(file: FileState, places: PlaceLinks, scene: Scene) -> Markup:
    return el(
        "details", el("summary", *_file_marks(file, scene)), render_file_content(file, places, scene), class_="file"
    )


def render_file_content(file: FileState, places: PlaceLinks, scene: Scene) -> Markup:
    """What is known about a file: the evidence, its changes and its content."""
    return join(
        (
            el("p", places.short(file.statement), class_="facts"),
            el("p", *_evidence_links(file, places, scene), class_="facts"),
            _changes_since_first(file, scene),
            _render_content(file, scene),
        )
    )


def _render_unloaded_file(file: FileState, state: State, places: PlaceLinks, scene: Scene) -> Markup:
    """A file whose content is loaded when it is unfolded; without scripts, a link leads to it."""
    anchor = places.anchor(state.place, state.agent) if state.place is not None else "end"
    address = scene.links.file_state(anchor, file.path)
    body = el("p", el("a", "Show contents", href=address)) if address is not None else EMPTY
    return el("details", el("summary", *_file_marks(file, scene)), body, class_="file", data_src=address)


def _evidence_links(file: FileState, places: PlaceLinks, scene: Scene) -> Iterator[Child]:
    """Links to the file's own page and to the places with evidence about it."""
    if address := scene.links.file(file.path):
        yield from (el("a", "in all sessions", href=address), " ")
    sources: list[tuple[str, Evidence]] = [("known from ", file.proof)] if file.proof is not None else []
    sources += [("may have changed since ", doubt) for doubt in file.doubts[:1]]
    for label, evidence in sources:
        yield from (label, places.link(evidence.place, evidence.agent), f" ({evidence.how}) ")
    if file.changed is not None:
        yield from ("changed at ", places.link(file.changed))


def _changes_since_first(file: FileState, scene: Scene) -> Markup:
    """The changes since the session first accessed the file."""
    if (
        file.first is None
        or file.proven not in (ProofLevel.WHOLE, ProofLevel.ABSENT)
        or file.first.content == file.content
    ):
        return EMPTY
    hunks = hunks_of_texts(file.first.content or "", file.content or "")
    if not hunks:
        return EMPTY
    return el(
        "details",
        el("summary", "Changes since the session first read it"),
        _render_changes(hunks, scene),
        class_="rest",
    )


def _render_content(file: FileState, scene: Scene) -> Markup:
    language = language_of_file(file.path)
    if file.content:
        text = file.content.removesuffix("\n")
        shown, rest = (text, "") if scene.uncut else split_head(text, _MAX_LINES, _MAX_CHARACTERS)
        more = el("p", count(len(split_lines(rest)), "more line"), class_="more") if rest else EMPTY
        html = join((numbered_code(shown, 1, language, None if scene.uncut else _MAX_HIGHLIGHTS), more))
    elif file.lines:
        html = _proven_lines(file, scene)
    else:
        return EMPTY
    return el("details", el("summary", "Show contents"), html, class_="rest")


def _proven_lines(file: FileState, scene: Scene) -> Markup:
    """The proven lines, in runs. Lines between the runs are unknown."""
    language = language_of_file(file.path)
    html: list[Markup] = []
    room = len(file.lines) if scene.uncut else _MAX_LINES
    for start, lines in _line_runs(file.lines):
        if room <= 0:
            break
        html.append(numbered_code("\n".join(lines[:room]), start, language, None if scene.uncut else 0))
        room -= len(lines)
    left = len(file.lines) - (len(file.lines) if scene.uncut else _MAX_LINES)
    note = el("p", count(left, "more line"), class_="more") if left > 0 else EMPTY
    return join((join(html, el("p", "⋯", class_="gap")), note))


def _line_runs(lines: dict[int, str]) -> Iterator[tuple[int, list[str]]]:
    start, run = 0, list[str]()
    for number in sorted(lines):
        if run and number != start + len(run):
            yield start, run
            run = []
        if not run:
            start = number
        run.append(lines[number])
    if run:
        yield start, run


def _render_todos(todo_list: TodoState, places: PlaceLinks) -> Markup:
    who = f" of agent {shorten(str(todo_list.agent), 60)}" if todo_list.agent is not None else ""
    rows = [status_row(todo.status or "", todo.content or "") for todo in todo_list.todos]
    where = el("p", *_update_place(todo_list, places), class_="facts")
    return el("section", el("h3", f"Todos{who}"), bullet_list(rows, "todos"), where, class_="work") if rows else EMPTY


def _update_place(todo_list: TodoState, places: PlaceLinks) -> Iterator[Child]:
    if todo_list.source is ListSource.FILE:
        yield from ("from ", el("code", shorten(todo_list.place.transcript, 300)))
    else:
        yield from ("last updated at ", places.link(todo_list.place, todo_list.agent))


def _render_tasks(state: State) -> Markup:
    rows = [
        status_row(task.task.status or "", f"#{task.task.id} {task.task.subject or ''}" if task.task.id else "")
        for task in state.tasks
    ]
    count_of_files = sum(task.source is ListSource.FILE for task in state.tasks)
    note = (
        el("p", f"{count(count_of_files, 'task')} from files under tasks/", class_="facts") if count_of_files else EMPTY
    )
    return el("section", el("h3", "Tasks"), bullet_list(rows, "todos"), note, class_="work") if rows else EMPTY
