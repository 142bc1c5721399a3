"""A session as text reads like the conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.render.sessions import session, text_lines
from tests.transcripts import SESSION, Pen, call, chain, meta, prompt, reply, transcript

from threadline.render import Detail, display_width

AGENT = "a0123456789abcdef"


def edit_details() -> dict[str, Any]:
    """The details of an `Edit` result."""
    hunk = {"oldStart": 3, "oldLines": 2, "newStart": 3, "newLines": 2, "lines": [" a", "-b", "+c"]}
    return {"filePath": "/work/app/x.py", "oldString": "b", "newString": "c", "structuredPatch": [hunk]}


def test_renders_a_turn(tmp_path: Path) -> None:
    """The prompt with number and time, the reply as Markdown, the call with outcome and time, the output folded."""
    sample = session(
        tmp_path,
        prompt("Fix the **test**"),
        reply({"type": "thinking", "thinking": "Hm.\nLet me see."}),
        reply("I will run it:\n\n- `pytest`"),
        call("Bash", "pytest -q", result="\n".join(f"line {n}" for n in range(10))),
        reply("Done."),
    )
    assert text_lines(sample) == [
        "── turn 1 · 2026-01-05 09:00 " + "─" * 51,
        "❯ Fix the **test**",  # noqa: RUF001 - the sign of a prompt
        "",
        "✻ Hm. Let me see. (2 lines)",
        "",
        "● I will run it:",
        "",
        "  • pytest",
        "",
        "✓ Bash  pytest -q  1.0s",
        "  ⎿ line 0",
        "    line 1",
        "    line 2",
        "    line 3",
        "    … 6 more lines",
        "",
        "● Done.",
    ]


def test_starts_with_the_facts_of_the_session(tmp_path: Path) -> None:
    """Title, id, project, model and time come first."""
    from threadline.render import session_to_text  # noqa: PLC0415 - needed only here

    sample = session(tmp_path, prompt("hi"), reply("ok"), meta("custom-title", customTitle="A name"))
    lines = list(session_to_text(sample))
    assert lines[0] == "A name"
    assert lines[1] == f"{SESSION} · /work/app · sonnet-4-5 · 2026-01-05 09:00 (UTC)"


def test_shows_edits_as_diffs(tmp_path: Path) -> None:
    """Removed and added lines are numbered, and red and green if there are colours."""
    sample = session(
        tmp_path, prompt("x"), call("Edit", {"file_path": "/work/app/x.py"}, result="ok", details=edit_details())
    )
    assert text_lines(sample)[3:] == [
        "✓ Edit  x.py  +1 -1  1.0s",
        "  ⎿     3   a",
        "        4 - b",
        "        4 + c",
    ]
    coloured = "\n".join(text_lines(sample, colour=True))
    assert "\x1b[31m- b\x1b[0m" in coloured
    assert "\x1b[32m+ c\x1b[0m" in coloured


def test_a_diff_has_no_line_for_a_missing_newline(tmp_path: Path) -> None:
    """The note of `diff` that a file does not end with a newline is not a line of the file, and has no number."""
    hunk = {"oldStart": 3, "newStart": 3, "lines": ["-b", "\\ No newline at end of file", "+c", " d"]}
    details = {"filePath": "/work/app/x.py", "structuredPatch": [hunk]}
    sample = session(tmp_path, prompt("x"), call("Edit", {"file_path": "/work/app/x.py"}, result="ok", details=details))
    assert text_lines(sample)[4:] == ["  ⎿     3 - b", "        3 + c", "        4   d"]


def test_an_edit_without_a_patch_shows_its_arguments(tmp_path: Path) -> None:
    """The results of agents are often not stored, but the call has the strings."""
    arguments = {"file_path": "y.py", "old_string": "old", "new_string": "new"}
    sample = session(tmp_path, prompt("x"), call("Edit", arguments, result="The file y.py has been updated."))
    assert [line.strip() for line in text_lines(sample)[4:]] == ["⎿       - old", "+ new"]


def test_shows_a_new_file_as_added_lines(tmp_path: Path) -> None:
    """A created file is shown completely, and folded if it is long."""
    details = {"type": "create", "filePath": "n.py", "content": "a\n" * 40, "structuredPatch": []}
    lines = text_lines(
        session(tmp_path, prompt("x"), call("Write", {"file_path": "n.py"}, result="ok", details=details))
    )
    assert lines[3] == "✓ Write  n.py  +40 -0  1.0s"
    assert lines[-1] == "    … 16 more lines"


def test_shows_todos_as_checkboxes(tmp_path: Path) -> None:
    """Completed, in progress and pending."""
    todos = [
        {"content": name, "status": state}
        for name, state in (("one", "completed"), ("two", "in_progress"), ("three", "pending"))
    ]
    sample = session(
        tmp_path, prompt("x"), call("TodoWrite", {"todos": todos}, result="ok", details={"newTodos": todos})
    )
    assert [line.strip() for line in text_lines(sample)[3:]] == ["✓ TodoWrite  1.0s", "⎿ ☒ one", "◐ two", "☐ three"]


def test_marks_outcomes(tmp_path: Path) -> None:
    """An error, a refusal with the user's words, and a call that is still pending."""
    refusal = "The user doesn't want to proceed with this tool use. the user said:\nuse make"
    lines = text_lines(
        session(
            tmp_path,
            prompt("x"),
            call("Bash", "false", result="Exit code 1\nboom", error=True),
            call("Bash", "rm -r x", result=refusal, error=True, details="User rejected tool use"),
            call("Bash", "sleep 9"),
        )
    )
    assert "✗ Bash  false  error  1.0s" in lines
    assert "    boom" in lines
    assert "⊘ Bash  rm -r x  denied  1.0s" in lines
    assert "  ❯ use make" in lines  # noqa: RUF001 - the sign of a person's words
    assert "◌ Bash  sleep 9  pending" in lines


def test_shows_images_interrupts_commands_and_failures(tmp_path: Path) -> None:
    """Content that is not text is named, and other actions of the user are labelled."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    lines = text_lines(
        session(
            tmp_path,
            prompt([{"type": "text", "text": "look"}, image]),
            prompt([{"type": "text", "text": "[Request interrupted by user]"}]),
            prompt("<command-name>/model</command-name><command-args>opus</command-args>"),
            prompt("<local-command-stdout>Set model to \x1b[1mopus\x1b[22m</local-command-stdout>"),
            prompt("<bash-input>ls</bash-input>"),
            chain(
                "system",
                subtype="api_error",
                error={"status": 529, "error": {"error": {"message": "Overloaded"}}},
                retryAttempt=2,
                maxRetries=10,
            ),
            reply("API Error: 500", isApiErrorMessage=True, message={"model": "<synthetic>"}),
            prompt("<task-notification><summary>Agent done</summary></task-notification>"),
        )
    )
    assert "  (image)" in lines
    assert "■ interrupted by the user" in lines
    assert "▸ /model opus" in lines
    assert "  ⎿ Set model to opus" in lines
    assert "! ls" in lines
    assert "✗ API error: 529 Overloaded · attempt 2 of 10" in lines
    assert "✗ API error: API Error: 500" in lines
    assert "◦ background task: Agent done" in lines


def test_shows_queued_prompts_in_order(tmp_path: Path) -> None:
    """A prompt typed during work is an attachment beside the thread. It is shown between its neighbours."""
    attachment = {"type": "queued_command", "prompt": "faster, please", "commandMode": "prompt"}
    lines = text_lines(
        session(
            tmp_path,
            prompt("x"),
            call("Bash", "one", result="1"),
            chain("attachment", attachment=attachment),
            call("Bash", "two", result="2"),
        )
    )
    order = [lines.index(line) for line in lines if "one" in line or "faster" in line or "two" in line]
    assert order == sorted(order)
    assert len(order) == 3
    assert "  (typed while the model was working)" in lines


def test_shows_a_compaction_as_a_rule(tmp_path: Path) -> None:
    """With the tokens before and after, and the summary folded. Earlier turns are still shown."""

    def boundary(pen: Pen) -> Any:
        before, pen.parent = pen.parent, None
        metadata = {"trigger": "auto", "preTokens": 155000, "postTokens": 12300}
        yield pen.chain("system", subtype="compact_boundary", logicalParentUuid=before, compactMetadata=metadata)
        yield pen.chain(
            "user",
            isCompactSummary=True,
            message={"role": "user", "content": "This session is being continued\n" + "more\n" * 9},
        )

    lines = text_lines(session(tmp_path, prompt("before"), reply("yes"), boundary, prompt("after"), reply("fine")))
    at = lines.index("══ compacted (auto) · 155.0k → 12.3k tokens " + "═" * 36)
    assert "❯ before" in lines[:at]  # noqa: RUF001 - the sign of a prompt
    assert lines[at + 1] == "  This session is being continued"
    assert lines[at + 4] == "  … 7 more lines"
    assert "❯ after" in lines[at:]  # noqa: RUF001 - the sign of a prompt


def forked_session(folder: Path) -> Any:
    """A session in which the second prompt was edited."""

    def rewind(pen: Pen) -> Any:
        pen.parent = f"{3:08d}-0000-4000-8000-{SESSION[-12:]}"
        return iter(())

    return session(
        folder,
        prompt("first"),
        reply("one"),
        prompt("wrong way"),
        reply("two"),
        rewind,
        prompt("right way"),
        reply("three"),
    )


def test_marks_an_abandoned_branch(tmp_path: Path) -> None:
    """An abandoned branch is counted and named but not shown. `branch` shows it."""
    sample = forked_session(tmp_path)
    lines = text_lines(sample)
    assert any(line.startswith("⎇ 2 entries abandoned here: “wrong way”") and "--branch 1" in line for line in lines)
    assert "● two" not in lines
    assert "● three" in lines
    other = text_lines(sample, branch=1)
    assert "● two" in other
    assert "● three" not in other


def test_shows_a_single_turn(tmp_path: Path) -> None:
    """A turn is shown without the others."""
    lines = text_lines(session(tmp_path, prompt("one"), reply("1"), prompt("two"), reply("2")), turn=2)
    assert "● 2" in lines
    assert "● 1" not in lines


def session_with_agent(folder: Path) -> Any:
    """A session with an agent and a side agent."""
    details = {"status": "completed", "agentId": AGENT, "content": [{"type": "text", "text": "Found it."}]}
    arguments = {"subagent_type": "Explore", "description": "find it", "prompt": "Find it!"}
    pen = Pen(isSidechain=True, agentId=AGENT)
    side = Pen(isSidechain=True, agentId="acompact-0123456789abcdef")
    return session(
        folder,
        prompt("x"),
        call("Agent", arguments, result="Found it.\nagentId: " + AGENT, details=details),
        reply("There."),
        agents={
            AGENT: transcript(prompt("Find it!"), call("Grep", "it", result="x.py"), reply("Found it."), pen=pen),
            "acompact-0123456789abcdef": transcript(prompt("Summarise"), reply("A summary"), pen=side),
        },
    )


def test_folds_agents_to_a_line_under_their_call(tmp_path: Path) -> None:
    """Type, task, calls, duration and outcome. The lines meant for the model are not shown."""
    lines = text_lines(session_with_agent(tmp_path))
    at = lines.index("✓ Agent  Explore · find it  1.0s")
    assert lines[at + 1] == "  ⎿ Found it."
    assert lines[at + 2].startswith("  ↳ Explore: find it · 1 call · ")
    assert lines[at + 2].endswith(" · done")
    assert not any("agentId" in line for line in lines)


def test_shows_agents_in_full_or_not_at_all(tmp_path: Path) -> None:
    """In full they are indented under the call. Side agents are shown only with everything."""
    sample = session_with_agent(tmp_path)
    full = text_lines(sample, agents=Detail.FULL)
    assert "  │ ❯ Find it!" in full  # noqa: RUF001 - the sign of a prompt
    assert any(line.startswith("  │ ✓ Grep  it") for line in full)
    assert not any("↳" in line for line in text_lines(sample, agents=Detail.NONE))
    assert not any("A summary" in line for line in full)
    assert any("A summary" in line for line in text_lines(sample, agents=Detail.FULL, everything=True))


def test_everything_unfolds_all(tmp_path: Path) -> None:
    """No output is truncated, thinking is complete, and the program's own entries are named."""
    sample = session(
        tmp_path,
        prompt("x"),
        reply({"type": "thinking", "thinking": "a\nb\nc"}, {"type": "thinking", "thinking": ""}),
        call("Bash", "seq", result="\n".join(map(str, range(100)))),
        chain("system", subtype="turn_duration", durationMs=5),
    )
    lines = text_lines(sample, everything=True)
    assert "    99" in lines
    assert "  c" in lines
    assert "◦ turn duration" in lines
    assert not any("turn duration" in line for line in text_lines(sample))


def test_no_line_is_wider_than_the_terminal(tmp_path: Path) -> None:
    """Even with wide characters, long words and deep lists."""
    wide = "日本語のとても長い文章です" * 20 + " " + "x" * 300 + "\n" + "    " * 10 + "- deep item with words"
    sample = session(tmp_path, prompt(wide), reply(wide), call("Bash", wide, result=wide), call(wide, {"a": wide}))
    for width in (40, 80):
        for everything in (False, True):
            assert max(map(display_width, text_lines(sample, width=width, everything=everything))) <= width


def test_pasted_code_keeps_its_indentation(tmp_path: Path) -> None:
    """White space at the start of a line is kept."""
    lines = text_lines(session(tmp_path, prompt("def f():\n    return 1"), reply("ok")))
    assert "      return 1" in lines


def test_shows_entries_whose_parent_is_missing(tmp_path: Path) -> None:
    """A broken link in the chain hides nothing."""

    def lose_parent(pen: Pen) -> Any:
        pen.parent = "00000000-dead-4000-8000-000000000000"
        return iter(())

    lines = text_lines(session(tmp_path, prompt("early"), reply("yes"), lose_parent, prompt("late"), reply("no")))
    assert "● yes" in lines
    assert "● no" in lines


def test_shows_the_answer_of_a_background_agent(tmp_path: Path) -> None:
    """Folded by default and complete with everything, once, and with the line of the call that started it."""
    answer = "\n\n".join(f"Point {n}" for n in range(9))
    element = (
        f"<task-notification><task-id>{AGENT}</task-id><tool-use-id>{{id}}</tool-use-id><status>completed</status>"
        f"<summary>Agent done</summary><result>{answer}</result></task-notification>"
    )

    def notification(pen: Pen) -> Any:
        text = element.format(id=launched)
        yield {"type": "queue-operation", "operation": "enqueue", "content": text, "sessionId": SESSION}
        queued = {"type": "queued_command", "prompt": text, "commandMode": "task-notification"}
        yield pen.chain("attachment", attachment=queued)

    details = {"status": "async_launched", "agentId": AGENT}
    rows = transcript(prompt("x"), call("Agent", {"prompt": "Find it!"}, result="Started", details=details))
    launched = next(
        block["id"]
        for row in rows
        if isinstance(row, dict) and row["type"] == "assistant"
        for block in row["message"]["content"]
        if block["type"] == "tool_use"
    )
    sample = session(
        tmp_path,
        prompt("x"),
        call("Agent", {"prompt": "Find it!"}, result="Started", details=details),
        notification,
        reply("Good."),
    )
    lines = text_lines(sample)
    at = lines.index("◦ background task: Agent done  (started at line 2)")
    assert lines[at + 1] == "  ⎿ Point 0"
    assert lines[at + 7] == "    … 11 more lines"
    assert "    Point 8" in text_lines(sample, everything=True)
    assert sum("Agent done" in line for line in lines) == 1
    assert "    result: line 5" in lines


def test_never_truncates_the_reason_of_a_refusal(tmp_path: Path) -> None:
    """The user's words in a refusal are not output, so all of them are shown."""
    reason = "\n".join(f"reason {n}" for n in range(30))
    refusal = f"The user doesn't want to proceed with this tool use. the user said:\n{reason}"
    sample = session(
        tmp_path, prompt("x"), call("Bash", "rm", result=refusal, error=True, details="User rejected tool use")
    )
    lines = text_lines(sample)
    at = lines.index("⊘ Bash  rm  denied  1.0s")
    assert lines[at + 1] == "  ❯ reason 0"  # noqa: RUF001 - the sign of a person's words
    assert lines[at + 30] == "    reason 29"
    assert sum(line.strip() == "reason 3" for line in lines) == 1


def test_folds_a_plan_that_starts_a_turn(tmp_path: Path) -> None:
    """It is marked as a plan, and complete only with everything."""
    plan = "\n".join(f"step {n}" for n in range(80))
    text = f"Implement the following plan:\n\n{plan}"
    sample = session(tmp_path, prompt(text, planContent=plan), reply("ok"))
    lines = text_lines(sample)
    at = lines.index("◆ plan")
    assert any(line.strip() == "step 0" for line in lines[at:])
    assert any("more lines" in line for line in lines[at:])
    assert "  step 79" in text_lines(sample, everything=True)


def test_turns_that_do_not_exist_are_empty(tmp_path: Path) -> None:
    """A range without turns shows nothing, not everything."""
    sample = session(tmp_path, prompt("one"), reply("1"))
    assert "● 1" not in text_lines(sample, turn=2)
    assert "● 1" not in text_lines(sample, from_turn=2)
    assert "● 1" in text_lines(sample, from_turn=1)
