"""A contract for import-linter: packages are imported by their interface only.

import-linter's own `protected` contract needs a block for each package, because its wildcards cannot say "the same
package".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class PrivateModulesContract(Contract):
    """No module imports a module of another package, only the package itself.

    `public` are packages without an interface, whose modules anybody may import. `interfaces` are packages inside
    packages that others import like a package.
    """

    type_name = "private_modules"

    public: Any = fields.ListField(subfield=fields.StringField(), required=False, default=[])
    interfaces: Any = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002 - the signature of import-linter
        """Find all imports that are not allowed."""
        violations = sorted(self._violations(graph))
        return ContractCheck(kept=not violations, metadata={"violations": violations})

    def _violations(self, graph: ImportGraph) -> Iterator[tuple[str, str]]:
        for module in graph.modules:
            owner = ".".join(module.split(".")[:2])
            if module != owner and owner not in self.public and module not in self.interfaces:
                for importer in graph.find_modules_that_directly_import(module):
                    if f"{importer}.".startswith(f"{owner}."):
                        continue
                    yield importer, module

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the imports."""
        for importer, module in check.metadata["violations"]:
            output.print_error(f"{importer} imports {module}: import the package instead, and export the name there.")
