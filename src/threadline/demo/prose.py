"""What the model says and thinks, as templates (see `code` for the notation)."""

from __future__ import annotations

REPLY = (
    """I found it. `~v1~~N1~` in `~p~` ~w~s the ~n1~ before the ~n2~ is ~w~, so ~d~.

""",
    """Here is what I changed:

- **`~p~`**: ~d~; the ~n1~ now keeps its `~f~`.
- **`~p~`**: a test for "~d~" (it fails without the change).
- Nothing else uses `~c~`, so the old name is gone.

""",
    """## Summary

The ~n1~ was ~w~ because ~d~ — not because of the ~n2~. ~D~.

1. `~v1~~N1~()` returned early when `~f1~` was `""`.
2. The caller in `~p~:~i~` took that for ~w~.
3. So every ~n2~ after it was ~w~.

""",
    """```~l~
~v~_~n~(~f~="~w~", ~n~=~i~)  # ~d~
```

""",
    """| case | before | after |
|---|---|---|
| ~d~ | ~i~ ms | **~i~ ms** |
| ~w~ ~n~ | error: "~w~" | ok ✓ |

All ~i~ tests pass. ~D~.

""",
    """Two things I am not sure about:

- Should a ~n1~ without `~f~` be ~w~ or refused? I left it as it was…
- `~p~` says "~d~", but the code does the opposite. I did not touch it.

""",
    """Let me check how the ~n~ is ~w~ first → then the ~n2~.

""",
)

THOUGHT = (
    """The user wants the ~n1~ to ~v1~ when ~d~. Let me look at `~p~` first. I should be careful: ~d~.

""",
    """So `~c~` is called from ~i~ places. In ~p~ it gets "~w~", which means ~d~. Wait, that is not right: \
the ~n2~ is read before it is written. Hmm.

""",
    """Options:
1. ~D~. Simple, but ~d~.
2. ~D~; it changes the `~f~` of every ~n1~.
3. Leave it, and only ~v~ the ~n2~ at the end.

I think (~j~) is the smallest change that is right. I'd rather write the test first, then see whether ~d~.

""",
    """The test failed with '~d~' at ~p~:~i~. That's because the ~n1~ has no ~f~. Let me fix that:\n\n    \
~v~_~n~(~n~.~f~, "~w~")\n\nand run it again.

""",
)

SUMMARY = """This session is being continued from a previous conversation that ran out of context. \
What happened so far:

## Asked for

~D~. ~D~.

## Done

- `~p~`: ~d~
- `~p~`: ~d~; `~v~_~n~("~w~")` is new
- the test "~d~" failed at first, because ~d~

## Open

- ~D~
- ~D~

## Just now

~D~. ~D~.

"""
