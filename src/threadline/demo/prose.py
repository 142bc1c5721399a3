"""What the model says and thinks, as templates (see `code` for the notation)."""

from __future__ import annotations

NARRATION = (
    "Let me look at how the ~n~ is stored.\n\n",
    "Now the test for the ~a~ ~n~.\n\n",
    "I'll check who calls `~c~` before I change it.\n\n",
    "That failed because ~d~. Let me fix it.\n\n",
    "The ~n~ looks right; next is `~p~`.\n\n",
    "Good, this confirms it: ~d~.\n\n",
    "Let me run the tests again.\n\n",
    'I see "~d~" in the output → that is the cause.\n\n',
    "Both places need the same change, so I do them together.\n\n",
    "Hm, `~f~` is ~a~ here. I want to see where it is set.\n\n",
)

REPLY = (
    """I found it. `~v1~~N1~` in `~p~` takes the ~n1~ before the ~n2~ is ~a~, so ~d~.

""",
    """Here is what I changed:
- **`~p~`**: ~d~; the ~n1~ now keeps its `~f~`.
- **`~p~`**: a test for "~d~" (it fails without the change).
- Nothing else uses `~c~`, so the old name is gone.

""",
    """The ~n1~ was ~a~ because ~d~ — not because of the ~n2~. ~D~:
1. `~v1~~N1~()` returned early when `~f1~` was `""`.
2. The caller in `~p~:~i~` took that for a ~a~ ~n2~.
3. So every ~n2~ after it was ~a~.

""",
    """```~l~
~v~_~n~(~f~="~w~", ~n~=~i~)  # ~d~
```

""",
    """| case | before | after |
|---|---|---|
| ~d~ | ~i~ ms | **~i~ ms** |
| ~a~ ~n~ | error: "~a~" | ok ✓ |

""",
    """All ~i~ tests pass. ~D~.

""",
    """Two things I am not sure about:
- Should a ~n1~ without `~f~` be ~a~ or refused? I left it as it was…
- `~p~` says "~d~", but the code does the opposite. I did not touch it.

""",
    """## What is left
- [ ] ~d~
- [ ] a note in the docs that ~d~
- [x] `~c~` (done with the last commit, `~h~`)

""",
    """There are three ways to do it. The simplest: ~d~. The one I would take: ~d~, which costs one more
look-up per ~n1~ but needs no lock. The third is to ~v~ everything at the start; I would not.

""",
    """It is not a bug in `~v1~~N1~`. The recording has a ~a~ ~n1~ at line ~I~, and ~d~. I added that line as
a test case, so that nobody has to find it again.

""",
    """Committed as `~h~` on this branch: "~d~". I left the ~n2~ alone, as you asked.

""",
)

THOUGHT = (
    """The user wants the ~n1~ to ~v1~ when ~d~. Let me look at `~p~` first. I should be careful: ~d~.

""",
    """So `~c~` is called from ~i~ places. In ~p~ it gets "~a~", which means ~d~. Wait, that is not right: \
the ~n2~ is read before it is written. Hmm.

""",
    """Options:
1. ~D~. Simple, but ~d~.
2. ~D~; it changes the `~f~` of every ~n1~.
3. Leave it, and only ~v~ the ~n2~ at the end.

I think (~j~) is the smallest change that is right. I'd rather write the test first, then see whether ~d~.

""",
    """The test failed with '~d~' at ~p~:~i~. That's because the ~n1~ has no ~f~. Let me fix that:

    ~v~_~n~(~n~.~f~, "~a~")

and run it again.

""",
    """They said not to touch the ~n2~. So the change has to stay in `~c~`; ~d~. Is there a test for a ~a~ \
~n1~? I don't think so. I'll add one.

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
