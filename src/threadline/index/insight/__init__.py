"""The part of the index that answers questions of `threadline.insight`: costs, waste, outcomes, tools.

A refresh does not fill these tables (`tables`). They are filled when somebody asks, session by session:
`stored_insights` stores what caused costs and what was wasted, `outcomes` stores commits, pull requests, test
runs and changed lines. `queries` reads them.
"""
