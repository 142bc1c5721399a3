"""Exporting: sessions to files, redacted first, looked at again when they are done, and only then given out."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from threadline.errors import BadQuery, Missing, NotFound
from threadline.export.checked import Looking, leftovers, refuse
from threadline.export.copies import Copies, Copy, originals
from threadline.export.forms import Form, html_page, raw_lines, text_of
from threadline.export.pdf import browser, printed
from threadline.load import Session, read, session_ledger
from threadline.model.sum import Sum
from threadline.render.figures import count
from threadline.render.html.view import View
from threadline.render.redaction import Finding, Redactor, Settings

if TYPE_CHECKING:
    from threadline.export.as_html import Pieces

_PLAIN = frozenset(("md", "txt"))
Advance = Callable[[int], None]


def _quiet(_done: int) -> None:
    """What is told how far the work has come, where nobody asked."""


class Order(Struct, frozen=True):
    """What is to be given out, and how. Without `settings` nothing is taken out."""

    form: Form = Form.HTML
    view: View = View()
    settings: Settings | None = Settings()
    site: bool = False


class Made(Struct, frozen=True):
    """A finished file that is not yet at its place: where it lies, what it is called there, and whose it is."""

    path: Path
    name: str
    session: str | None = None


class Exported(Struct, frozen=True):
    """What was made; `findings` are what was taken out."""

    files: tuple[Made, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def hidden(self) -> dict[str, int]:
        """How much of which kind was taken out, the most first."""
        counts = Counter[str]()
        for one in self.findings:
            counts[one.kind] += one.count
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def export(mains: Iterable[Path], order: Order, folder: Path, advance: Advance = _quiet) -> Exported:
    """Make the files in a folder, checked and ready to be put at their places.

    `advance` is told how many bytes are done: all of the transcripts, `passes(order)` times.

    Raises:
        Unsafe: something that must not be shared would be left.
        NotFound: a session lacks the branch or the turns that were asked for.
        Missing: what a form needs is not installed.
    """
    if order.form is Form.PDF and browser() is None:
        printed(folder, folder, None)  # says what is missing before anything is read
    if order.form is Form.JSONL and _is_part(order.view):
        raise BadQuery("jsonl gives whole transcripts; for a part of one, export to json.")
    redactor: Redactor | None = None
    chosen = list(dict.fromkeys(mains))
    if order.settings is None:
        copies = originals(chosen, advance)
    else:
        made = Copies(folder / "copies", order.settings, images=order.view.images)
        redactor = made.redactor
        copies = made.make(chosen, advance)
    # Before anything is drawn: what drawing meets beyond it was not in the session.
    found = tuple(redactor.findings) if redactor is not None else ()
    done = _Maker(order, folder / "made", redactor, advance).all(copies)
    return Exported(tuple(done), found)


def passes(order: Order) -> int:
    """How often every byte is gone over: read for what is secret, copied, drawn; or looked for and drawn."""
    return 2 if order.settings is None else 3


def _is_part(view: View) -> bool:
    return any(one is not None for one in (view.branch, view.from_turn, view.to_turn))


class _Maker:
    """Makes the files of one export, looking at each again."""

    def __init__(self, order: Order, folder: Path, redactor: Redactor | None, advance: Advance = _quiet) -> None:
        self._order = order
        self._advance = advance
        self._folder = folder
        self._redactor = redactor
        self._left: list[Finding] = []

    def all(self, copies: list[Copy]) -> list[Made]:
        self._folder.mkdir(parents=True)
        files = list(self._site(copies) if self._order.site else map(self._file, copies))
        refuse(self._left)
        return files

    def _file(self, copy: Copy) -> Made:
        form = self._order.form
        name = f"{copy.name}.{form}"
        if form is Form.JSONL:
            return self._raw(copy, name)
        if form not in {Form.HTML, Form.PDF}:
            made = self._written(self._text(copy), name, copy.name)
            self._advance(copy.size)
            return made
        whole = self._read(copy)
        made = self._page(html_page(whole, self._order.view, spent(whole, copy)), name, copy)
        if form is Form.PDF:
            html = made.path.rename(made.path.with_suffix(".html"))
            refuse(self._left)
            printed(html, made.path, whole.started)
        return made

    def _read(self, copy: Copy) -> Session:
        whole = read(copy.main)
        _check(whole, self._order.view)
        return whole

    def _text(self, copy: Copy) -> str:
        """A session as text; here the session ends, as the second look needs the memory."""
        whole = self._read(copy)
        return text_of(self._order.form, whole, self._order.view, spent(whole, copy))

    def _raw(self, copy: Copy, name: str) -> Made:
        from threadline.render.options import Agents  # noqa: PLC0415 - one form alone

        only = replace(copy, files=copy.files[:1]) if self._order.view.agents is Agents.NONE else copy
        path = self._folder / name
        with path.open("wb") as file:
            file.writelines(raw_lines(only))
        self._advance(copy.size)
        if self._redactor is not None:
            # Line by line: what is secret in a line stands in it, and a transcript may be of any size.
            with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
                self._left += [one for line in lines for one in leftovers(self._redactor, "jsonl", line, name)]
        return Made(path, name, copy.name)

    def _site(self, copies: list[Copy]) -> Iterator[Made]:
        try:
            from threadline.export.site import index_page, listed, search_page  # noqa: PLC0415 - needs the extra `web`
        except ModuleNotFoundError as error:
            raise Missing(
                f"A site needs {error.name}, which is not installed; run: pip install 'threadline[web]'"
            ) from None
        view = self._order.view
        pages = {copy.name.lower(): f"{copy.name}.html" for copy in copies}
        every = []
        for copy in copies:
            whole = self._read(copy)
            total = spent(whole, copy)
            every.append(listed(whole, copy.name, view, total))
            yield self._page(html_page(whole, view, total, pages), f"sessions/{copy.name}.html", copy)
        yield self._written(index_page(every), "index.html", None)
        yield self._written(search_page(every), "search.html", None)

    def _page(self, pieces: Pieces, name: str, copy: Copy) -> Made:
        """Write a page as it is drawn, and look at it again as it is written."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        look = Looking(self._redactor, name) if self._redactor is not None else None
        done = 0
        with path.open("wb") as file:
            for at, piece in enumerate(pieces.each, 1):
                file.write(piece.encode(errors="replace"))
                if look is not None:
                    look.more(piece)
                share = copy.size * at // pieces.many
                self._advance(share - done)
                done = share
        self._left += look.end() if look is not None else []
        return Made(path, name, copy.name)

    def _written(self, text: str, name: str, session: str | None) -> Made:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._looked_at(text, name).encode(errors="replace"))
        return Made(path, name, session)

    def _looked_at(self, text: str, name: str) -> str:
        """A finished text, after the second look."""
        if self._redactor is None:
            return text
        form = str(self._order.form)
        left = leftovers(self._redactor, form, text, name)
        if left and form in _PLAIN:
            # Lines that are broken or cut can bring together what stood apart, and a plain text can be done again.
            text = self._redactor.redact(text, name)
            left = leftovers(self._redactor, form, text, name)
        self._left += left
        return text


def spent(whole: Session, copy: Copy) -> Sum:
    """What a session spent, counted over the transcripts it was made of.

    Beside those lie the sessions that it goes on from, whose messages are theirs, whether they are given out or not.
    """
    return session_ledger(replace(whole, path=copy.source)).total


def _check(whole: Session, view: View) -> None:
    """Refuse numbers that the session does not have.

    Raises:
        NotFound: there is no such branch or turn.
    """
    have = len(whole.branches)
    if view.branch is not None and view.branch > have:
        raise NotFound(f"The session has {count(have, 'branch', 'branches')}; there is no branch {view.branch}.")
    last = max((turn.number for turn in whole.turns), default=0)
    if view.from_turn is not None and view.from_turn > last:
        raise NotFound(f"The session has {count(last, 'turn')}; there is no turn {view.from_turn}.")


def staging() -> tempfile.TemporaryDirectory[str]:
    """A folder for the work, which nobody else may look into and which is gone afterwards."""
    return tempfile.TemporaryDirectory(prefix="threadline-export-")
