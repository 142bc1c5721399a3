"""The shape of the source: layers, names, and what it never does."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import threadline

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/threadline"


def parts() -> set[str]:
    """The packages and modules that threadline is made of."""
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    return packages | {path.stem for path in SOURCE.glob("*.py") if path.stem != "__init__"}


def trees() -> Iterator[tuple[Path, ast.Module]]:
    """Every module, taken apart."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, ast.parse(path.read_text())


def test_every_package_has_its_layer() -> None:
    """The contract that import-linter holds names every package and module there is, and no other."""
    (contract,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert (contract["type"], contract["exhaustive"]) == ("layers", True)
    named = [name for layer in contract["layers"] for name in re.split(r"[|:() ]+", layer) if name]
    assert sorted(named) == sorted(parts())


def test_every_package_is_explained() -> None:
    """Each package and module stands in the table of `docs/architecture.md`, and in no other than its own name."""
    rows = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(parts())


def test_public_names_are_known_to_type_checkers() -> None:
    """What type checkers see under `TYPE_CHECKING` is what `__all__` lists and what is loaded on demand."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    (checking,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {name.name: node.module for node in checking.body if isinstance(node, ast.ImportFrom) for name in node.names}
    assert sorted(seen) == sorted(threadline.__all__)
    assert seen == threadline._MODULES


def test_public_values_are_explained() -> None:
    """A public name that is no class or function has a docstring below it, where it is made."""
    for name, module in threadline._MODULES.items():
        if getattr(threadline, name).__doc__ and hasattr(getattr(threadline, name), "__module__"):
            continue
        path = SOURCE.parent / module.replace(".", "/")
        tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
        made = [
            after
            for node, after in zip(tree.body, tree.body[1:], strict=False)
            for target in (node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)])
            if isinstance(target, ast.Name) and target.id == name
        ]
        assert made, name
        assert isinstance(made[0], ast.Expr), name
        assert isinstance(made[0].value, ast.Constant), name


def test_nothing_runs_code_that_data_brings() -> None:
    """No module unpickles, evaluates, compiles, loads YAML or starts a program.

    But the person's own pager and browser are ones, and so is the Chromium that prints; and a crew's forks, which are
    this process, hand it their answers pickled.
    """
    allowed = {
        "screen.py": {"subprocess"},
        "crew.py": {"pickle", "os.fork"},
        "serve.py": {"webbrowser"},
        "pdf.py": {"subprocess"},
    }
    modules = {"pickle", "marshal", "shelve", "yaml", "runpy", "code", "subprocess", "pty", "webbrowser"}
    calls = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.startfile", "os.execv", "os.fork"}
    for path, tree in trees():
        imported = {name for node in ast.walk(tree) for name in _imports(node)}
        called = {_name(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert not imported & modules - allowed.get(path.name, set()), path
        assert not called & calls - allowed.get(path.name, set()), path


def test_nothing_below_a_face_knows_the_network() -> None:
    """Only faces may listen, and nothing connects: no module imports a client (hostile.md, rule 6 of the design)."""
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
    for path, tree in trees():
        imported = {name for node in ast.walk(tree) for name in _imports(node)}
        assert not imported & clients, path
        if path.relative_to(SOURCE).parts[0] not in {"web", "mcp"}:
            assert not imported & network, path


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [one.name for one in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
    else:
        return
    for name in names:
        yield name
        yield name.partition(".")[0]


def _name(function: ast.expr) -> str:
    return ast.unparse(function) if isinstance(function, ast.Name | ast.Attribute) else ""
