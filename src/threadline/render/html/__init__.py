"""A session as HTML: one renderer for the page, its fragments and the exported file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadline.lazy import lazy_exports

if TYPE_CHECKING:
    from threadline.render.html.calls.view import render_call
    from threadline.render.html.code import render_raw_entry
    from threadline.render.html.conversation import ConversationRenderer, MessageStats, StatsByMessage
    from threadline.render.html.element import EMPTY, Child, Value, el, join
    from threadline.render.html.format import (
        cost_element,
        facts_row,
        number_element,
        project_link,
        time_element,
        time_zone_note,
    )
    from threadline.render.html.images import image_data, images_of_entry
    from threadline.render.html.page import icon, render_page, stylesheet, stylesheet_hash
    from threadline.render.html.scene import Scene
    from threadline.render.html.sections import Section
    from threadline.render.html.state import render_state
    from threadline.render.html.svg_charts import (
        MAX_PARTS,
        Bar,
        DayActivity,
        activity_calendar,
        bar_chart,
        weekday_hour_map,
    )
    from threadline.render.html.tables import (
        KEPT_HINT,
        SHORT_COLUMNS,
        Column,
        SessionRow,
        TableRow,
        folded_table,
        render_table,
        session_table,
    )
    from threadline.render.html.usage_strip import MAX_BANDS, StripMarks, UsageBand, draw_usage_strip

__getattr__ = lazy_exports(
    __name__,
    {
        "calls.view": ["render_call"],
        "code": ["render_raw_entry"],
        "conversation": ["ConversationRenderer", "MessageStats", "StatsByMessage"],
        "element": ["Child", "EMPTY", "Value", "el", "join"],
        "format": ["cost_element", "facts_row", "number_element", "project_link", "time_element", "time_zone_note"],
        "images": ["image_data", "images_of_entry"],
        "page": ["icon", "render_page", "stylesheet", "stylesheet_hash"],
        "scene": ["Scene"],
        "sections": ["Section"],
        "state": ["render_state"],
        "svg_charts": ["Bar", "DayActivity", "MAX_PARTS", "activity_calendar", "bar_chart", "weekday_hour_map"],
        "tables": [
            "Column",
            "KEPT_HINT",
            "SHORT_COLUMNS",
            "SessionRow",
            "TableRow",
            "folded_table",
            "render_table",
            "session_table",
        ],
        "usage_strip": ["MAX_BANDS", "StripMarks", "UsageBand", "draw_usage_strip"],
    },
)
