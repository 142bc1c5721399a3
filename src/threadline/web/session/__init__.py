"""The pages of one session: the conversation with its frame, and the pages below it.

`page` is the session's page, `parts` the pages below it. `view` parses what a request wants to see. `head`, `side` and
`usage` render the frame of the conversation. The routes are in `web/app.py`.
"""
