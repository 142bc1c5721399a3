"""Files of a home are opened by `home_files` and listed by `find`, and nowhere else."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache

from tests.source_trees import SOURCE, source_nodes

OPENING = {"open", "read_bytes", "read_text", "open_descriptor", "open_regular", "read_file", "mmap", "copyfile"}
LISTING = {"scandir", "listdir", "os.walk", "fwalk", "iterdir", "glob", "rglob"}

OPENERS = {"files.py": "opens any file, for the modules below", "home_files.py": "opens the files of homes"}

# Every other module that opens a file, or lists a directory, and what that is. None of them is a file of a home.
EXCEPTIONS = {
    # Files that come with threadline.
    "account/shipped_prices.py": {"read_bytes"},
    "cli/demo.py": {"open", "read_bytes", "iterdir"},  # the demo home, which it has just written
    "export/html_files.py": {"read_text"},
    "extras.py": {"read_text"},  # the metadata of the installation
    "redact/rules/formats.py": {"read_text"},
    "render/html/page.py": {"read_text"},
    "web/response.py": {"glob", "read_bytes"},
    # Files that the user names on the command line, and the user's settings.
    "account/budgets.py": {"read_file"},
    "annotations.py": {"read_file"},
    "archive/blame.py": {"open", "read_file"},  # the file and its git repository
    "account/rates.py": {"read_file"},
    "export/redaction_settings.py": {"read_file"},
    # Output.
    "cli/commands.py": {"open"},  # /dev/null
    "cli/export/command.py": {"read_bytes"},
    "cli/export/traces.py": {"open"},
    "export/otlp/sender.py": {"open", "read_bytes"},  # the file of --resume, and a URL
    "cli/sql/answers.py": {"open"},
    "insight/outcomes/verification.py": {"open", "read_file"},  # the user's own repository, regular files only
    "export/exporter.py": {"open", "scandir"},  # what killed exports left in the temporary folder
    "export/formats.py": {"open", "read_bytes"},
    "export/leak_check.py": {"open"},
    "export/messages.py": {"open"},
    "export/output.py": {"iterdir"},
    "web/session/shared_file.py": {"read_bytes"},
    "export/redacted_copies.py": {"open"},
    # Lakes: what a push read is opened by `home_files`, and the rest are the user's own files and temporary ones.
    "cli/lake/queries.py": {"read_bytes"},
    "lake/iceberg.py": {"open"},  # files of tables, through pyiceberg
    "lake/reader.py": {"read_bytes"},  # copies of sessions that it downloaded
    # Archives, the index, locks, and facts about processes.
    "archive/archive.py": {"open"},
    "cli/insight/waste.py": {"open"},
    "cli/insight/why.py": {"open"},
    "cli/keep/maintenance.py": {"open"},
    "cli/resolve.py": {"open"},
    "index/store.py": {"iterdir"},
    "web/examiner.py": {"open"},
    "cli/sql/duckdb_query.py": {"read_text"},  # /proc/self
    "locks.py": {"open"},
    # Keeps, which are not homes: only their last component may not be a link.
    "cli/keep/group.py": {"iterdir"},
    "keep/cache.py": {"open", "read_bytes", "read_text"},
    "keep/encryption.py": {"read_file"},
    "keep/kept_files.py": {"scandir", "os.walk"},
    "keep/kept_home.py": {"listdir", "read_file"},
    "keep/machine.py": {"listdir", "read_file", "read_text"},
    "keep/merge.py": {"open_regular"},
    "keep/repair.py": {"open_regular", "read_file"},
    "keep/pack.py": {"open"},
    "keep/status.py": {"os.walk"},
    "keep/store.py": {"glob", "iterdir", "open", "open_regular", "read_file", "scandir"},
    # Directories of homes, without following links.
    "store/database.py": {"read_file"},  # a SQLite file that the user names
    "store/folder.py": {"open", "glob", "rglob"},  # a home that it writes itself; read by `home_files`
    "find/home_dirs.py": {"scandir"},
    "find/bucket_homes.py": {"read_file"},  # the list of what it has fetched
    "find/database_homes.py": {"read_file"},  # the list of what it has copied
    "find/home_copies.py": {"read_file", "scandir"},  # what is in the cache
    "find/unpack.py": {"open", "open_regular", "read_file"},  # an archive that the user names, and what is in it
    "find/listing.py": {"scandir"},
    "find/project_paths.py": {"scandir"},  # the user's own directories, to find where a project is
    "web/session/page.py": {"glob"},
}


@cache
def uses() -> dict[str, set[str]]:
    """Return the functions that open files or list directories, by the module that calls them."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for path, nodes in source_nodes().items():
        for node in nodes:
            if isinstance(node, ast.Call) and (name := _called(node.func)) in OPENING | LISTING:
                names[path.relative_to(SOURCE).as_posix()].add(name)
    return {module: names[module] for module in names if module not in OPENERS}


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):  # other objects have a method `walk`
        return ast.unparse(function) if function.attr == "walk" else function.attr
    return function.id if isinstance(function, ast.Name) else ""


def test_only_the_opener_opens_files_of_homes() -> None:
    """A module that opens or lists anything else is in `EXCEPTIONS`, which says what."""
    assert {m: n for m, n in uses().items() if n - EXCEPTIONS.get(m, set())} == {}
    assert {m: n for m, n in EXCEPTIONS.items() if n - uses().get(m, set())} == {}, "remove these exceptions"
