"""Views of tools that control Claude Code, and the default view for any other tool, MCP tools included."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from threadline.model.call_summary import list_of, number_of, strip_program_tags, text_of, value_of
from threadline.model.calls import Call
from threadline.model.results import ArtifactResult, CronResult, McpResult, ReportFindingsResult, SendUserFileResult
from threadline.model.text import count
from threadline.render import shorten
from threadline.render.html.calls.components import (
    ToolView,
    bounded_list,
    code_block,
    facts_line,
    file_heading,
    file_link,
    output_block,
    plain_output,
    prose_block,
)
from threadline.render.html.code import indent_json, is_json, to_indented_json
from threadline.render.html.element import EMPTY, el, join
from threadline.render.html.images import render_call_images
from threadline.render.html.markdown import external_link
from threadline.render.html.sections import Scene

_MAX_TEXTS = 6
_MAX_JSON = 400_000


def render_input(call: Call, scene: Scene) -> Markup:
    """The input as JSON. Multi-line texts are shown below it, each with its field name."""
    value = call.input
    if value is None or value in ({}, [], ""):
        return Markup()
    if isinstance(value, str):
        return json_or_text(value, call, scene, class_="input")
    long = _long_texts(value)
    rest = {name: "…" if name in long else part for name, part in value.items()} if long else value
    return join(
        (
            code_block(to_indented_json(rest), "json", call, scene, class_="input") if rest else Markup(),
            *(_named_text(name, text, call, scene) for name, text in long.items()),
        )
    )


def _long_texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    texts = {name: text for name, text in value.items() if isinstance(text, str) and "\n" in text.strip("\n")}
    return dict(list(texts.items())[:_MAX_TEXTS])


def _named_text(name: str, text: str, call: Call, scene: Scene) -> Markup:
    return join((el("p", shorten(name, 60), class_="label"), output_block(text, call, scene, class_="input")))


def json_or_text(text: str, call: Call, scene: Scene, class_: str = "output") -> Markup:
    """Indented and highlighted JSON; any other text as it is."""
    if len(text) <= _MAX_JSON and is_json(text):
        return code_block(indent_json(text), "json", call, scene, class_=class_)
    return output_block(text, call, scene, class_=class_)


def _default_result(call: Call, scene: Scene) -> Markup:
    return join(
        (render_input(call, scene), json_or_text(_output_text(call), call, scene), render_call_images(call, scene))
    )


def _output_text(call: Call) -> str:
    """The output for the model; if it is empty, the structured result or the content of the API's block."""
    if text := strip_program_tags(call.output):
        return text
    if isinstance(call.result, McpResult) and call.result.structured_content is not None:
        return to_indented_json(call.result.structured_content)
    content: Any = call.block.content if call.block is not None else None
    return to_indented_json(content) if isinstance(content, dict) else ""


DEFAULT_VIEW = ToolView(_default_result, render_input)
"""The view of a tool without its own view."""


_LAST_SECOND = 253_402_300_799
"""The last second that a `datetime` can represent."""


def _schedule_input(call: Call, scene: Scene) -> Markup:
    """The prompt of a scheduled job and its schedule."""
    arguments = call.input
    delay = number_of(arguments, "delaySeconds")
    facts = (
        text_of(arguments, "cron"),
        "recurring" if value_of(arguments, "recurring") is True else "",
        f"in {count(delay, 'second')}" if delay else "",
        text_of(arguments, "reason"),
        text_of(arguments, "id"),
    )
    return join((facts_line(*facts), prose_block(text_of(arguments, "prompt"), call, scene)))


def _schedule_result(call: Call, scene: Scene) -> Markup:
    result = call.result
    if not isinstance(result, CronResult):
        return join((_schedule_input(call, scene), plain_output(call, scene)))
    if result.jobs is not None:
        rows = bounded_list(
            result.jobs, lambda job: el("li", shorten(" · ".join(_job_facts(job)), 400)), "jobs", call, scene
        )
        return rows or facts_line("no jobs")
    next_time = format_milliseconds(result.next_fire_at, scene)
    facts = (result.human_schedule, f"job {result.id}" if result.id else "", f"next {next_time}" if next_time else "")
    return join((_schedule_input(call, scene), facts_line(*facts)))


def _job_facts(job: Any) -> Iterator[str]:
    yield from filter(None, (text_of(job, "id"), text_of(job, "humanSchedule", "cron"), text_of(job, "prompt")))


def format_milliseconds(milliseconds: Any, scene: Scene) -> str:
    """Format a time in milliseconds since the epoch; empty if it is not a valid time."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return ""
    # Compared before it is divided: a float does not hold every integer.
    is_time = 0 < milliseconds < _LAST_SECOND * 1000
    return scene.format_time(datetime.fromtimestamp(milliseconds / 1000, UTC)) if is_time else ""


def _findings_result(call: Call, scene: Scene) -> Markup:
    """`ReportFindings`: the findings of a review, with file and line."""
    result = call.result
    findings = list_of(result, "findings") if isinstance(result, ReportFindingsResult) else []
    findings = findings or list_of(call.input, "findings")
    rows = bounded_list(findings, lambda finding: el("li", *_finding_row(finding, scene)), "findings", call, scene)
    return join((facts_line(count(len(findings), "finding"), text_of(result, "level")), rows))


def _finding_row(finding: Any, scene: Scene) -> Iterator[Markup | str]:
    path, line = text_of(finding, "file"), number_of(finding, "line")
    yield file_link(path, scene)
    position = f":{line}" if line is not None and path else ""
    what = filter(None, (text_of(finding, "verdict"), text_of(finding, "category")))
    yield shorten(f"{position} {' · '.join(what)}", 200)
    summary = text_of(finding, "summary", "short_summary")
    yield el("p", shorten(summary, 2000))
    if more := text_of(finding, "failure_scenario"):
        yield el("p", shorten(more, 2000), class_="description")


def _artifact_result(call: Call, scene: Scene) -> Markup:
    result = call.result
    if not isinstance(result, ArtifactResult):
        return plain_output(call, scene)
    path = result.path or text_of(call.input, "file_path")
    link = el("p", external_link(result.url, result.title or ""), class_="file") if result.url else EMPTY
    return join(
        (
            link,
            file_heading(path, scene),
            facts_line(text_of(call.input, "description"), "updated" if result.updated else ""),
        )
    )


def _sent_files_result(call: Call, scene: Scene) -> Markup:
    """`SendUserFile`: the files that were sent to the person."""
    result = call.result
    if not isinstance(result, SendUserFileResult):
        return plain_output(call, scene)
    files = [
        text_of(item, "path", "file_path", "name") or (item if isinstance(item, str) else "")
        for item in result.attachments or ()
    ]
    rows = bounded_list(
        [path for path in files if path], lambda path: el("li", file_link(path, scene)), "files", call, scene
    )
    return join((facts_line(result.caption, result.status), rows))


PROGRAM_VIEWS: dict[str, ToolView] = {
    **dict.fromkeys(
        ("CronCreate", "CronDelete", "CronList", "ScheduleWakeup"), ToolView(_schedule_result, _schedule_input)
    ),
    "ReportFindings": ToolView(_findings_result, _findings_result),
    "Artifact": ToolView(_artifact_result),
    "SendUserFile": ToolView(_sent_files_result),
    **dict.fromkeys(("EnterPlanMode", "ListAgents", "TeamDelete", "StructuredOutput"), ToolView(plain_output)),
}
