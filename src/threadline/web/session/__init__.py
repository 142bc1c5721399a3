"""The pages of one session: the conversation, what surrounds it, and the pages below it.

`page` is the session's page, `parts` the pages below it. `view` parses what a request wants to see, `head`, `side` and
`usage` render what surrounds the conversation. The routes are in `web/app.py`.
"""
