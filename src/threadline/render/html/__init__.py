"""Render sessions as HTML, for the web pages, their fragments and exported files.

`el` and `join` build HTML from Python calls and escape all text. `render_page` creates a document; `stylesheet` and
`icon` provide its CSS and icons. `ConversationRenderer` renders an agent's conversation in `Section`s, `render_call` a
tool call, `render_state` the state at an entry, `render_unified_diff` a diff, and `render_raw_entry` an entry's JSON. A
`Scene` says what to show, how to link and in which time zone. `render_table` and `session_table` render tables, and
`bar_chart`, `daily_strip`, `activity_calendar`, `weekday_hour_map`, `draw_treemap` and `draw_usage_strip` draw SVG
charts.

This package needs the extra `threadline[web]`. It uses no inline styles, because the pages' policy forbids them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import export_lazily

if TYPE_CHECKING:
    from threadline.render.html.calls.diff import render_unified_diff
    from threadline.render.html.calls.view import render_call
    from threadline.render.html.code import render_raw_entry
    from threadline.render.html.conversation import ConversationRenderer, MessageStats, StatsByMessage
    from threadline.render.html.digest import render_digest
    from threadline.render.html.element import (
        EMPTY,
        Child,
        Value,
        amount_element,
        chip_row,
        choice_chip,
        el,
        facts_row,
        join,
        number_element,
        project_link,
        time_element,
        time_zone_note,
        with_code,
    )
    from threadline.render.html.images import image_data, images_of_entry
    from threadline.render.html.page import icon, render_page, stylesheet, stylesheet_hash
    from threadline.render.html.sections import PlaceLinks, Scene, Section
    from threadline.render.html.state import render_file_content, render_state
    from threadline.render.html.svg_charts import (
        MAX_PARTS,
        Bar,
        Curve,
        DayActivity,
        activity_calendar,
        bar_chart,
        curve_chart,
        daily_strip,
        weekday_hour_map,
    )
    from threadline.render.html.tables import (
        ALL_COLUMNS,
        KEPT_HINT,
        SHORT_COLUMNS,
        Column,
        SessionRow,
        TableRow,
        figures_row,
        folded_table,
        render_table,
        session_detail,
        session_table,
        share_bar,
    )
    from threadline.render.html.timeline import IDLE, MARK_KINDS, Mark, Span, draw_timeline, find_gaps
    from threadline.render.html.treemap import Tile, draw_treemap
    from threadline.render.html.usage_strip import MAX_BANDS, StripMarks, UsageBand, draw_usage_strip

export_lazily(
    __name__,
    {
        "calls.diff": ["render_unified_diff"],
        "calls.view": ["render_call"],
        "code": ["render_raw_entry"],
        "conversation": ["ConversationRenderer", "MessageStats", "StatsByMessage"],
        "digest": ["render_digest"],
        "element": [
            "Child",
            "EMPTY",
            "Value",
            "amount_element",
            "el",
            "chip_row",
            "choice_chip",
            "facts_row",
            "join",
            "number_element",
            "project_link",
            "time_element",
            "time_zone_note",
            "with_code",
        ],
        "images": ["image_data", "images_of_entry"],
        "page": ["icon", "render_page", "stylesheet", "stylesheet_hash"],
        "sections": ["PlaceLinks", "Scene", "Section"],
        "state": ["render_file_content", "render_state"],
        "svg_charts": [
            "Bar",
            "Curve",
            "DayActivity",
            "MAX_PARTS",
            "activity_calendar",
            "bar_chart",
            "curve_chart",
            "daily_strip",
            "weekday_hour_map",
        ],
        "tables": [
            "Column",
            "KEPT_HINT",
            "ALL_COLUMNS",
            "SHORT_COLUMNS",
            "SessionRow",
            "TableRow",
            "figures_row",
            "folded_table",
            "render_table",
            "session_detail",
            "session_table",
            "share_bar",
        ],
        "treemap": ["Tile", "draw_treemap"],
        "timeline": ["IDLE", "MARK_KINDS", "Mark", "Span", "draw_timeline", "find_gaps"],
        "usage_strip": ["MAX_BANDS", "StripMarks", "UsageBand", "draw_usage_strip"],
    },
)
