"""Tests of the architecture: layers, documentation of packages, and what the source must never do."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from grimp import ImportGraph
from tests.source_trees import SOURCE, source_nodes
from tools.import_contracts import PrivateModulesContract

ROOT = Path(__file__).parents[2]


def top_level_names() -> set[str]:
    """Return the names of the packages and modules of threadline."""
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    return packages | {path.stem for path in SOURCE.glob("*.py") if path.stem != "__init__"}


def _contracts() -> list[dict[str, Any]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts: list[dict[str, Any]] = project["tool"]["importlinter"]["contracts"]
    return contracts


def test_every_package_has_a_layer() -> None:
    """The import-linter contract names every package and module, and no other."""
    (layers,) = [contract for contract in _contracts() if contract["type"] == "layers"]
    assert layers["exhaustive"]
    named = [name for layer in layers["layers"] for name in re.split(r"[|:() ]+", layer) if name]
    assert sorted(named) == sorted(top_level_names())


@cache
def _private_modules() -> PrivateModulesContract:
    (options,) = [contract for contract in _contracts() if contract["type"] == PrivateModulesContract.type_name]
    return PrivateModulesContract(options["name"], {}, options)


def _is_kept(importer: str, imported: str) -> bool:
    """Whether an import is allowed."""
    graph = ImportGraph()
    graph.add_import(importer=importer, imported=imported)
    return _private_modules().check(graph, verbose=False).kept


def test_modules_of_every_package_are_private() -> None:
    """The import-linter contract prevents imports of another package's modules. Only `model` is open."""
    packages = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
    for package, other in zip(packages, [*packages[1:], packages[0]], strict=True):
        module = f"threadline.{package}.module"
        for importer in (f"threadline.{other}", f"threadline.{other}.module", "threadline.load", "threadline"):
            assert _is_kept(importer, f"threadline.{package}"), package
            assert _is_kept(importer, module) == (package == "model"), package
            assert _is_kept(importer, f"{module}.inner") == (package == "model"), package
        assert _is_kept(f"threadline.{package}", module)
        assert _is_kept(f"{module}.inner", module)
    assert _is_kept("threadline.cli.main", "threadline.render.html")
    assert _is_kept("threadline.render.text", "threadline.render.html.page")
    assert not _is_kept("threadline.cli.main", "threadline.render.html.page")
    assert not _is_kept("threadline.find_more", "threadline.find.homes")


def test_every_package_is_in_the_architecture_page() -> None:
    """`docs/architecture.md` has a row for each package and module."""
    rows = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(top_level_names())


def _missing_files(names: set[str]) -> list[str]:
    return [name for name in sorted(names) if not (SOURCE / name).exists() and not (ROOT / name).exists()]


def test_every_file_in_the_architecture_page_exists() -> None:
    """`docs/architecture.md` lists files by the words that a newcomer would look for."""
    text = (ROOT / "docs/architecture.md").read_text()
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.(?:py|json))?|\w+\.py)`", text)) - {"__init__.py"}
    assert len(named) > 50
    assert _missing_files(named) == []


def _defined_names(path: Path) -> set[str]:
    """The functions, classes and variables at the top of a module."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def test_every_name_in_the_architecture_page_is_defined() -> None:
    """A name in parentheses behind a file of `docs/architecture.md` is defined in that file."""
    text = (ROOT / "docs/architecture.md").read_text()
    mentions = re.findall(r"`((?:\w+/)*\w+\.py)` \(((?:`\w+`(?:, )?)+)\)", text)
    named = [(file, name) for file, names in mentions for name in re.findall(r"\w+", names)]
    assert len(named) > 8
    assert [(file, name) for file, name in named if name not in _defined_names(SOURCE / file)] == []


def test_every_module_named_in_decisions_exists() -> None:
    """CONTRIBUTING and `docs/decisions/` name modules by their current paths."""
    pages = [ROOT / "CONTRIBUTING.md", *(ROOT / "docs/decisions").glob("*.md")]
    named = {name for page in pages for name in re.findall(r"`((?:[\w-]+/)+\w+\.py)`", page.read_text())}
    assert len(named) > 20
    assert _missing_files(named) == []


def test_no_module_executes_data() -> None:
    """No module unpickles, evaluates, compiles, loads YAML or starts a program.

    Exceptions are the user's pager and browser, the Chromium that prints, git, the Python that runs an agent's SELECT
    and can be killed, and processes of our own that exchange pickled functions and results over pipes: the forks of
    `parallel`, and the process in which the page prepares a file.
    """
    allowed = {
        "output.py": {"subprocess"},
        "parallel.py": {"pickle", "os.fork"},
        "background_process.py": {"pickle", "subprocess"},
        "serve.py": {"webbrowser"},
        "formats.py": {"subprocess"},
        "git.py": {"subprocess"},
        "sql.py": {"subprocess"},
    }
    modules = {"pickle", "marshal", "shelve", "yaml", "runpy", "code", "subprocess", "pty", "webbrowser"}
    calls = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.startfile", "os.execv", "os.fork"}
    for path, nodes in source_nodes().items():
        imported = {name for node in nodes for name in _imports(node)}
        called = {_dotted_name(node.func) for node in nodes if isinstance(node, ast.Call)}
        assert not imported & modules - allowed.get(path.name, set()), path
        assert not called & calls - allowed.get(path.name, set()), path


def test_only_servers_use_the_network() -> None:
    """Only `web` and `mcp` may listen, and no module imports a network client (hostile.md, rule 6 of the design).

    The exception sends traces to the address that the user names.
    """
    clients = {
        "urllib.request",
        "http.client",
        "ftplib",
        "smtplib",
        "xmlrpc",
        "requests",
        "httpx",
        "aiohttp",
        "telnetlib",
    }
    network = {"socket", "socketserver", "ssl", "http", "asyncio"}
    for path, nodes in source_nodes().items():
        imported = {name for node in nodes for name in _imports(node)}
        if path.relative_to(SOURCE).as_posix() == "export/otlp/sender.py":
            continue
        assert not imported & clients, path
        # The SDK calls the session store with `await`.
        allowed = {"asyncio"} if path.relative_to(SOURCE).as_posix() == "store/session_store.py" else set()
        if path.relative_to(SOURCE).parts[0] not in {"web", "mcp"}:
            assert not imported & network - allowed, path


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    else:
        return
    for name in names:
        yield name
        yield name.partition(".")[0]


def _dotted_name(function: ast.expr) -> str:
    """Return the dotted name of a called function, or an empty text if it is not a name."""
    if isinstance(function, ast.Attribute):
        return f"{owner}.{function.attr}" if (owner := _dotted_name(function.value)) else ""
    return function.id if isinstance(function, ast.Name) else ""
