"""The `threadline export` command: `command` writes files, and `traces` writes or sends OpenTelemetry traces."""

from threadline.cli.export.command import export

__all__ = ["export"]
