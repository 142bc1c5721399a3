"""Tests of what is recognised in commands and their output: commits, pushes, pull requests and test runs."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from threadline.insight import LineOwners, changed_lines, count_tests, extract_outcomes
from threadline.model.calls import Outcome
from threadline.shell_syntax import _split_usual_command, parse_command, parse_shell_call, program_names, split_commands


def extract(command: str, output: str, result: Any = None, *, fails: bool = False) -> list[Any]:
    """The outcomes of a shell command."""
    arguments = {"command": command}
    outcome = Outcome.ERROR if fails else Outcome.OK
    commands = parse_shell_call("Bash", arguments)
    return extract_outcomes("Bash", arguments, commands, lambda: output, result, outcome, 1 if fails else None)


def commits(command: str, output: str, result: Any = None, *, fails: bool = False) -> list[tuple[str, str | None, str]]:
    """The kind, the id and the subject of each commit."""
    rows = extract(command, output, result, fails=fails)
    return [(row.action, row.ref, row.label) for row in rows if row.kind == "commit"]


LINE = "[main 4f5e6d7] Sort the shelves\n 2 files changed, 10 insertions(+), 3 deletions(-)\n"


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        ('git commit -m "Sort the shelves"', LINE, [("committed", "4f5e6d7", "Sort the shelves")]),
        (
            "git add . && git commit -F- <<'EOF'\nSort the shelves\nEOF",
            LINE,
            [("committed", "4f5e6d7", "Sort the shelves")],
        ),
        ("git -C /srv/shop -c user.name=x commit -am x", LINE, [("committed", "4f5e6d7", "Sort the shelves")]),
        ("cd shop; sudo -u www git commit --amend --no-edit", LINE, [("amended", "4f5e6d7", "Sort the shelves")]),
        ("git ci -m x", LINE, [("committed", "4f5e6d7", "Sort the shelves")]),
        (
            "git cherry-pick aaa bbb",
            "[next aaaaaaa] One\n Date: x\n[next bbbbbbb] Two\n",
            [("cherry-picked", "aaaaaaa", "One"), ("cherry-picked", "bbbbbbb", "Two")],
        ),
        ("git revert HEAD", '[main 1234567] Revert "One"\n', [("reverted", "1234567", 'Revert "One"')]),
        ("git rebase --continue", "[detached HEAD 1234567] One\n", [("rebased", "1234567", "One")]),
        (
            "git init && git commit -m First",
            "[trunk (root-commit) 1234567] First\n",
            [("committed", "1234567", "First")],
        ),
        ("git commit -m Erster", "[main (Root-Commit) 1234567] Erster\n", [("committed", "1234567", "Erster")]),
        (
            "git commit -m A && git commit --amend -m B",
            "[m 1111111] A\n[m 2222222] B\n",
            [("committed", "1111111", "A"), ("amended", "2222222", "B")],
        ),
        (
            "git merge topic",
            "Merge made by the 'ort' strategy.\n a.py | 2 +-\n 1 file changed, 1 insertion(+)\n",
            [("merged", None, "merge topic")],
        ),
        ("git pull", "Updating 1111111..2222222\nFast-forward\n", []),
        ("git am 0001.patch", "Applying: One\nApplying: Two\nPatch failed at 0002 Two\n", [("applied", None, "One")]),
        (
            'git commit -qm "One" && git log --oneline -1',
            "1234567 (HEAD -> main) One\n",
            [("committed", "1234567", "One")],
        ),
        ("git commit -q -m \"$(cat <<'EOF'\nOne\n\nMore\nEOF\n)\" && git push", "", [("committed", None, "One")]),
        ("git commit -q -m One; true", "", []),
        ("git update-ref refs/heads/next HEAD && cat log", LINE, []),
        ("git commit -m One | tail -1", " create mode 100644 a.py\n", []),
        (
            "git commit --fixup abc -q\ngit log --oneline -2",
            "7654321 fixup! One\n1234567 One\n",
            [("committed", "7654321", "fixup! One")],
        ),
        ("git commit --dry-run", LINE, []),
        ("git commit -q --fixup abc && git push", "", [("committed", None, "fixup! abc")]),
        (
            "git add . && git commit --amend -F m >/dev/null && git log -1 --format=%B | head -3 && rm m",
            "One\n\nMore\n",
            [("amended", None, "One")],
        ),
        ("git commit -qm One | cat && true", "", []),
        (
            "GIT_EDITOR=true git rebase -i --autosquash abc^ 2>&1 | tail -3",
            "Rebasing (2/3)\rRebasing (3/3)\rSuccessfully rebased and updated refs/heads/main.\n",
            [("autosquashed", None, "")],
        ),
        ("git rebase --autosquash abc | tail -1", "CONFLICT (content): Merge conflict in a.py\n", []),
        ("git rebase abc", "Successfully rebased and updated refs/heads/main.\n", []),
        ("cat build.log", LINE, []),
        ("git log", LINE, []),
        ("grep -rn 'git commit' .", LINE, []),
        ("echo 'git commit -m x'", LINE, []),
    ],
)
def test_commits(command: str, output: str, expected: list[tuple[str, str | None, str]]) -> None:
    """A commit counts if the command runs git and git says so."""
    assert commits(command, output) == expected


def test_commit_of_failed_command_counts_if_git_printed_it() -> None:
    """What follows the commit may fail."""
    assert commits("git commit -m x && git push", LINE + "error: failed to push", fails=True) == [
        ("committed", "4f5e6d7", "Sort the shelves")
    ]
    assert not commits("git commit -qm x && git push", "error: failed to push", fails=True)


def test_changes_of_a_commit() -> None:
    """The numbers are those that git prints."""
    (row,) = extract("git commit -m x", LINE)
    assert (row.files, row.added, row.removed, row.branch) == (2, 10, 3, "main")


def test_recorded_operation() -> None:
    """Claude Code records what it saw; its kind is better evidence than the command."""
    result = {"gitOperation": {"commit": {"sha": "4f5e6d7", "kind": "amended"}}}
    assert commits("./ship.sh", LINE, result) == [("amended", "4f5e6d7", "Sort the shelves")]
    assert commits("./ship.sh", "done", result) == [("amended", "4f5e6d7", "")]


@pytest.mark.parametrize("id_", ["4f5e6d7\nabcdef1", "HEAD", "--all", "4f5e6d", "4f5e6d7 ", "a" * 65, "", None, 1])
def test_recorded_operation_without_an_id(id_: Any) -> None:
    """Only hexadecimal digits are the id of a commit; the command is the evidence then."""
    result = {"gitOperation": {"commit": {"sha": id_, "kind": "amended"}}}
    assert commits("git commit -q -m x", "", result) == [("committed", None, "x")]
    assert commits("./ship.sh", "", result) == []


@pytest.mark.parametrize("module", ["git_output", "extract", "test_runners", "pull_requests"])
def test_lists_of_words_contain_whole_words(module: str) -> None:
    """A list that is wrapped inside of a word contains neither the word nor its parts."""
    lists = vars(importlib.import_module(f"threadline.insight.outcomes.{module}"))
    words = {word for value in lists.values() if isinstance(value, frozenset) for word in value}
    assert not [word for word in words if isinstance(word, str) and word.endswith("-")]


@given(
    st.from_regex(r"[a-z][a-z0-9/._-]{0,20}", fullmatch=True),
    st.from_regex(r"[0-9a-f]{7,40}", fullmatch=True),
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=40),
)
def test_every_commit_line_is_recognised(branch: str, id_: str, subject: str) -> None:
    """Whatever the branch, the id and the subject are."""
    assert commits("git commit -m x", f"hook: ok\n[{branch} {id_}] {subject}\n") == [("committed", id_, subject)]


PUSHED = """To github.com:ann/shop.git
   1111111..2222222  main -> main
 * [new branch]      topic -> topic
 + 3333333...4444444 next -> next (forced update)
 ! [rejected]        old -> old (fetch first)
"""


def test_pushes() -> None:
    """Branches that were pushed, not those that were rejected or fetched."""
    rows = [row for row in extract("git push --all", PUSHED) if row.kind == "push"]
    assert [(row.action, row.branch, row.ref) for row in rows] == [
        ("pushed", "main", "2222222"),
        ("new branch", "topic", None),
        ("forced", "next", "4444444"),
    ]
    fetched = "From github.com:ann/shop\n   1111111..2222222  main -> origin/main\n"
    assert not extract("git pull && git push", fetched + "Everything up-to-date\n")
    (row,) = extract("git push", "To https://ann:secret@git.example/shop.git\n   1111111..2222222  main -> main\n")
    assert row.label == "https://git.example/shop.git"


def requests(command: str, output: str, result: Any = None, *, fails: bool = False) -> list[tuple[str, str | None]]:
    """The action and the address of each pull request."""
    rows = extract(command, output, result, fails=fails)
    return [(row.action, row.ref) for row in rows if row.kind == "pull-request"]


URL = "https://github.com/ann/shop/pull/12"


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        ("gh pr create --fill", f"{URL}\n", [("created", URL)]),
        ("git push && gh pr create -t x -b y 2>&1", f"Warning: 1 uncommitted change\n{URL}", [("created", URL)]),
        ("gh pr merge 12 --squash", "", [("merged", "#12")]),
        ("gh pr merge 12 --auto", "", [("set to merge", "#12")]),
        ("gh pr merge --squash", "✓ Squashed and merged pull request ann/shop#12 (Sort)", [("merged", "#12")]),
        ("gh pr comment 12 -b done", f"{URL}#issuecomment-1\n", [("commented", URL)]),
        ("gh pr view 12", f"{URL}\n", []),
        ("gh pr list", f"{URL}\n", []),
        (
            "glab mr create --fill",
            "https://gitlab.com/a/b/c/-/merge_requests/3\n",
            [("created", "https://gitlab.com/a/b/c/-/merge_requests/3")],
        ),
        (
            "git push",
            "remote: View merge request for topic:\nremote:   https://gitlab.com/a/b/-/merge_requests/3\n",
            [("linked", "https://gitlab.com/a/b/-/merge_requests/3")],
        ),
        (
            "git push -u origin topic",
            "remote: Create a pull request:\nremote: https://github.com/a/b/pull/new/topic\n",
            [],
        ),
        ("hub pull-request -m x", f"{URL}\n", [("created", URL)]),
        ("gh api repos/ann/shop/pulls -f title=x", f'{{"html_url":"{URL}"}}', [("created", URL)]),
    ],
)
def test_pull_requests(command: str, output: str, expected: list[tuple[str, str | None]]) -> None:
    """Pull requests that a command created or changed, not those that it shows."""
    assert requests(command, output) == expected


def test_failed_merge_is_no_merge() -> None:
    """The number in the command proves nothing."""
    assert not requests("gh pr merge 12", "GraphQL: not mergeable", fails=True)


def test_recorded_pull_request() -> None:
    """Claude Code records what gh did."""
    result = {"gitOperation": {"pr": {"number": 12, "url": URL, "action": "commented"}}}
    assert requests("gh pr comment 12", "", result) == [("commented", URL)]


def test_pull_request_of_an_mcp_server() -> None:
    """The tools of GitHub's and GitLab's servers."""
    tool = "mcp__github__create_pull_request"
    rows = extract_outcomes(tool, {"title": "Sort"}, [], lambda: f'{{"html_url": "{URL}"}}', None, Outcome.OK, None)
    assert [(row.action, row.ref, row.label) for row in rows] == [("created", URL, "Sort")]
    assert not extract_outcomes(tool, {}, [], lambda: "error", None, Outcome.ERROR, None)


@pytest.mark.parametrize(
    ("runner", "output", "passed", "failed", "skipped"),
    [
        ("pytest", "===== 2 failed, 10 passed, 1 skipped, 3 warnings in 1.23s =====", 10, 2, 1),
        ("pytest", "10 passed, 2 xfailed in 0.5s", 10, 0, 2),
        ("pytest", "=== 1 error in 0.10s ===", 0, 1, 0),
        ("pytest", "no tests ran in 0.01s", 0, 0, 0),
        ("unittest", "Ran 7 tests in 0.001s\n\nFAILED (failures=1, errors=2, skipped=1)", 3, 3, 1),
        ("unittest", "Ran 1 test in 0.001s\n\nOK", 1, 0, 0),
        (
            "jest",
            "Test Suites: 1 failed, 2 passed, 3 total\nTests:       1 failed, 2 skipped, 9 passed, 12 total",
            9,
            1,
            2,
        ),
        ("vitest", " Test Files  2 passed (2)\n      Tests  1 failed | 9 passed | 2 skipped (12)", 9, 1, 2),
        ("mocha", "  12 passing (34ms)\n  1 pending\n  2 failing\n", 12, 2, 1),
        ("playwright", "  1 failed\n    [chromium] > a.spec.ts:3:1\n  2 skipped\n  9 passed (4.2s)\n", 9, 1, 2),
        ("node --test", "# tests 3\n# pass 2\n# fail 1\n# cancelled 0\n# skipped 0\n", 2, 1, 0),
        ("bun test", " 5 pass\n 1 skip\n 2 fail\nRan 8 tests across 2 files.", 5, 2, 1),
        ("deno test", "ok | 3 passed | 0 failed (12ms)", 3, 0, 0),
        ("go test", "ok  \tshop/a\t0.1s\nok  \tshop/b\t(cached)\nFAIL\tshop/c\t0.2s\nFAIL\n", 2, 1, 0),
        (
            "go test",
            "=== RUN TestA\n--- PASS: TestA (0.00s)\n--- SKIP: TestB (0.00s)\n--- FAIL: TestC (0.0s)\nFAIL\tx\t1s\n",
            1,
            1,
            1,
        ),
        (
            "cargo test",
            "test result: ok. 5 passed; 0 failed; 1 ignored;\ntest result: FAILED. 2 passed; 1 failed; 0 ignored;",
            7,
            1,
            1,
        ),
        ("cargo nextest", "     Summary [   0.1s] 12 tests run: 11 passed, 1 failed, 2 skipped", 11, 1, 2),
        ("dotnet test", "Failed!  - Failed:     1, Passed:     9, Skipped:     2, Total:    12", 9, 1, 2),
        (
            "maven",
            (
                "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in A\n"
                "[ERROR] Tests run: 9, Failures: 1, Errors: 1, Skipped: 2\n"
            ),
            5,
            2,
            2,
        ),
        ("gradle", "12 tests completed, 2 failed, 1 skipped", 9, 2, 1),
        ("rspec", "12 examples, 1 failure, 2 pending", 9, 1, 2),
        ("minitest", "8 runs, 20 assertions, 1 failures, 1 errors, 2 skips", 4, 2, 2),
        ("phpunit", "OK (5 tests, 9 assertions)", 5, 0, 0),
        ("phpunit", "Tests: 12, Assertions: 20, Errors: 1, Failures: 2, Skipped: 3.", 6, 3, 3),
        ("pest", "  Tests:    1 failed, 9 passed (20 assertions)", 9, 1, 0),
        ("mix test", "3 doctests, 12 tests, 2 failures, 1 skipped", 9, 2, 1),
        (
            "swift test",
            "Executed 3 tests, with 0 failures\nExecuted 9 tests, with 1 failure (0 unexpected) in 1 s",
            8,
            1,
            0,
        ),
        ("ctest", "90% tests passed, 1 tests failed out of 10", 9, 1, 0),
        ("googletest", "[  PASSED  ] 9 tests.\n[  FAILED  ] 1 test, listed below:\n\n 1 FAILED TEST\n", 9, 1, 0),
        ("flutter test", "00:01 +2: a\n00:03 +9 ~1 -2: Some tests failed.", 9, 2, 1),
        ("clojure", "Ran 9 tests containing 20 assertions.\n1 failures, 0 errors.", 8, 1, 0),
        ("cucumber", "12 scenarios (1 failed, 11 passed)\n50 steps (50 passed)", 11, 1, 0),
        ("testthat", "[ FAIL 1 | WARN 0 | SKIP 2 | PASS 9 ]", 9, 1, 2),
        ("tap", "ok 1 - a\nnot ok 2 - b\nok 3 - c\n1..3\n", 2, 1, 0),
        ("zig test", "All 5 tests passed.", 5, 0, 0),
        ("sbt", "[info] Tests: succeeded 5, failed 1, canceled 0, ignored 2, pending 0", 5, 1, 2),
        ("pester", "Tests Passed: 5, Failed: 1, Skipped: 2 NotRun: 0", 5, 1, 2),
    ],
)
def test_reports(runner: str, output: str, passed: int, failed: int, skipped: int) -> None:
    """The report of each runner, started as such or by a script."""
    for started in ([runner], []):
        (counts,) = count_tests(output, started)
        assert (counts.runner, counts.passed, counts.failed, counts.skipped) == (runner, passed, failed, skipped)


@given(
    st.lists(
        st.tuples(st.integers(1, 10**6), st.sampled_from(["passed", "failed", "skipped", "deselected"])),
        min_size=1,
        max_size=4,
        unique_by=lambda part: part[1],
    )
)
def test_every_summary_of_pytest(parts: list[tuple[int, str]]) -> None:
    """Counts in any order, of which deselected tests count as nothing."""
    (counts,) = count_tests(f"== {', '.join(f'{number} {word}' for number, word in parts)} in 1.00s ==")
    expected = {word: number for number, word in parts}
    assert (counts.passed, counts.failed, counts.skipped) == tuple(
        expected.get(word, 0) for word in ("passed", "failed", "skipped")
    )


@pytest.mark.parametrize(
    ("command", "runner"),
    [
        ("pytest -q tests", "pytest"),
        ("python3.12 -m pytest", "pytest"),
        (".venv/bin/python -m pytest tests", "pytest"),
        ("uv run pytest", "pytest"),
        ("poetry run pytest -x", "pytest"),
        ("npx vitest run", "vitest"),
        ("npx --yes jest --ci", "jest"),
        ("pnpm exec playwright test", "playwright"),
        ("./gradlew :app:test", "gradle"),
        ("mvn -q -DskipITs verify", "maven"),
        ("bundle exec rspec spec/a_spec.rb", "rspec"),
        ("vendor/bin/phpunit --filter A", "phpunit"),
        ("npm test", "npm test"),
        ("npm run test:unit", "npm test:unit"),
        ("yarn test", "yarn test"),
        ("make test", "make test"),
        ("make -j4 unit-tests", "make unit-tests"),
        ("bash scripts/run-tests.sh", "run-tests.sh"),
        ("docker compose run web pytest", "pytest"),
        ("timeout 60 go test ./...", "go test"),
        ("FOO=1 cargo test --all", "cargo test"),
        ("npm run lint", None),
        ("make", None),
        ("go build ./...", None),
        ("cat tests/test_a.py", None),
        ("ls tests", None),
        ("git checkout tests", None),
        ("npm run typecheck", None),
    ],
)
def test_commands_that_run_tests(command: str, runner: str | None) -> None:
    """Which runner a command starts, through launchers and wrappers."""
    rows = [row for row in extract(command, "") if row.kind == "test"]
    assert [row.action for row in rows] == ([runner] if runner is not None else [])
    assert all(row.passed is None and row.is_ok for row in rows)


def test_run_whose_result_is_not_known() -> None:
    """In a pipe, or if another command follows, the exit code says nothing."""
    for command in ("pytest | tail -3", "pytest; echo done", "pytest || true"):
        (row,) = extract(command, "")
        assert (row.is_ok, row.evidence) == (None, "command only")
    (row,) = extract("cd app && pytest", "ImportError", fails=True)
    assert (row.is_ok, row.evidence) == (False, "exit code")


def test_report_that_is_only_shown_is_no_run() -> None:
    """A program that prints a file runs no tests."""
    assert not extract("cat test.log | grep passed", "=== 5 passed in 1s ===")
    assert not extract("gh run view --log | tail", "=== 5 passed in 1s ===")


def test_several_runners_in_a_command() -> None:
    """Each has its own result."""
    rows = extract("go test ./... && npm test", "ok  \ta\t0.1s\nTests:       2 passed, 2 total\n")
    assert {row.action for row in rows} >= {"go test"}
    rows = extract("make check", "ok  \ta\t0.1s\nTests:       2 passed, 2 total\n")
    assert [(row.action, row.passed) for row in rows] == [("jest", 2), ("go test", 1)]


def test_background_command_has_no_result_yet() -> None:
    """Its output is read later."""
    assert not extract("pytest", "Command running in background", {"backgroundTaskId": "b1"})


@pytest.mark.parametrize(
    "work",
    [
        lambda size: count_tests("--- PASS: x\n" * size + "ok 1\n" * size),
        lambda size: extract("git push", "https://github.com/a/b/pull/1\n" * size),
    ],
    ids=["reports of two runners", "addresses after a push"],
)
def test_long_outputs_take_linear_time(work: Callable[[int], Any]) -> None:
    """Four times the output takes about four times as long, not sixteen times."""

    def seconds(size: int) -> float:
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            work(size)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(20_000) / seconds(5_000) < 8


def test_programs() -> None:
    """The first word of each command, without what only prepares or runs it."""
    command = "cd a && FOO=1 sudo -u x /usr/bin/git status | grep x; for f in *; do python3 $f; done; ssh h 'ls -l'"
    assert program_names(split_commands(command)) == ["git", "grep", "python3", "ls"]


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("i=$((i+1))", []),
        ("((i++)) && ls", ["ls"]),
        ("for ((i=0; i<3; i++)); do echo $((i+1)); done", ["echo"]),
        ("x=$(( (i + 1) * 2 )); pwd", ["pwd"]),
        ("x=$((1<<3))\nls\n3", ["ls"]),
        ("((ls; pwd); id)", ["ls", "pwd", "id"]),
        ("echo $(( $(wc -l < a) + 1 )) | cat", ["echo", "cat"]),
    ],
)
def test_arithmetic_is_not_a_command(command: str, programs: list[str]) -> None:
    """`((…))` and `$((…))` compute a number. Two open parentheses may also begin two subshells."""
    assert program_names(split_commands(command)) == programs


def test_assignments_of_powershell_are_not_commands() -> None:
    """Neither a variable that gets a path, nor the fields of an object."""
    command = (
        "$p='a\\b\\list.json'; Get-Content $p | ForEach-Object { [ordered]@{ kind = $_.a; size = $_.b } } | Out-Null"
    )
    assert program_names(parse_shell_call("PowerShell", {"command": command})) == ["Get-Content", "Out-Null"]
    assert program_names(split_commands("$HOME/bin/deploy --now")) == ["deploy"]


def test_arithmetic_in_quotes_runs_nothing() -> None:
    """A word has the commands whose output is part of it, and a sum is none."""
    (simple,) = split_commands('echo "$((i+1)) of $(ls)"')
    assert simple.words[1].commands == ["ls"]


def test_changed_lines() -> None:
    """From the patch, the whole content, or the input."""
    patch = {"structuredPatch": [{"lines": [" a", "-b", "+c", "+d"]}]}
    edit = changed_lines(patch, None)
    assert edit is not None
    assert (edit.added, edit.removed) == (2, 1)
    created = changed_lines({"type": "create", "content": "a\nb\n", "structuredPatch": []}, None)
    assert created is not None
    assert (created.added, created.removed, created.is_whole) == (2, 0, True)
    by_input = changed_lines(None, {"file_path": "/x", "old_string": "a\nb\nc", "new_string": "a\nB\nD\nc"})
    assert by_input is not None
    assert (by_input.added, by_input.removed) == (2, 1)
    assert changed_lines({"filenames": []}, {"pattern": "x"}) is None


def test_only_line_feeds_end_lines() -> None:
    """A form feed or a Unicode line separator is a part of its line, as in git and in patches of the tool."""
    created = changed_lines({"type": "create", "content": "a\x0cb\u2028c\r\nd\n"}, None)
    assert created is not None
    assert created.added == 2
    owners = LineOwners()
    owners.apply(created, 0)
    assert owners.count_in("a\x0cb\u2028c\n") == {0: 1}
    removal = changed_lines({"structuredPatch": [{"lines": ["-a\x0cb\u2028c"]}]}, None)
    assert removal is not None
    owners.apply(removal, 1)
    assert owners.count() == {0: 1, 1: 0}


@pytest.mark.parametrize(
    ("result", "arguments"),
    [
        ({"structuredPatch": 5}, {}),
        ({"structuredPatch": [{"lines": 5}, 7]}, {}),
        ({"structuredPatch": "lines"}, {}),
        ({}, {"edits": 5}),
    ],
)
def test_fields_of_another_type_are_ignored(result: Any, arguments: Any) -> None:
    """A patch or edits that are not a list say nothing about lines."""
    assert changed_lines(result, arguments) is None


def _edit(removed: str, added: str) -> Any:
    lines = [*(f"-{line}" for line in removed.split()), *(f"+{line}" for line in added.split())]
    return changed_lines({"structuredPatch": [{"lines": lines}]}, None)


def test_surviving_lines() -> None:
    """A line survives until an edit removes it; lines of others do not count."""
    owners = LineOwners()
    owners.apply(_edit("", "a b c"), 0)
    owners.apply(_edit("b other", "d"), 1)
    assert owners.count() == {0: 2, 1: 1}
    assert owners.count_in("  a\nd\nx\n") == {0: 1, 1: 1}
    owners.apply(changed_lines({"content": "z"}, None) or _edit("", ""), 2)
    assert owners.count() == {2: 1}


def test_surviving_lines_take_time_in_proportion_to_the_edits() -> None:
    """Four times as many edits, each of which removes a line that is long gone, take less than ten times as long."""

    def seconds(edits: int) -> float:
        owners = LineOwners()
        changes = [_edit("gone", " ".join(f"{at}-{line}" for line in range(20))) for at in range(edits)]
        owners.apply(_edit("", "gone"), -1)
        started = time.process_time()
        for at, change in enumerate(changes):
            owners.apply(change, at)
        return time.process_time() - started

    assert min(seconds(2000) for _ in range(3)) < 10 * min(seconds(500) for _ in range(3))


WORDS = st.sampled_from(
    ["git", "ls", "-l", "a=b", "'x y'", '"z;w"', "2>&1", ">out.txt", "2>/dev/null", ">", "2", "a'b'c"]
)


@given(
    st.lists(st.one_of(WORDS, st.sampled_from(["&&", "||", "|", ";", "\n", " ", "$x", "#", "\\", "("])), max_size=12)
)
@example([">", "a=b"])
@example([">", "a'b'c"])
@example(["2>&1x"])
def test_usual_commands_are_split_as_the_parser_does(parts: list[str]) -> None:
    """The quick way for commands without substitutions gives the words, redirections and operators of the parser."""
    command = " ".join(parts)
    usual = _split_usual_command(command)
    if usual is not None:
        parsed = [simple for pipeline in parse_command(command) for simple in pipeline if simple.words]
        assert [(simple.arguments, simple.is_redirected, simple.end) for simple in usual] == [
            (simple.arguments, simple.is_redirected, simple.end) for simple in parsed
        ]
