"""The command that installs an optional part of threadline into the environment that it runs in.

Messages name the usual command, `pip install 'threadline[web]'`. It fails, or installs into another environment, if
threadline was installed with pipx or uv, if another `pip` comes first in the `PATH`, or if only a clone has it.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

_COMMAND = re.compile(r"pip install '?(?P<requirement>[\w.-]+(?:\[(?P<extra>[\w,-]+)\])?)'?")


def adapt_install_command(message: str) -> str:
    """Replace the `pip install` of a message by the command that works in this environment."""
    return _COMMAND.sub(lambda match: f"{_installer()} {_requirement(match['requirement'], match['extra'])}", message)


def _installer() -> str:
    """Return the words that install a package into this environment."""
    if "pipx" in Path(sys.prefix).parts:
        return f"pipx runpip {Path(sys.prefix).name} install"
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python}"
    pip = shutil.which("pip")
    is_own = pip is not None and Path(pip).parent == Path(sys.executable).parent
    return "pip install" if is_own else f"{python} -m pip install"


def _requirement(requirement: str, extra: str | None) -> str:
    """Return a requirement, quoted. That of threadline names the place that it was installed from, if that is known."""
    source = _source() if extra is not None else None
    if source is None:
        return f"'{requirement}'" if extra is not None else requirement
    url, is_editable = source
    if is_editable:
        return f"-e {shlex.quote(f'{unquote(urlsplit(url).path)}[{extra}]')}"
    return f"'{requirement} @ {url}'"


def _source() -> tuple[str, bool] | None:
    """Return the URL that threadline was installed from, and whether it is editable; None if not from a URL."""
    try:
        text = distribution("threadline").read_text("direct_url.json")
        value = json.loads(text) if text else {}
        return (str(value["url"]), bool(value.get("dir_info", {}).get("editable"))) if "url" in value else None
    except (PackageNotFoundError, ValueError):
        return None
