"""The test runners that are recognised: how they are started, and what the end of their output looks like.

To add a runner, add a row to `RUNNERS`. A pattern has named groups: `passed`, `failed`, `errors`, `skipped` and `total`
are counts, and `parts` is a list such as `3 passed, 1 failed`. Errors count as failed; of a total, what neither failed
nor was skipped passed. A runner that reports several times (per package or per project) is added up, unless `is_last`:
then the last report includes the others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from msgspec import Struct

from threadline.regex_syntax import Group, Literal, Node, parse_regex
from threadline.shell_syntax import word_set

_PASSED, _FAILED, _SKIPPED = "passed", "failed", "skipped"
_PARTS = re.compile(r"(?P<count>\d+)\s+(?:tests?\s+|examples?\s+|scenarios?\s+)?(?P<word>[a-z]+)", re.IGNORECASE)
_WORDS = {
    **dict.fromkeys(("passed", "passing", "pass", "succeeded", "success", "successes", "successful"), _PASSED),
    **dict.fromkeys(("xpassed", "flaky", "ok"), _PASSED),
    **dict.fromkeys(("failed", "failing", "fail", "failure", "failures", "error", "errors", "broken"), _FAILED),
    **dict.fromkeys(("skipped", "skip", "pending", "todo", "ignored", "disabled", "xfailed", "cancelled"), _SKIPPED),
}


class TestRunner(Struct, frozen=True, cache_hash=True):
    """A test runner. `commands` match what starts it: the program with its arguments, without folders."""

    __test__ = False  # not a test for pytest

    name: str
    commands: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()
    is_last: bool = False


RUNNERS: tuple[TestRunner, ...] = (
    TestRunner(
        "pytest",
        (r"(py\.test|pytest)\b", r"python[\d.]* -m pytest\b", r"(tox|nox)\b"),
        (
            (
                r"^(?:=+ )?(?P<parts>\d+ "
                r"(?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun)\b[^\n]*?)"
                r" in [\d.]+s\b"
            ),
            r"^(?:=+ )?no tests ran in [\d.]+s",
        ),
    ),
    TestRunner(
        "unittest",
        (r"python[\d.]* -m unittest\b", r"(python[\d.]* )?manage\.py test\b", r"(python[\d.]* )?runtests\.py\b"),
        (
            (
                r"^Ran (?P<total>\d+) tests? in [\d.]+s\s+^(?:OK|FAILED)(?: \((?:failures=(?P<failed>\d+))?(?:, )?"
                r"(?:errors=(?P<errors>\d+))?(?:, )?(?:skipped=(?P<skipped>\d+))?[^)\n]*\))?"
            ),
        ),
    ),
    TestRunner(
        "jest",
        (r"jest\b", r"react-scripts test\b"),
        (r"^Tests:[ \t]+(?P<parts>[^\n]*?), \d+ total",),
    ),
    TestRunner("vitest", (r"vitest\b",), (r"^[ \t]*Tests[ \t]+(?P<parts>\d+ [^\n(]*?) ?\(\d+\)",)),
    TestRunner(
        "playwright",
        (r"playwright test\b",),
        (
            r"^[ \t]+(?P<failed>\d+) failed$(?=[\s\S]{0,20000}^[ \t]+\d+ (?:passed|skipped|did not run))",
            r"^[ \t]+(?P<skipped>\d+) skipped$(?=\s+^[ \t]+\d+ passed \([\d.]+m?s\))",
            r"^[ \t]+(?P<passed>\d+) passed \([\d.]+(?:ms|s|m)\)",
        ),
    ),
    TestRunner(
        "mocha",
        (r"mocha\b", r"cypress run\b", r"wdio\b"),
        (
            (
                r"^[ \t]+(?P<passed>\d+) passing \([^)\n]+\)(?:\s+^[ \t]+(?P<skipped>\d+) pending)?"
                r"(?:\s+^[ \t]+(?P<failed>\d+) failing)?"
            ),
        ),
    ),
    TestRunner(
        "ava", (r"ava\b",), (r"^[ \t]+(?P<passed>\d+) tests? passed$", r"^[ \t]+(?P<failed>\d+) tests? failed$")
    ),
    TestRunner(
        "node --test",
        (r"node\b.* --test\b", r"tsx\b.* --test\b"),
        (
            (
                r"^(?:#|\u2139) pass (?P<passed>\d+)\s+^(?:#|\u2139) fail (?P<failed>\d+)(?:\s+^"
                r"(?:#|\u2139) cancelled \d+)?"
                r"(?:\s+^(?:#|\u2139) skipped (?P<skipped>\d+))?"
            ),
        ),
    ),
    TestRunner(
        "bun test",
        (r"bun test\b",),
        (
            (
                r"^[ \t]*(?P<passed>\d+) pass$(?:\s+^[ \t]*(?P<skipped>\d+) skip$)?"
                r"(?:\s+^[ \t]*\d+ todo$)?\s+^[ \t]*(?P<failed>\d+) fail$"
            ),
        ),
    ),
    TestRunner(
        "deno test",
        (r"deno test\b",),
        (r"^(?:ok|FAILED) \| (?P<parts>\d+ passed[^\n(]*)",),
    ),
    TestRunner(
        "jasmine",
        (r"jasmine\b", r"karma start\b", r"ng test\b"),
        (
            r"^(?P<total>\d+) specs?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) pending)?",
            r"^TOTAL: (?P<passed>\d+) SUCCESS",
            r"^TOTAL: (?P<failed>\d+) FAILED, (?P<passed>\d+) SUCCESS",
        ),
    ),
    TestRunner(
        "gotestsum",
        (r"gotestsum\b",),
        (r"^DONE (?P<total>\d+) tests?(?:, (?P<skipped>\d+) skipped)?(?:, (?P<failed>\d+) failures?)? in",),
    ),
    TestRunner(
        "go test",
        (r"go test\b", r"ginkgo\b"),
        (
            r"^--- (?:(?P<is_passed>PASS)|(?P<is_failed>FAIL)|(?P<is_skipped>SKIP)): ",
            r"^(?P<package_passed>ok)[ \t]+\S+[ \t]+(?:[\d.]+s|\(cached\))",
            r"^(?P<package_failed>FAIL)[ \t]+\S+[ \t]+(?:[\d.]+s|\[(?:build|setup) failed\])",
        ),
    ),
    TestRunner(
        "cargo nextest",
        (r"cargo nextest\b",),
        (r"^[ \t]*Summary \[[^\]\n]*\][ \t]+\d+ tests? run: (?P<parts>[^\n]*)",),
    ),
    TestRunner(
        "cargo test",
        (r"cargo (\+\S+ )?(test|t)\b",),
        (r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed; (?P<skipped>\d+) ignored",),
    ),
    TestRunner(
        "dotnet test",
        (r"dotnet (test|vstest)\b",),
        (
            (
                r"^[ \t]*(?:Passed|Failed|Skipped)![ \t]+- Failed:[ \t]+(?P<failed>\d+), Passed:[ \t]+(?P<passed>\d+),"
                r" Skipped:[ \t]+(?P<skipped>\d+)"
            ),
            r"^Test summary: total: (?P<total>\d+), failed: (?P<failed>\d+), succeeded: \d+, skipped: (?P<skipped>\d+)",
            (
                r"^Total tests: (?P<total>\d+)(?:\s+^[ \t]+Passed: \d+)?(?:\s+^[ \t]+Failed: (?P<failed>\d+))?"
                r"(?:\s+^[ \t]+Skipped: (?P<skipped>\d+))?"
            ),
        ),
    ),
    TestRunner(
        "maven",
        (r"(mvn|mvnw|mvnd)\b.* (test|verify|package|install)\b", r"(mvn|mvnw|mvnd) (test|verify|package|install)\b"),
        (
            (
                r"^(?:\[\w+\] )?(?:\[\w+\] )?Tests run: (?P<total>\d+), Failures: (?P<failed>\d+), Errors: "
                r"(?P<errors>\d+),"
                r" Skipped: (?P<skipped>\d+)[ \t]*$"
            ),
        ),
    ),
    TestRunner(
        "gradle",
        (r"gradlew? .*\b(test|check|build)\w*", r"gradlew? (test|check|build)\w*"),
        (r"^(?P<total>\d+) tests? completed, (?P<failed>\d+) failed(?:, (?P<skipped>\d+) skipped)?",),
    ),
    TestRunner(
        "junit",
        (r"java\b.* org\.junit\b",),
        (
            r"^\[[ \t]*(?P<skipped>\d+) tests skipped[ \t]*\]",
            r"^\[[ \t]*(?P<passed>\d+) tests successful[ \t]*\]",
            r"^\[[ \t]*(?P<failed>\d+) tests failed[ \t]*\]",
        ),
    ),
    TestRunner(
        "sbt",
        (r"sbt\b.*\btest", r"scala-cli test\b", r"mill\b.*\.test\b"),
        (
            (
                r"^(?:\[info\] )?Tests: succeeded (?P<passed>\d+), failed (?P<failed>\d+), canceled \d+,"
                r" ignored (?P<skipped>\d+)"
            ),
            r"^(?:\[\w+\] )?(?:Passed|Failed): Total (?P<total>\d+), Failed (?P<failed>\d+), Errors (?P<errors>\d+)",
        ),
    ),
    TestRunner(
        "rspec",
        (r"rspec\b", r"rake spec\b", r"stack test\b", r"cabal (new-)?test\b"),
        (r"^(?P<total>\d+) examples?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) pending)?",),
    ),
    TestRunner(
        "minitest",
        (r"rails test\b", r"rake( test)?\b", r"ruby\b.*_test\.rb\b", r"m\b .*_test\.rb"),
        (
            (
                r"^(?P<total>\d+) (?:runs|tests), \d+ assertions, (?P<failed>\d+) failures, (?P<errors>\d+) errors"
                r"(?:, \d+ pendings, (?:\d+ omissions))?(?:, (?P<skipped>\d+) skips)?"
            ),
        ),
    ),
    TestRunner(
        "pest",
        (r"pest\b", r"artisan test\b", r"(php )?artisan test\b"),
        (r"^[ \t]*Tests:[ \t]+(?P<parts>\d+ [^\n(]*?) \(\d+ assertions?\)",),
    ),
    TestRunner(
        "phpunit",
        (r"phpunit\b", r"(composer|php) .*\btest\b"),
        (
            r"^OK \((?P<passed>\d+) tests?, \d+ assertions?\)",
            (
                r"^Tests: (?P<total>\d+), Assertions: \d+(?:, Errors: (?P<errors>\d+))?(?:, Failures: (?P<failed>\d+))?"
                r"(?:, (?:Warnings|Deprecations|Notices|PHPUnit \w+): \d+)*(?:, Skipped: (?P<skipped>\d+))?"
            ),
        ),
    ),
    TestRunner(
        "mix test",
        (r"mix (test|coveralls)\b",),
        (
            (
                r"^(?:\d+ doctests?, )?(?:\d+ propert(?:y|ies), )?(?P<total>\d+) tests?, (?P<failed>\d+) failures?"
                r"(?:, \d+ excluded)?(?:, (?P<skipped>\d+) skipped)?"
            ),
            r"^Result: (?P<parts>\d+ passed[^\n]*)",
        ),
    ),
    TestRunner(
        "swift test",
        (r"swift test\b", r"xcodebuild\b.* test\b"),
        (
            (
                r"^[ \t]*Executed (?P<total>\d+) tests?, with (?:(?P<skipped>\d+) tests? skipped and )?"
                r"(?P<failed>\d+) failures?"
            ),
            r"Test run with (?P<passed>[1-9]\d*) tests?[^\n]* passed after",
        ),
        is_last=True,
    ),
    TestRunner(
        "ctest",
        (r"ctest\b", r"meson test\b", r"ninja test\b"),
        (
            r"^\d+% tests passed, (?P<failed>\d+) tests? failed out of (?P<total>\d+)",
            r"^Ok:[ \t]+(?P<passed>\d+)\s+^(?:Expected Fail:[ \t]+\d+\s+^)?Fail:[ \t]+(?P<failed>\d+)",
        ),
    ),
    TestRunner(
        "googletest",
        (),
        (r"^\[[ ]+PASSED[ ]+\] (?P<passed>\d+) tests?\.", r"^[ ]*(?P<failed>\d+) FAILED TESTS?$"),
    ),
    TestRunner(
        "bazel test",
        (r"bazel(isk)? test\b",),
        (r"^Executed \d+ out of \d+ tests?: (?P<parts>[^\n]*)",),
    ),
    TestRunner(
        "flutter test",
        (r"(flutter|dart) test\b",),
        (
            (
                r"^\d\d:\d\d \+(?P<passed>\d+)(?: ~(?P<skipped>\d+))?(?: -(?P<failed>\d+))?: "
                r"(?:All tests passed!|Some tests failed)"
            ),
        ),
        is_last=True,
    ),
    TestRunner(
        "clojure",
        (r"lein test\b", r"clj(ure)?\b.*:test\b"),
        (r"^Ran (?P<total>\d+) tests containing \d+ assertions\.\s+^(?P<failed>\d+) failures, (?P<errors>\d+) errors",),
    ),
    TestRunner(
        "cucumber",
        (r"cucumber(-js)?\b", r"behat\b", r"behave\b"),
        (
            r"^\d+ scenarios? \((?P<parts>[^)\n]*)\)",
            r"^(?P<passed>\d+) scenarios? passed, (?P<failed>\d+) failed, (?P<skipped>\d+) skipped",
        ),
    ),
    TestRunner(
        "busted",
        (r"busted\b",),
        (
            (
                r"^(?P<passed>\d+) success(?:es)? / (?P<failed>\d+) failures? / (?P<errors>\d+) errors? / "
                r"(?P<skipped>\d+) pending"
            ),
        ),
    ),
    TestRunner(
        "testthat",
        (r"Rscript\b.*\btest",),
        (r"^\[ FAIL (?P<failed>\d+) \| WARN \d+ \| SKIP (?P<skipped>\d+) \| PASS (?P<passed>\d+) \]",),
        is_last=True,
    ),
    TestRunner(
        "pester",
        (r"Invoke-Pester\b",),
        (r"^Tests Passed: (?P<passed>\d+), Failed: (?P<failed>\d+), Skipped: (?P<skipped>\d+)",),
    ),
    TestRunner(
        "robot",
        (r"robot\b", r"pabot\b"),
        (r"^(?P<total>\d+) tests?, (?P<passed>\d+) passed, (?P<failed>\d+) failed",),
        is_last=True,
    ),
    TestRunner(
        "zig test",
        (r"zig (build )?test\b",),
        (
            r"^All (?P<passed>\d+) tests? passed\.",
            r"^(?P<passed>\d+) passed; (?P<skipped>\d+) skipped; (?P<failed>\d+) failed\.",
        ),
    ),
    TestRunner(
        "prove",
        (r"prove\b",),
        (
            r"^Files=\d+, Tests=(?P<total>\d+),",
            r"^Failed \d+/\d+ test programs?\. (?P<failed>\d+)/\d+ subtests? failed",
        ),
    ),
    TestRunner(
        "tap",
        (r"(tap|tape|bats)\b",),
        (
            r"^# pass[ \t]+(?P<passed>\d+)$",
            r"^# fail[ \t]+(?P<failed>\d+)$",
            r"^# skip[ \t]+(?P<skipped>\d+)$",
            r"^(?:(?P<is_failed>not ok)|(?P<is_passed>ok)) \d+\b",
        ),
    ),
)
"""Every runner, the more specific ones first."""

_LAUNCHER = re.compile(r"(?:npx|bunx|pnpm|yarn|npm|exec|dlx|x|run|--|-\S+|bundle|php|winpty) (?=\S)")
_TASK_RUNNERS = word_set(
    "npm pnpm yarn bun make gmake just mise task turbo nx rake composer poe hatch invoke inv pixi moon rush"
    " earthly lerna grunt gulp ant mage doit"
)
_TEST_TASK = re.compile(r"(?:[\w./-]*[:_./-])?(?:tests?|specs?|e2e|unittests?)(?:[:_./-][\w:./-]*)?")
_TEST_SCRIPT = re.compile(
    r"(?:[\w.-]*[-_.])?(?:run)?[-_]?tests?(?:[-_.][\w-]+)*\.(?:sh|bash|zsh|ps1|py|js|mjs|ts|rb|pl|cmd|bat)"
)
_SCRIPT_PROGRAMS = frozenset(
    ("bash", "sh", "zsh", "python", "python3", "node", "ruby", "perl", "pwsh", "powershell", "tsx")
)
TEST_PROGRAMS = word_set(
    "tox nox jest mocha cypress wdio ava jasmine karma ginkgo mvn mvnw mvnd gradle gradlew rspec rake pest phpunit"
    " behat behave cucumber cucumber-js busted prove robot pabot bats tap tape cargo mix Invoke-Pester npx bunx pnpm"
    " yarn bundle php"
)
"""Programs that run tests without the word `test` in the command."""
# Names of tasks and scripts that often run tests among other things.
_REPORTING_TASK = re.compile(
    r"test|spec|check|\bci\b|verify|valid|e2e|^all$|qa|cov|unit|integration|build|commit|release"
)
# What every summary contains, to decide quickly that there is none.
_HINT = re.compile(
    r"\d+ (?:pass|fail|tests?\b|examples?,|specs?,|success|scenarios?|runs,|skip|xfail|error|desel|xpass|rerun|assert)"
    r"|(?:pass|fail|[Pp]assed|[Ff]ailed|PASSED|Tests|Total|succeeded|TOTAL|FAIL)\b[:! ][ \t-]*\[?\d?"
    r"|^(?:ok|not ok|FAIL)[ \t]+\S|^--- |^test result|no tests ran|^Ok:|\+\d+: ",
    re.MULTILINE,
)
_HINT_CHARS = 4000


class TestCounts(Struct, frozen=True):
    """How many tests of a runner passed, failed and were skipped. `unit` is `packages` if only those are counted."""

    __test__ = False  # not a test for pytest

    runner: str
    passed: int
    failed: int
    skipped: int
    unit: str = "tests"


def runner_of_command(words: Sequence[str]) -> str | None:
    """The runner that a command starts, or the script that runs tests, such as `make test`; None if it runs none."""
    if not words:
        return None
    program = words[0].replace("\\", "/").rsplit("/", 1)[-1]
    text = " ".join((program, *words[1:6]))
    if (
        "test" not in text
        and "spec" not in text
        and "e2e" not in text
        and TEST_PROGRAMS.isdisjoint((program, *words[1:4]))
    ):
        return None
    start = 0
    while match := _LAUNCHER.match(text, start):
        start = match.end()
    for at in dict.fromkeys((0, start)):
        for name, pattern in _command_patterns():
            if pattern.match(text, at):
                return name
    tasks = [word for word in words[1:4] if not word.startswith("-")]
    if program in _TASK_RUNNERS:
        task = next((word for word in tasks if _TEST_TASK.fullmatch(word)), None)
        return f"{program} {task}" if task is not None else None
    script = tasks[0].rsplit("/", 1)[-1] if program in _SCRIPT_PROGRAMS and tasks else program
    return script if _TEST_SCRIPT.fullmatch(script) else None


@cache
def _command_patterns() -> list[tuple[str, re.Pattern[str]]]:
    """The names of runners, and what starts them; compiled on first use."""
    return [
        (runner.name, re.compile("|".join(f"(?:{command})" for command in runner.commands)))
        for runner in RUNNERS
        if runner.commands
    ]


@cache
def _summary_patterns(runner: TestRunner) -> list[tuple[str, re.Pattern[str]]]:
    """What the reports of a runner look like, each with a text that it contains: most outputs contain none of them."""
    patterns = [re.compile(summary, re.MULTILINE) for summary in runner.summaries]
    return [(_required_text(parse_regex(pattern)), pattern) for pattern in patterns]


def _required_text(nodes: Iterable[Node]) -> str:
    """The longest text that every match contains."""
    longest = run = ""
    for node in (*nodes, None):
        if isinstance(node, Literal):
            run += node.char
            continue
        inner = _required_text(node.body) if isinstance(node, Group) else ""
        longest = max(longest, run, inner, key=len)
        run = ""
    return longest


def may_report_tests(words: Sequence[str]) -> bool:
    """Whether a command that starts no known runner may run one: a task such as `make check`, or a script."""
    if not words:
        return False
    program = words[0].replace("\\", "/").rsplit("/", 1)[-1]
    if program in _TASK_RUNNERS:
        return any(_REPORTING_TASK.search(word) for word in words[1:4])
    return ("/" in words[0] or program.endswith(".sh")) and _REPORTING_TASK.search(program) is not None


def count_tests(output: str, started: Sequence[str] = ()) -> list[TestCounts]:
    """The results in an output, of each runner that reports some. Those that were started are tried first."""
    counts = _count(output, [runner for runner in RUNNERS if runner.name in started]) if started else []
    if counts or not _HINT.search(output, max(0, len(output) - _HINT_CHARS)):
        return counts
    return _count(output, RUNNERS)


def _count(output: str, runners: Sequence[TestRunner]) -> list[TestCounts]:
    counts: list[TestCounts] = []
    counted = bytearray(len(output))  # 1 for each character of a report that another runner has counted
    for runner in runners:
        matches = [
            match
            for text, pattern in _summary_patterns(runner)
            if text in output
            for match in pattern.finditer(output)
            if counted.find(1, match.start(), match.end()) < 0
        ]
        for match in matches:
            counted[match.start() : match.end()] = bytes([1]) * (match.end() - match.start())
        if matches:
            counts.append(_add_up(runner, matches))
    return counts


def _add_up(runner: TestRunner, matches: Sequence[re.Match[str]]) -> TestCounts:
    sums = Counter[str]()
    for match in matches[-1:] if runner.is_last else matches:
        sums.update(_counts_in({name: text for name, text in match.groupdict().items() if text is not None}))
    has_packages = bool(sums["package_passed"] or sums["package_failed"])
    if has_packages and not sums["is_passed"]:
        # Without -v, go names only the tests that failed.
        return TestCounts(runner.name, sums["package_passed"], sums["package_failed"], sums["is_skipped"], "packages")
    passed, failed, skipped = (sums[name] + sums[f"is_{name}"] for name in (_PASSED, _FAILED, _SKIPPED))
    return TestCounts(runner.name, passed, failed, skipped)


def _counts_in(groups: dict[str, str]) -> Counter[str]:
    """The counts in the named groups of a match. A group whose text is not a number counts as one."""
    counts = Counter[str]()
    for part in _PARTS.finditer(groups.get("parts", "")):
        counts[_WORDS.get(part["word"].lower(), "other")] += int(part["count"])
    for name, text in groups.items():
        if name not in ("parts", "total"):
            counts[_FAILED if name == "errors" else name] += int(text) if text.isdecimal() else 1
    if "total" in groups:
        others = counts[_FAILED] + counts[_SKIPPED] + int(groups.get(_PASSED, "0"))
        counts[_PASSED] += max(0, int(groups["total"]) - others)
    return counts
