"""What tools print: test runs, diffs, listings, logs, JSON, stack traces, as templates (see `code`)."""

from __future__ import annotations

TESTS = {
    "go": """=== RUN   Test~V1~~N1~
=== RUN   Test~V1~~N1~/~s~
\x1b[32m--- PASS\x1b[0m: Test~V1~~N1~ (0.~i~s)
    --- PASS: Test~V1~~N1~/~s~ (0.00s)
ok  	example.test/~n~/~p~	0.~I~s	coverage: ~i~.4% of statements
""",
    "typescript": """ \x1b[32m✓\x1b[39m ~p~ \x1b[2m(~i~ tests)\x1b[22m \x1b[33m~i~ms\x1b[39m
 \x1b[31m✗\x1b[39m ~p~ > ~v~ ~n~ > ~d~
   \x1b[31m→ expected "~w~" to equal "~w~"\x1b[39m
""",
    "python": """~p~::test_~v~_~n~_~s~ \x1b[32mPASSED\x1b[0m [ ~i~%]
~p~::test_~v~_~n~[~w~-~i~] PASSED [ ~i~%]
E       AssertionError: ~d~
E       assert {'~f~': '~w~', '~n~': ~i~} == {'~f~': "~w~"}
""",
    "rust": """test ~n~::tests::~v~s_~n~_~s~ ... ok
thread '~n~::tests::~s~' panicked at '~d~', ~p~:~i~:~i~
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
""",
    "sql": """~t~  ~i~ of ~I~ PASS not_null_~n~_~f~ ............ [\x1b[32mPASS\x1b[0m in 0.~i~s]
~t~  ~i~ of ~I~ FAIL unique_~s~_~f~ ............ [\x1b[31mFAIL ~i~\x1b[0m in 1.~i~s]
~t~    compiled code at target/compiled/~p~: ~d~
""",
    "shell": """In ~p~ line ~i~:
	~v~ "$~n~" | grep ~w~
	^-- SC~I~ (warning): ~d~.
""",
}
"""What the test command of each language prints."""

DIFF = (
    """diff --git a/~p1~ b/~p1~
index ~h~..~h~ 100644
--- a/~p1~
+++ b/~p1~
@@ -~i~,7 +~i~,9 @@ func ~v~~N~(ctx context.Context)
\x20	~n1~ := load~N~("~w~")
-	return ~n1~.~f~, nil
+	if ~n1~ == nil {
+		return "", errors.New("~d~")
+	}
+	return ~n1~.~F~(), nil
 }
""",
    """commit ~H~
Author: Mara Voss <mara@example.test>
Date:   Tue ~t~ 2026 +0200

    ~D~

    ~d~. ~d~
    See #~I~ (“~w~ ~w~”).

 ~p~ | ~i~ ++++++++----
 2 files changed, ~i~ insertions(+), ~i~ deletions(-)
""",
)

PLAIN = (
    """~t~ ~p~: ~d~
~t~ ~s~: ~d~ (~I~ of ~I~)
""",
    """  ~D~. ~D~; ~d~.
  - ~d~
  - ~c~: ~d~
""",
    """~H~  ~p~
~I~ ~I~ ~I~ ~s~ ~p~
""",
)

LISTING = (
    """-rw-r--r--   1 mara  staff   ~I~ Jun ~i~ ~t~ ~s~.~w~
drwxr-xr-x  ~i~ mara  staff      ~I~ Jun  3 11:~i~ ~n~-~w~
""",
    """~p~:~i~:	if ~n~.~f~ != "~w~" { // ~d~
~p~:~i~:		return ~c~(~n~, "~w~")
""",
    """├── ~n~
│   ├── ~s~.~w~
│   └── ~w~_~n~.~w~  (~I~ bytes)
""",
)

LOG = (
    """2026-06-11T~t~Z	INFO	~n~/~v~.go:~i~	~d~	trace=~H~
2026-06-11T~t~Z	ERROR	~n~/~v~.go:~i~	~d~	{"error": "~v~ ~n~: ~d~", "attempt": ~i~}
""",
    """\x1b[90m[~t~]\x1b[0m \x1b[36m~w~.~n~\x1b[0m: ~d~ (~f~=~I~ms, ~f~=\"~h~\")
[~t~] ~u~: C:\\Users\\Mara\\src\\~n~\\~w~.log
""",
    """{"level":"warn","ts":~I~.~i~,"msg":"~d~","~n~":{"~f1~":"~w~","~f~":[~i~,~i~,~i~],"path":"/~w~/~w~"}}
""",
    """Traceback (most recent call last):
  File "/home/mara/src/~p~", line ~I~, in ~s~
    ~n~ = ~v~_~n~(self.~f~, key="~w~")
          ^^^^^^^^^^^^^^^^^^^^^
~N~Error: ~d~: '~w~\\n~w~'
""",
)

WEB = (
    """## ~D~

~D~. ~D~ [~w~ ~w~](https://docs.example.test/~w~/~n~?~f~=~i~#~s~).

```
~c~("~w~", { ~f~: ~i~ })
```

| ~w~ | ~w~ | default |
|---|---|---|
| `~f1~` | ~d~ | `"~w~"` |
| `~f2~` | ~d~ | `~i~` |

""",
)

SEARCH = LISTING[1:2] + PLAIN[:1] + LOG[2:3]
LOGS = LOG + PLAIN + PLAIN
