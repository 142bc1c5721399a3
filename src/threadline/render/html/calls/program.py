"""Tools that steer the program: schedules, worktrees, findings, what was published."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from threadline.model.call import Call
from threadline.model.results import ArtifactResult, CronResult, ReportFindingsResult, SendUserFileResult
from threadline.render.figures import count
from threadline.render.html.calls.address import address_of
from threadline.render.html.calls.ended import clean
from threadline.render.html.calls.pieces import facts, file_name, printed, prose, some
from threadline.render.html.calls.tool_view import ToolView
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.given import list_of, number_of, text_of, value_of
from threadline.render.html.scene import Scene
from threadline.render.html.words import one

_LAST = 253_402_300_799
"""The last second that a date can name."""


def _said(made: Call, scene: Scene) -> Markup:
    """What the tool said, as it was said."""
    return printed(clean(made.output), made, scene)


def _schedule(made: Call, scene: Scene) -> Markup:
    """What is to be done, and when."""
    given = made.input
    delay = number_of(given, "delaySeconds")
    said = (
        text_of(given, "cron"),
        "again and again" if value_of(given, "recurring") is True else "",
        f"in {count(delay, 'second')}" if delay else "",
        text_of(given, "reason"),
        text_of(given, "id"),
    )
    return join((facts(*said), prose(text_of(given, "prompt"), made, scene)))


def _scheduled(made: Call, scene: Scene) -> Markup:
    result = made.result
    if not isinstance(result, CronResult):
        return join((_schedule(made, scene), _said(made, scene)))
    if result.jobs is not None:
        rows = some(result.jobs, lambda job: el("li", one(" · ".join(_job(job)), 400)), "jobs", made, scene)
        return rows or facts("no jobs")
    next_time = when(result.next_fire_at, scene)
    said = (result.human_schedule, f"job {result.id}" if result.id else "", f"next {next_time}" if next_time else "")
    return join((_schedule(made, scene), facts(*said)))


def _job(job: Any) -> Iterator[str]:
    yield from filter(None, (text_of(job, "id"), text_of(job, "humanSchedule", "cron"), text_of(job, "prompt")))


def when(milliseconds: Any, scene: Scene) -> str:
    """A time that is told in milliseconds, as people read it; nothing where it is none."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return ""
    seconds = milliseconds / 1000
    return scene.told(datetime.fromtimestamp(seconds, UTC)) if 0 < seconds < _LAST else ""


def _findings(made: Call, scene: Scene) -> Markup:
    """`ReportFindings`: what a review found, and where."""
    result = made.result
    found = list_of(result, "findings") if isinstance(result, ReportFindingsResult) else []
    found = found or list_of(made.input, "findings")
    rows = some(found, lambda finding: el("li", *_finding(finding, scene)), "findings", made, scene)
    return join((facts(count(len(found), "finding"), text_of(result, "level")), rows))


def _finding(finding: Any, scene: Scene) -> Iterator[Markup | str]:
    path, line = text_of(finding, "file"), number_of(finding, "line")
    yield file_name(path, scene)
    at = f":{line}" if line is not None and path else ""
    what = filter(None, (text_of(finding, "verdict"), text_of(finding, "category")))
    yield one(f"{at} {' · '.join(what)}", 200)
    summary = text_of(finding, "summary", "short_summary")
    yield el("p", one(summary, 2000))
    if more := text_of(finding, "failure_scenario"):
        yield el("p", one(more, 2000), class_="told")


def _published(made: Call, scene: Scene) -> Markup:
    result = made.result
    if not isinstance(result, ArtifactResult):
        return _said(made, scene)
    path = result.path or text_of(made.input, "file_path")
    link = el("p", address_of(result.url, result.title or ""), class_="file") if result.url else EMPTY
    name = el("p", file_name(path, scene), class_="file") if path else EMPTY
    return join((link, name, facts(text_of(made.input, "description"), "updated" if result.updated else "")))


def _given(made: Call, scene: Scene) -> Markup:
    """`SendUserFile`: the files that the person was given."""
    result = made.result
    if not isinstance(result, SendUserFileResult):
        return _said(made, scene)
    files = [
        text_of(item, "path", "file_path", "name") or (item if isinstance(item, str) else "")
        for item in result.attachments or ()
    ]
    rows = some([path for path in files if path], lambda path: el("li", file_name(path, scene)), "files", made, scene)
    return join((facts(result.caption, result.status), rows))


VIEWS: dict[str, ToolView] = {
    **dict.fromkeys(("CronCreate", "CronDelete", "CronList", "ScheduleWakeup"), ToolView(_scheduled, _schedule)),
    "ReportFindings": ToolView(_findings, _findings),
    "Artifact": ToolView(_published),
    "SendUserFile": ToolView(_given),
    **dict.fromkeys(("EnterPlanMode", "ListAgents", "TeamDelete", "StructuredOutput"), ToolView(_said)),
}
