"""The state at a place of a session as HTML: files as far as they are proven, lists of work, settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from threadline.model.ids import AgentId
from threadline.model.place import Place
from threadline.model.session import Session
from threadline.model.state import Evidence, FileDifference, FileState, Proof, State, TodoState
from threadline.render.figures import count, model_name
from threadline.render.html.anchor import named
from threadline.render.html.calls.cut import head
from threadline.render.html.calls.diff import diff, first, more_lines
from threadline.render.html.calls.hunks import Rows, lines_of, of_texts, of_unified
from threadline.render.html.calls.lists import state_row
from threadline.render.html.calls.pieces import file_name, listed
from threadline.render.html.calls.reading import numbered
from threadline.render.html.code import language_of
from threadline.render.html.element import EMPTY, Child, el, join
from threadline.render.html.scene import Scene
from threadline.render.html.words import one, shown

_MOST_FILES, _MOST_LINES, _MOST_CHARACTERS, _MOST_COLOURS = 12, 120, 12_000, 40
"""What a page that is not whole shows: of so many files their text, and of each so much."""
_MOST_NAMES = 200
_PROOFS = {
    Proof.WHOLE: "proven",
    Proof.PARTIAL: "partly proven",
    Proof.ABSENT: "not there",
    Proof.UNKNOWN: "not proven",
}


def state(
    stood: State,
    session: Session,
    scene: Scene,
    against: State | None = None,
    differences: Sequence[FileDifference] = (),
) -> Markup:
    """How things stood; compared with another place, first what differs.

    `differences` are those from `against` to it, as `threadline.thread.state.difference` tells them.
    """
    places = _Places(session, scene)
    return el(
        "div",
        el("h2", "The state ", places.said(stood.place, stood.agent)),
        _settings(stood, scene),
        _compared(against, differences, places, scene) if against is not None else EMPTY,
        _files(stood, places, scene),
        *(_todos(one_, places) for one_ in stood.todos),
        _tasks(stood),
        class_="state",
    )


class _Places:
    """Places as links to the entries that stand there."""

    def __init__(self, session: Session, scene: Scene) -> None:
        self._links = scene.links
        self._agents: dict[str, AgentId | None] = {}
        for agent in (*session.agents, session.main):
            if agent.entries:
                self._agents[agent.entries[0].place.transcript] = agent.id

    def anchor(self, place: Place, agent: AgentId | None = None) -> str:
        """The anchor of the entry that stands there."""
        who = agent or self._agents.get(place.transcript)
        return f"{named(who)}.L{place.line}" if who is not None else f"L{place.line}"

    def link(self, place: Place, agent: AgentId | None = None) -> Markup:
        """`line 12`, which leads there."""
        there = self._links.entry(self.anchor(place, agent))
        return el("a", f"line {place.line:,}", href=there, title=one(str(place), 300))

    def short(self, statement: str) -> str:
        """A statement whose places are lines: this page is of one session, and has no need of its files' names."""
        for transcript, agent in self._agents.items():
            where = "line " if agent is None else f"agent {agent}, line "
            statement = statement.replace(f"{transcript}:", where)
        return shown(statement)

    def said(self, place: Place | None, agent: AgentId | None) -> Markup:
        """`after line 12`, or the end."""
        return join(("after ", self.link(place, agent))) if place is not None else join(("at the end",))


def _settings(stood: State, scene: Scene) -> Markup:
    rows = {
        "Time": scene.told(stood.time) if stood.time is not None else "",
        "Agent": one(str(stood.agent), 80) if stood.agent is not None else "",
        "Model": one(model_name(stood.model), 80),
        "Effort": one(stood.effort or "", 40),
        "Mode": one(stood.permission_mode or "", 40),
        "Directory": one(stood.cwd or "", 300),
        "Git branch": one(stood.git_branch or "", 200),
        "Context": f"{stood.context_tokens:,} tokens" if stood.context_tokens is not None else "",
    }
    pairs = [join((el("dt", name), el("dd", value))) for name, value in rows.items() if value]
    return el("dl", *pairs, class_="settings") if pairs else EMPTY


def _compared(against: State, differences: Sequence[FileDifference], places: _Places, scene: Scene) -> Markup:
    """What differs from another place."""
    title = el("h3", "Compared with the state ", places.said(against.place, against.agent))
    if not differences:
        return el("section", title, el("p", "No file is known to differ.", class_="facts"), class_="compared")
    most = len(differences) if scene.whole else _MOST_FILES
    rest = differences[most:]
    return el(
        "section",
        title,
        *(_difference(one_, places, scene) for one_ in differences[:most]),
        listed((el("li", file_name(one_.path, scene)) for one_ in rest[:_MOST_NAMES]), "files"),
        class_="compared",
    )


def _difference(one_: FileDifference, places: _Places, scene: Scene) -> Markup:
    proven = "proven" if one_.proven else "not proven"
    return el(
        "details",
        el("summary", file_name_of(one_.path, scene), " ", el("span", proven, class_=f"proof {_class(proven)}")),
        el("p", places.short(one_.statement), class_="facts"),
        _changes(of_unified(one_.text), scene),
        class_="differs",
        open=bool(one_.text),
    )


def _class(said: str) -> str:
    return said.replace(" ", "-")


def file_name_of(path: str, scene: Scene) -> Markup:
    """A file's name without a link: it stands in a line that opens."""
    return el("span", one(scene.near(path), 300), class_="path", title=one(path, 300))


def _changes(hunks: Sequence[Rows], scene: Scene) -> Markup:
    if scene.whole:
        return diff(hunks)
    some, left = first(hunks, _MOST_LINES, _MOST_CHARACTERS)
    return join((diff(some, whole=False), el("p", more_lines(left), class_="more") if left else EMPTY))


def _files(stood: State, places: _Places, scene: Scene) -> Markup:
    """The files: first those that the session changed."""
    files = sorted(stood.files.values(), key=lambda file: file.changed is None)
    if not files:
        return EMPTY
    most = len(files) if scene.whole else _MOST_FILES
    drawn = [_file(file, places, scene) for file in files[:most]]
    rest = files[most:]
    return el(
        "section",
        el("h3", f"Files ({len(files):,})"),
        *drawn,
        listed(
            (el("li", file_name(file.path, scene), f" {_PROOFS[file.proven]}") for file in rest[:_MOST_NAMES]), "files"
        ),
        el("p", f"{len(rest) - _MOST_NAMES:,} more", class_="more") if len(rest) > _MOST_NAMES else EMPTY,
        _in_full(stood, places, scene) if rest else EMPTY,
        class_="files",
    )


def _in_full(stood: State, places: _Places, scene: Scene) -> Markup:
    """Where the files that have no room here can be seen."""
    there = scene.links.state(places.anchor(stood.place, stood.agent)) if stood.place is not None else None
    return el("a", "all files in full", href=there, class_="more") if there is not None else EMPTY


def _file(file: FileState, places: _Places, scene: Scene) -> Markup:
    said = _PROOFS[file.proven]
    marks: list[Child] = [file_name_of(file.path, scene), " ", el("span", said, class_=f"proof {_class(said)}")]
    if file.changed is not None:
        marks += [" ", el("span", "changed", class_="changed")]
    if file.doubts:
        marks += [" ", el("span", count(len(file.doubts), "doubt"), class_="doubts")]
    return el(
        "details",
        el("summary", *marks),
        el("p", places.short(file.statement), class_="facts"),
        el("p", *_evidence(file, places, scene), class_="facts"),
        _since_first(file, scene),
        _content(file, scene),
        class_="file",
    )


def _evidence(file: FileState, places: _Places, scene: Scene) -> Iterator[Child]:
    """The places that speak of it, as links; the file's own page."""
    if there := scene.links.file(file.path):
        yield from (el("a", "in all sessions", href=there), " ")
    told: list[tuple[str, Evidence]] = [("proven at ", file.proof)] if file.proof is not None else []
    told += [("in doubt since ", doubt) for doubt in file.doubts[:1]]
    for said, evidence in told:
        yield from (said, places.link(evidence.place, evidence.agent), f" ({evidence.how}) ")
    if file.changed is not None:
        yield from ("changed at ", places.link(file.changed))


def _since_first(file: FileState, scene: Scene) -> Markup:
    """What changed since the session first met it."""
    if file.first is None or file.proven not in (Proof.WHOLE, Proof.ABSENT) or file.first.content == file.content:
        return EMPTY
    hunks = of_texts(file.first.content or "", file.content or "")
    if not hunks:
        return EMPTY
    return el("details", el("summary", "What changed since it was first met"), _changes(hunks, scene), class_="rest")


def _content(file: FileState, scene: Scene) -> Markup:
    language = language_of(file.path)
    if file.content:
        text = file.content.removesuffix("\n")
        some, rest = (text, "") if scene.whole else head(text, _MOST_LINES, _MOST_CHARACTERS)
        more = el("p", count(len(lines_of(rest)), "more line"), class_="more") if rest else EMPTY
        drawn = join((numbered(some, 1, language, None if scene.whole else _MOST_COLOURS), more))
    elif file.lines:
        drawn = _known(file, scene)
    else:
        return EMPTY
    return el("details", el("summary", "What it says"), drawn, class_="rest")


def _known(file: FileState, scene: Scene) -> Markup:
    """The lines that are proven, in runs; between them nothing is known."""
    language = language_of(file.path)
    drawn: list[Markup] = []
    room = len(file.lines) if scene.whole else _MOST_LINES
    for start, lines in _runs(file.lines):
        if room <= 0:
            break
        drawn.append(numbered("\n".join(lines[:room]), start, language, None if scene.whole else 0))
        room -= len(lines)
    left = len(file.lines) - (len(file.lines) if scene.whole else _MOST_LINES)
    note = el("p", count(left, "more line"), class_="more") if left > 0 else EMPTY
    return join((join(drawn, el("p", "⋯", class_="gap")), note))


def _runs(lines: dict[int, str]) -> Iterator[tuple[int, list[str]]]:
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


def _todos(told: TodoState, places: _Places) -> Markup:
    who = f" of agent {one(str(told.agent), 60)}" if told.agent is not None else ""
    rows = [state_row(todo.status or "", todo.content or "") for todo in told.todos]
    where = el("p", "told at ", places.link(told.place, told.agent), class_="facts")
    return el("section", el("h3", f"Todos{who}"), listed(rows, "todos"), where, class_="work") if rows else EMPTY


def _tasks(stood: State) -> Markup:
    rows = [
        state_row(told.task.status or "", f"#{told.task.id} {told.task.subject or ''}" if told.task.id else "")
        for told in stood.tasks
    ]
    return el("section", el("h3", "Tasks"), listed(rows, "todos"), class_="work") if rows else EMPTY
