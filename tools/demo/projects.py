"""The invented projects: paths, languages, and the tasks done in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class Task(msgspec.Struct, frozen=True):
    """A task of a project: its first prompt and its title."""

    title: str
    branch: str
    prompt: str


class Project(msgspec.Struct, frozen=True):
    """A directory with a language, a vocabulary and tasks."""

    name: str
    path: str
    language: str
    extension: str
    folders: tuple[str, ...]
    nouns: tuple[str, ...]
    verbs: tuple[str, ...]
    fields: tuple[str, ...]
    check: str
    tasks: tuple[Task, ...]
    weight: int = 1

    @property
    def folder(self) -> str:
        """Name of the project's folder under `projects/`: every character but letters and digits is `-`."""
        return re.sub(r"[^A-Za-z0-9]", "-", self.path)

    def at(self, relative: str) -> str:
        """Absolute path of a file in the project, written as its platform writes it."""
        if "\\" in self.path:
            return self.path + "\\" + relative.replace("/", "\\")
        return f"{self.path}/{relative}"


TIDEWATCH = Project(
    name="tidewatch",
    path="/home/mara/src/tidewatch",
    language="go",
    extension="go",
    folders=("internal/gauge", "internal/feed", "internal/store", "cmd/tidewatch", "internal/alarm"),
    nouns=(
        "gauge",
        "reading",
        "station",
        "harbour",
        "tide",
        "window",
        "feed",
        "alarm",
        "buoy",
        "sample",
        "drift",
    ),
    verbs=(
        "collect",
        "smooth",
        "resample",
        "publish",
        "decode",
        "flush",
        "calibrate",
        "merge",
        "watch",
        "expire",
    ),
    fields=("stationID", "level", "takenAt", "quality", "offsetMM", "source", "sequence", "batteryMV"),
    check="go test ./...",
    weight=6,
    tasks=(
        Task(
            "Drifting gauge readings after midnight",
            "fix/gauge-drift",
            "The gauges at the north harbour drift by about 4 mm every night right after midnight UTC. "
            "Find out where that comes from and fix it. There is a recording in testdata/north-pier.csv.",
        ),
        Task(
            "Back-pressure for the station feed",
            "feat/feed-backpressure",
            "When the store is slow the feed reader eats all memory. Add back-pressure: at most "
            "512 samples in "
            'flight per station, and log "feed paused" once, not once per sample.',
        ),
        Task(
            "Alarm when a buoy goes silent",
            "feat/silent-buoy",
            "I want an alarm if a buoy has not reported for three of its own intervals.\n\n"
            "- interval is per station\n- no alarm during maintenance windows\n- one alarm, "
            "then quiet until it reports again",
        ),
        Task(
            "Flaky TestResampleWindow",
            "fix/flaky-resample",
            "TestResampleWindow fails about 1 in 30 runs on CI:\n\n```\n--- FAIL: "
            "TestResampleWindow (0.02s)\n"
            "    resample_test.go:88: got 11 samples, want 12\n```\nWhy?",
        ),
        Task(
            "Speed of decoding binary frames",
            "perf/frame-decode",
            "decodeFrame allocates for every sample (see the profile in docs/frame.pprof.txt). "
            "Can we get to zero "
            "allocations without making it unreadable?",
        ),
    ),
)

KETTLE = Project(
    name="kettle.shop",
    path="/home/mara/src/kettle.shop",
    language="typescript",
    extension="ts",
    folders=("src/orders", "src/cart", "src/stock", "src/ui", "src/api"),
    nouns=(
        "order",
        "basket",
        "teapot",
        "voucher",
        "parcel",
        "stock",
        "customer",
        "invoice",
        "blend",
        "shelf",
    ),
    verbs=("create", "cancel", "reserve", "refund", "pack", "price", "ship", "load", "render", "validate"),
    fields=(
        "orderId",
        "quantity",
        "unitPrice",
        "currency",
        "placedAt",
        "couponCode",
        "weightGrams",
        "locale",
    ),
    check="npm test",
    weight=3,
    tasks=(
        Task(
            "Vouchers applied twice at checkout",
            "fix/voucher-twice",
            "A customer used the voucher SPRING10 twice in one basket by pressing back. Write a "
            "failing test first, "
            "then fix it, please.",
        ),
        Task(
            "Japanese order confirmation mail",
            "feat/mail-ja",
            "Add the Japanese order confirmation. Subject: ご注文ありがとうございます. "
            "Keep the template language we already have, no new dependency.",
        ),
        Task(
            "Move stock reservations out of the request",
            "refactor/stock-reserve",
            "reserveStock() runs inside the HTTP request and sometimes takes 8 seconds. Move it "
            "to the queue, but the "
            'customer must still see "sold out" right away when it is.',
        ),
        Task(
            "Prices off by one cent",
            "fix/one-cent",
            "3 x 4.35 EUR shows as 13.04 in the basket. I suspect floats in src/cart/price.ts:\n\n"
            "```ts\nconst total = items.reduce((s, i) => s + i.unitPrice * i.quantity, 0);\n```",
        ),
        Task(
            "Accessible quantity picker",
            "feat/a11y-quantity",
            "The quantity picker cannot be used with the keyboard. Make it a proper spinbutton; see the screenshot.",
        ),
    ),
)

LOOM = Project(
    name="loom_scan",
    path="/home/mara/src/loom_scan",
    language="python",
    extension="py",
    folders=("loom_scan", "loom_scan/vision", "loom_scan/report", "tests", "tools"),
    nouns=("thread", "weave", "defect", "camera", "frame", "roll", "shade", "mask", "tile", "batch", "edge"),
    verbs=("detect", "align", "crop", "grade", "measure", "count", "stitch", "load", "mark", "compare"),
    fields=("roll_id", "width_mm", "defects", "score", "captured_at", "lane", "threshold", "operator"),
    check="pytest -q",
    weight=3,
    tasks=(
        Task(
            "Missed defects at the seam",
            "fix/seam-defects",
            "Defects that lie on the seam between two tiles are not found. I think the overlap "
            "is too small, "
            "but please measure before changing it.",
        ),
        Task(
            "Report per roll as PDF and CSV",
            "feat/roll-report",
            "Operators want a report per roll: number of defects per metre, worst tile, and a "
            "small picture. "
            "CSV first, PDF if it is easy.",
        ),
        Task(
            "Camera calibration drifts with temperature",
            "fix/calibration",
            "lane 3 gives 2 % wider measurements in the afternoon. Look at tools/calibrate.py "
            "and at the logs "
            "in data/lane3/ and tell me what you think. Do not change code yet.",
        ),
        Task(
            "Type hints for loom_scan.vision",
            "chore/types",
            "Add type hints to loom_scan/vision and make mypy --strict pass there. No behaviour changes.",
        ),
    ),
)

FERN = Project(
    name="fernspeak",
    path="/home/mara/src/fernspeak",
    language="rust",
    extension="rs",
    folders=("src", "src/audio", "src/plant", "crates/wake", "tests"),
    nouns=("plant", "pump", "sensor", "phrase", "soil", "valve", "schedule", "voice", "pot", "reply"),
    verbs=("water", "listen", "parse", "wake", "schedule", "store", "measure", "answer", "mute", "open"),
    fields=("moisture", "pot_id", "last_watered", "volume_ml", "confidence", "phrase", "muted"),
    check="cargo test",
    weight=2,
    tasks=(
        Task(
            "Pump keeps running after a panic",
            "fix/pump-panic",
            "If the listener thread panics the pump stays on (ask me about my carpet). It must "
            "switch off in every case, "
            "also when the process is killed.",
        ),
        Task(
            'Understand "how is the basil"',
            "feat/ask-plant",
            'Add a question: "how is the basil?" answers with moisture and when it was last watered.',
        ),
        Task(
            "Replace the wake word crate",
            "chore/wake-crate",
            "The wake word crate is unmaintained. Compare three others and propose one; a table, please.",
        ),
    ),
)

NIGHT = Project(
    name="Night Train",
    path="/home/mara/work/Night Train",
    language="sql",
    extension="sql",
    folders=("models/staging", "models/marts", "macros", "seeds", "analyses"),
    nouns=("train", "carriage", "berth", "stop", "booking", "fare", "delay", "border", "route", "timetable"),
    verbs=("join", "rank", "load", "sum", "window", "dedupe", "pivot", "snapshot", "seed", "backfill"),
    fields=("train_no", "berth_class", "departs_at", "country", "fare_cents", "delay_min", "booked_at"),
    check="dbt test",
    weight=2,
    tasks=(
        Task(
            "Delays counted twice at borders",
            "fix/border-delay",
            "The delay report counts a delay twice when the train number changes at the border "
            "(e.g. 457 -> 40457). "
            "One train, one delay.",
        ),
        Task(
            "Occupancy per berth class",
            "feat/occupancy",
            "I need occupancy per berth class and night, for all routes since 2024, with a "
            "chart I can paste in the slides.",
        ),
        Task(
            "Timetable in daylight saving time",
            "fix/dst",
            "On the night of the clock change, trains arrive before they depart. Fix it without "
            "touching the raw tables.",
        ),
    ),
)

DOTFILES = Project(
    name=".dotfiles",
    path="/home/mara/.dotfiles",
    language="shell",
    extension="sh",
    folders=("bin", "zsh", "git", "install"),
    nouns=("alias", "prompt", "hook", "plugin", "shell", "link", "host", "path", "backup"),
    verbs=("link", "install", "load", "clean", "backup", "sync", "check", "prune"),
    fields=("target", "source", "host", "shell", "editor", "mode"),
    check="shellcheck bin/*",
    weight=1,
    tasks=(
        Task(
            "Shell start-up takes two seconds",
            "main",
            "My shell takes 2 s to start. Measure where the time goes and make it fast, but I want to keep completion.",
        ),
        Task(
            "Install script for a new laptop",
            "main",
            "Write install.sh: links everything, asks before it overwrites, can be run twice. macOS and Linux.",
        ),
    ),
)

QUARRY = Project(
    name="quarry",
    path="C:\\Users\\Mara\\src\\quarry",
    language="python",
    extension="py",
    folders=("quarry", "quarry/parsers", "quarry/jobs", "tests"),
    nouns=("document", "page", "parser", "job", "archive", "chunk", "table", "scan", "folder"),
    verbs=("extract", "parse", "queue", "retry", "split", "store", "index", "convert"),
    fields=("doc_id", "pages", "language", "checksum", "stored_at", "retries", "mime_type"),
    check="python -m pytest",
    weight=1,
    tasks=(
        Task(
            "Paths with spaces on Windows",
            "fix/windows-paths",
            'Jobs fail for "C:\\Users\\Mara\\My Documents\\scan 1.pdf". It works on Linux. '
            "Quote or fix, whatever is right.",
        ),
        Task(
            "Retry jobs that failed on the network share",
            "feat/retry-share",
            "Jobs on \\\\nas\\scans fail when the share sleeps. Retry three times with a growing delay.",
        ),
    ),
)

ALL = (TIDEWATCH, KETTLE, LOOM, FERN, NIGHT, DOTFILES, QUARRY)


def choose(count: int) -> Sequence[Project]:
    """The first `count` projects. Beyond the existing ones, they are worktrees: large homes have dozens of projects."""
    chosen = list(ALL)
    for index in range(count - len(ALL)):
        origin = ALL[index % (len(ALL) - 1)]
        branch = origin.tasks[index // (len(ALL) - 1) % len(origin.tasks)].branch
        name = f"{branch.replace('/', '-')}-{index}"
        chosen.append(msgspec.structs.replace(origin, path=f"{origin.path}/.claude/worktrees/{name}", weight=1))
    return chosen
