"""Views of tools that control Claude Code, and the default view for any other tool, MCP tools included."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from threadline.model.calls import Call
from threadline.model.results import ArtifactResult, CronResult, McpResult, ReportFindingsResult, SendUserFileResult
from threadline.model.text import count
from threadline.render import list_of, number_of, shorten, text_of, value_of
from threadline.render.html.calls.components import (
    ToolView,
    bounded_list,
    code_block,
    facts_line,
    file_link,
    output_block,
    prose_block,
    strip_program_tags,
)
from threadline.render.html.code import indent_json, is_json, to_indented_json
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.images import render_call_images
from threadline.render.html.markdown import external_link
from threadline.render.html.scene import Scene

_MAX_TEXTS = 6
_MAX_JSON = 400_000


def render_input(made: Call, scene: Scene) -> Markup:
    """The input: JSON, and texts of several lines below it, each by its name, as they would be read."""
    value = made.input
    if value is None or value in ({}, [], ""):
        return Markup()
    if isinstance(value, str):
        return json_or_text(value, made, scene, class_="given")
    long = _long_texts(value)
    rest = {name: "…" if name in long else part for name, part in value.items()} if long else value
    return join(
        (
            code_block(to_indented_json(rest), "json", made, scene, class_="given") if rest else Markup(),
            *(_named_text(name, text, made, scene) for name, text in long.items()),
        )
    )


def _long_texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    texts = {name: text for name, text in value.items() if isinstance(text, str) and "\n" in text.strip("\n")}
    return dict(list(texts.items())[:_MAX_TEXTS])


def _named_text(name: str, text: str, made: Call, scene: Scene) -> Markup:
    return join((el("p", shorten(name, 60), class_="label"), output_block(text, made, scene, class_="given")))


def json_or_text(text: str, made: Call, scene: Scene, class_: str = "output") -> Markup:
    """JSON laid out and coloured, anything else as it is."""
    if len(text) <= _MAX_JSON and is_json(text):
        return code_block(indent_json(text), "json", made, scene, class_=class_)
    return output_block(text, made, scene, class_=class_)


def _default_result(made: Call, scene: Scene) -> Markup:
    return join(
        (render_input(made, scene), json_or_text(_output_text(made), made, scene), render_call_images(made, scene))
    )


def _output_text(made: Call) -> str:
    """What the model saw; of a tool that gave it none, what the program kept, or what the API put into its block."""
    if text := strip_program_tags(made.output):
        return text
    if isinstance(made.result, McpResult) and made.result.structured_content is not None:
        return to_indented_json(made.result.structured_content)
    content: Any = made.block.content if made.block is not None else None
    return to_indented_json(content) if isinstance(content, dict) else ""


DEFAULT_VIEW = ToolView(_default_result, render_input)
"""The view of a tool that has none of its own."""


_LAST_SECOND = 253_402_300_799
"""The last second that a date can name."""


def _plain_result(made: Call, scene: Scene) -> Markup:
    """What the tool said, as it was said."""
    return output_block(strip_program_tags(made.output), made, scene)


def _schedule_input(made: Call, scene: Scene) -> Markup:
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
    return join((facts_line(*said), prose_block(text_of(given, "prompt"), made, scene)))


def _schedule_result(made: Call, scene: Scene) -> Markup:
    result = made.result
    if not isinstance(result, CronResult):
        return join((_schedule_input(made, scene), _plain_result(made, scene)))
    if result.jobs is not None:
        rows = bounded_list(
            result.jobs, lambda job: el("li", shorten(" · ".join(_job_facts(job)), 400)), "jobs", made, scene
        )
        return rows or facts_line("no jobs")
    next_time = format_milliseconds(result.next_fire_at, scene)
    said = (result.human_schedule, f"job {result.id}" if result.id else "", f"next {next_time}" if next_time else "")
    return join((_schedule_input(made, scene), facts_line(*said)))


def _job_facts(job: Any) -> Iterator[str]:
    yield from filter(None, (text_of(job, "id"), text_of(job, "humanSchedule", "cron"), text_of(job, "prompt")))


def format_milliseconds(milliseconds: Any, scene: Scene) -> str:
    """A time that is told in milliseconds, as people read it; nothing where it is none."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return ""
    seconds = milliseconds / 1000
    return scene.told(datetime.fromtimestamp(seconds, UTC)) if 0 < seconds < _LAST_SECOND else ""


def _findings_result(made: Call, scene: Scene) -> Markup:
    """`ReportFindings`: what a review found, and where."""
    result = made.result
    found = list_of(result, "findings") if isinstance(result, ReportFindingsResult) else []
    found = found or list_of(made.input, "findings")
    rows = bounded_list(found, lambda finding: el("li", *_finding_row(finding, scene)), "findings", made, scene)
    return join((facts_line(count(len(found), "finding"), text_of(result, "level")), rows))


def _finding_row(finding: Any, scene: Scene) -> Iterator[Markup | str]:
    path, line = text_of(finding, "file"), number_of(finding, "line")
    yield file_link(path, scene)
    at = f":{line}" if line is not None and path else ""
    what = filter(None, (text_of(finding, "verdict"), text_of(finding, "category")))
    yield shorten(f"{at} {' · '.join(what)}", 200)
    summary = text_of(finding, "summary", "short_summary")
    yield el("p", shorten(summary, 2000))
    if more := text_of(finding, "failure_scenario"):
        yield el("p", shorten(more, 2000), class_="told")


def _artifact_result(made: Call, scene: Scene) -> Markup:
    result = made.result
    if not isinstance(result, ArtifactResult):
        return _plain_result(made, scene)
    path = result.path or text_of(made.input, "file_path")
    link = el("p", external_link(result.url, result.title or ""), class_="file") if result.url else EMPTY
    name = el("p", file_link(path, scene), class_="file") if path else EMPTY
    return join((link, name, facts_line(text_of(made.input, "description"), "updated" if result.updated else "")))


def _sent_files_result(made: Call, scene: Scene) -> Markup:
    """`SendUserFile`: the files that the person was given."""
    result = made.result
    if not isinstance(result, SendUserFileResult):
        return _plain_result(made, scene)
    files = [
        text_of(item, "path", "file_path", "name") or (item if isinstance(item, str) else "")
        for item in result.attachments or ()
    ]
    rows = bounded_list(
        [path for path in files if path], lambda path: el("li", file_link(path, scene)), "files", made, scene
    )
    return join((facts_line(result.caption, result.status), rows))


PROGRAM_VIEWS: dict[str, ToolView] = {
    **dict.fromkeys(
        ("CronCreate", "CronDelete", "CronList", "ScheduleWakeup"), ToolView(_schedule_result, _schedule_input)
    ),
    "ReportFindings": ToolView(_findings_result, _findings_result),
    "Artifact": ToolView(_artifact_result),
    "SendUserFile": ToolView(_sent_files_result),
    **dict.fromkeys(("EnterPlanMode", "ListAgents", "TeamDelete", "StructuredOutput"), ToolView(_plain_result)),
}
