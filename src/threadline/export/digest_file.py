"""Render a digest to be shared: redacted, as Markdown, text, JSON or self-contained HTML, and checked for leaks."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import tzinfo
from typing import Literal

import msgspec
from msgspec.structs import replace

from threadline.errors import Missing
from threadline.export.leak_check import find_leftovers, raise_if_unsafe
from threadline.json_values import encode_json
from threadline.model.insight.digest import Digest, DigestCause, DigestProject, DigestSession, SessionHint, WorkDone
from threadline.redact import Level, Redactor, Settings
from threadline.render import Style, digest_lines, digest_to_markdown

DigestFormat = Literal["md", "html", "json", "text"]
_TEXT_WIDTH = 100
_CUT_WORD = re.compile(r"\S+…")


def render_digest_file(
    digest: Digest, form: DigestFormat, zone: tzinfo, *, max_sessions: int, settings: Settings | None
) -> str:
    """Render a digest as a file. Without `settings`, nothing is redacted.

    Raises:
        UnsafeExport: the file would still contain something that must not be shared.
        Missing: markupsafe is not installed.
    """
    redactor = Redactor(settings) if settings is not None else None
    shared = redact_digest(digest, redactor) if redactor is not None else digest
    text = _RENDERERS[form](shared, zone, max_sessions)
    if redactor is not None:
        raise_if_unsafe(find_leftovers(redactor, form, text, "the digest"))
    return text


def _render_markdown(digest: Digest, zone: tzinfo, max_sessions: int) -> str:
    return "\n".join(digest_to_markdown(digest, zone, max_sessions=max_sessions)) + "\n"


def _render_text(digest: Digest, zone: tzinfo, max_sessions: int) -> str:
    lines = digest_lines(digest, zone, _TEXT_WIDTH, max_sessions=max_sessions)
    return "".join(f"{Style(colour=False).line(line)}\n" for line in lines)


def _render_json(digest: Digest, _zone: tzinfo, _max_sessions: int) -> str:
    return msgspec.json.format(encode_json(digest.record()), indent=2).decode() + "\n"


def _render_html(digest: Digest, zone: tzinfo, max_sessions: int) -> str:
    try:
        from threadline.export.html_files import render_document  # noqa: PLC0415 - needs markupsafe
        from threadline.render.html import render_digest  # noqa: PLC0415 - likewise
    except ModuleNotFoundError as error:
        raise Missing(f"HTML needs {error.name}, which is not installed. Run: pip install 'threadline[web]'") from None
    body = render_digest(digest, zone, max_sessions=max_sessions)
    return render_document(f"Digest {digest.period.name}", body, kind="digest-page")


_RENDERERS: dict[DigestFormat, Callable[[Digest, tzinfo, int], str]] = {
    "md": _render_markdown,
    "html": _render_html,
    "json": _render_json,
    "text": _render_text,
}


def redact_digest(digest: Digest, redactor: Redactor) -> Digest:
    """Replace secrets and personal data in every text of a digest. At the level `metrics`, replace every text."""
    for text in _texts(digest):
        redactor.learn(text)
    for project in digest.projects:
        redactor.learn_projects({"cwd": project.project})
    return _DigestRedactor(redactor, digest).redact(digest)


def _texts(digest: Digest) -> list[str]:
    sessions = digest.sessions
    causes = (*digest.causes, *digest.waste)
    return [
        *(project.project for project in digest.projects),
        *(session.title for session in sessions),
        *(result for session in sessions for result in session.work.results),
        *(cause.example for cause in causes),
        *(cause.place for cause in causes if cause.place is not None),
    ]


class _DigestRedactor:
    """Redacts the texts of a digest."""

    def __init__(self, redactor: Redactor, digest: Digest) -> None:
        self._redactor = redactor
        self._is_hidden = redactor.level is Level.METRICS
        self._numbers = {project.project: number for number, project in enumerate(digest.projects, 1)}

    def redact(self, digest: Digest) -> Digest:
        return replace(
            digest,
            projects=tuple(map(self._project, digest.projects)),
            causes=tuple(map(self._cause, digest.causes)),
            waste=tuple(map(self._cause, digest.waste)),
            hints=tuple(map(self._hint, digest.hints)),
            work=self._work(digest.work),
        )

    def _text(self, text: str) -> str:
        # A word that was cut may be the start of a secret that no rule recognizes any more.
        whole = _CUT_WORD.sub("…", text)
        return f"({len(text):,} characters)" if self._is_hidden and text else self._redactor.redact(whole)

    def _path(self, path: str) -> str:
        return f"project {self._numbers.get(path, 0)}" if self._is_hidden else self._redactor.redact(path)

    def _project(self, project: DigestProject) -> DigestProject:
        return replace(
            project,
            project=self._path(project.project),
            sessions=tuple(map(self._session, project.sessions)),
            work=self._work(project.work),
        )

    def _session(self, session: DigestSession) -> DigestSession:
        return replace(
            session,
            title=self._text(session.title),
            project=self._path(session.project),
            work=self._work(session.work),
        )

    def _work(self, work: WorkDone) -> WorkDone:
        return replace(work, results=() if self._is_hidden else tuple(map(self._text, work.results)))

    def _cause(self, cause: DigestCause) -> DigestCause:
        place = self._redactor.redact(cause.place) if cause.place is not None and not self._is_hidden else None
        return replace(cause, example="" if self._is_hidden else self._text(cause.example), place=place)

    def _hint(self, hint: SessionHint) -> SessionHint:
        return replace(hint, title=self._text(hint.title), project=self._path(hint.project))
