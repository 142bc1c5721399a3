"""Package interfaces: what a package's `__init__` exports."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import threadline

SOURCE = Path(__file__).parents[2] / "src" / "threadline"
LAZY = sorted(
    ".".join(("threadline", *path.parent.relative_to(SOURCE).parts))
    for path in SOURCE.rglob("__init__.py")
    if "export_lazily(" in path.read_text()
)


def _typed_exports(tree: ast.Module) -> set[tuple[str, str, str]]:
    """Return what type checkers see: module, name in it, public name."""
    (checking,) = [node for node in tree.body if isinstance(node, ast.If)]
    return {
        (node.module or "", alias.name, alias.asname or alias.name)
        for node in checking.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _lazy_exports(tree: ast.Module, package: str) -> set[tuple[str, str, str]]:
    """Return what the table of `export_lazily` loads: module, name in it, public name."""
    (call,) = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "export_lazily"
    ]
    table: dict[str, list[str]] = ast.literal_eval(call.args[1])
    exports = set()
    for module, names in table.items():
        for entry in names:
            name, _, public = entry.partition(" as ")
            exports.add((f"{package}.{module}", name, public or name))
    return exports


def _tree(package: str) -> ast.Module:
    return ast.parse((SOURCE.joinpath(*package.split(".")[1:]) / "__init__.py").read_text())


@pytest.mark.parametrize("package", LAZY)
def test_type_checkers_see_what_is_loaded(package: str) -> None:
    """The imports under `TYPE_CHECKING` and the lazy table of a package are the same, and every name loads."""
    tree = _tree(package)
    assert _typed_exports(tree) == _lazy_exports(tree, package)
    module = importlib.import_module(package)
    for _, _, public in _lazy_exports(tree, package):
        assert getattr(module, public) is not None


@pytest.mark.parametrize("package", LAZY)
def test_no_export_has_the_name_of_a_module(package: str) -> None:
    """Importing a submodule sets it as an attribute of its package, which would hide an export of the same name."""
    folder = SOURCE.joinpath(*package.split(".")[1:])
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    assert not modules & {public for _, _, public in _lazy_exports(_tree(package), package)} - {"threadline"}


def test_public_names_are_listed() -> None:
    """`threadline.__all__` lists exactly what `threadline` exports."""
    assert sorted(threadline.__all__) == sorted(public for _, _, public in _typed_exports(_tree("threadline")))


def test_public_values_are_documented() -> None:
    """A public name that is neither a class nor a function has a docstring below its definition."""
    for module, name, public in _typed_exports(_tree("threadline")):
        value = getattr(threadline, public)
        if value.__doc__ and hasattr(value, "__module__"):
            continue
        path = SOURCE.parent / module.replace(".", "/")
        tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
        following = [
            after
            for node, after in zip(tree.body, tree.body[1:], strict=False)
            for target in (node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)])
            if isinstance(target, ast.Name) and target.id == name
        ]
        assert following, name
        assert isinstance(following[0], ast.Expr), name
        assert isinstance(following[0].value, ast.Constant), name


def test_every_package_has_a_docstring() -> None:
    """It says what the package does."""
    for path in SOURCE.rglob("__init__.py"):
        assert len((ast.get_docstring(ast.parse(path.read_text())) or "").split()) > 3, path
