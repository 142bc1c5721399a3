"""Value types: the frozen structs that all other packages exchange. Import each from its own module.

- What is on disk: `homes`, `entries`, `blocks`, `attachments`, `results`, `side_files`, `usage`.
- Where it is, and what is wrong with it: `places`.
- What is built from it: `session`, `calls`, `state`, `context`, `ledger`, `receipts`, `reported_costs`, `budgets`,
  `insight`, `hits`.
- How people read and write it: `text` (numbers and times), `titles`, `names` (tools, versions), `times`, `tables`.
"""
