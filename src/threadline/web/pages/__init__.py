"""The pages about all sessions: home, lists, search, usage, doctor, keys. Those of insight are in `web/insight/`.

Each module has a function from a `PageRequest` to a `Page`; `forms` has what they share. The routes are in
`web/app.py`.
"""
