"""Everything in all homes at once, one module a question: `overview`, `doctor`, `sessions`, `failures`, `ledger`.

Nothing is imported here: a command pays for its own question alone.
"""
