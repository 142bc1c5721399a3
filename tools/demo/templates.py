"""Templates for code, tool output and prose. `~n~` is a noun, `~n1~` the same noun again.

The letters are listed in `tools.demo.text.Words`. Every template ends with an empty line.
"""

from __future__ import annotations

GO = (
    """// ~D~.
//
// ~D~, because ~d~. So ~d~,
// and ~d~: see ~c~ and ~c~.
// ~D~; ~d~.
func (s *~N1~Store) ~V1~~N1~~N2~(ctx context.Context, ids []~N1~ID, limit int) ([]~N2~, error) {
	ctx, cancel := context.WithTimeout(ctx, s.~c~Timeout)
	defer cancel()
	rows, err := s.db.QueryContext(ctx, ~c~SQL, pq.Array(ids), limit+1, s.clock.Now().UTC())
	if err != nil {
		return nil, fmt.Errorf("~v1~ ~n1~: %w", err)
	}
	return scan~N2~s(rows, limit)
}

""",
    """// ~V1~~N1~ ~d~.
// It ~w~s ~w~ ~n2~s, see ~p~.
func (s *~N1~~N2~) ~V1~~N1~(ctx context.Context, ~n1~ ~N1~) error {
	if ~n1~.~f1~ == "" {
		return fmt.Errorf("~v1~ ~n1~: missing %q in %s", "~f1~", ~n1~.~f2~)
	}
	for i, ~n2~ := range ~n1~.~N2~s {
		if ~n2~.~f2~ != "~w~-~i~" && i > ~i~ {
			s.log.Warn("~d~", "~n2~", ~n2~.~f1~, "index", i)
			continue
		}
		// ~D~: ~d~.
		s.~n2~s[~n2~.~f1~] = append(s.~n2~s[~n2~.~f1~], ~c~(~n2~, ~i~))
	}
	return s.~v2~~N2~s(ctx, ~n1~)
}

""",
    """func Test~V1~~N1~~N2~(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   string
		want int
	}{
		{"~d~", "~w~\\t~w~\\n", ~i~},
		{"~d~", `{"~f1~":"~w~","~f2~":~I~}`, ~i~},
		{"~u~", "~w~/~w~", ~i~},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ~v1~~N1~(tt.in)
			if err != nil {
				t.Fatalf("~v1~~N1~(%q): %v", tt.in, err)
			}
			if got != tt.want {
				t.Errorf("got %d ~n2~s, want %d", got, tt.want)
			}
		})
	}
}

""",
    """type ~N1~~N2~ struct {
	// ~c~ says that ~d~.
	~c~ time.Duration
	// ~c~ is set once; ~d~.
	~c~  map[string]*~N2~
	~F1~ string `json:"~f1~"`
	mu   sync.Mutex
}

const default~N1~~V1~ = ~i~ * time.Second // ~d~

""",
)

TYPESCRIPT = (
    """// ~D~.
// ~D~, so ~d~;
// see ~c~ and ~c~ for the other half.
const ~c1~ = (~n1~: ~N1~, now = Date.now()): boolean =>
  ~n1~.~f1~ !== undefined && now - ~n1~.~f2~ < ~c~Window && !~c~.has(~n1~.~f1~);

export interface ~N1~~N2~ extends Base~N1~ {
  /** ~D~. */
  readonly ~c~: number;
  /** ~D~, or undefined when ~d~. */
  readonly ~c~?: ReadonlyMap<string, ~N2~>;
}

""",
    """/**
 * ~D~.
 *
 * @param ~n1~ the ~n1~ to ~v1~; ~d~
 */
export async function ~v1~~N1~(~n1~: ~N1~, options: ~N1~Options = {}): Promise<~N2~[]> {
  const { ~f1~ = "~w~", ~f2~ = ~i~ } = options;
  if (!~n1~ || ~n1~.~f1~ === "") {
    throw new ~N1~Error(`cannot ~v1~ ~n1~ "${~n1~.~f2~}": ~d~`);
  }
  const ~n2~s = await db.query<~N2~>('select * from "~n2~" where "~f1~" = $1', [~f1~]);
  return ~n2~s
    .filter((~n2~) => ~n2~.~f2~ !== null && !~n2~.~w~)
    .map((~n2~) => ({ ...~n2~, ~f2~: Math.round(~n2~.~f2~ * 100) / 100, label: t("~w~.~w~") }));
}

""",
    """describe("~N1~ ~v1~", () => {
  it("~d~", async () => {
    const ~n1~ = make~N1~({ ~f1~: "~h~", ~f2~: ~I~ });
    await expect(~v1~~N1~(~n1~)).resolves.toEqual([expect.objectContaining({ ~f2~: ~i~ })]);
    expect(screen.getByRole("button", { name: /~w~ ~w~/i })).toHaveTextContent("~u~");
  });
});

""",
    """export const ~N1~~N2~: React.FC<~N1~Props> = ({ ~n1~, on~V1~ }) => {
  const [~w1~, set~W1~] = useState<string>("");
  const ~c1~ = useMemo(() => ~n1~.~n2~s.filter((x) => x.~f1~.includes(~w1~)), [~n1~, ~w1~]);
  return (
    <section className="~n1~-~n2~ ~w~" aria-label="~d~">
      {~c1~.map((~n2~) => (
        <button key={~n2~.~f1~} type="button" onClick={() => on~V1~(~n2~)}>
          {~n2~.~f2~} &middot; {t('~n1~.~w~')}
        </button>
      ))}
    </section>
  );
};

""",
)

PYTHON = (
    """# ~D~.
# ~D~, because ~d~.
# That is why ~d~.
def _~s1~(~n1~: ~N1~, ~n2~s: Sequence[~N2~], *, ~f1~: float = 0.~i~) -> tuple[int, int]:
    low = bisect_left(~n2~s, ~n1~.~f1~ - ~f1~, key=_~s~)
    high = bisect_right(~n2~s, ~n1~.~f1~ + ~f1~, key=_~s~)
    if high - low > _MAX_~F1~:
        return low, low + _MAX_~F1~  # ~d~
    return low, high


""",
    '''def ~v1~_~n1~(~n1~: ~N1~, *, ~f1~: int = ~i~, ~w1~: bool = False) -> list[~N2~]:
    """~D~.

    Args:
        ~n1~: The ~n1~ to ~v1~; ~d~.
        ~f1~: ~d~.
    """
    if not ~n1~.~n2~s:
        raise ValueError(f"~d~: {~n1~.~f1~!r} has no \\"~n2~\\"")
    found: dict[str, list[~N2~]] = defaultdict(list)
    for ~n2~ in sorted(~n1~.~n2~s, key=lambda item: item.~f2~):
        if ~n2~.~f2~ < ~f1~ and not ~w1~:
            logger.debug("~w~ %s: ~d~\\n", ~n2~.~f1~)
            continue
        found[~n2~.~f1~].append(~n2~)  # ~d~
    return [best for group in found.values() if (best := max(group, key=~s~))]


''',
    '''class ~N1~~N2~:
    """~D~."""

    ~F1~ = "~w~-~w~"

    def __init__(self, ~n1~: ~N1~, path: Path = Path("~p~")) -> None:
        self._~n1~ = ~n1~
        self._~s1~ = re.compile(r"^(\\w+)\\s*=\\s*\\"([^\\"]*)\\"$")
        self._~n2~s: dict[str, int] = {}

    def ~v1~(self) -> Iterator[tuple[str, int]]:
        with self._path.open(encoding="utf-8", newline="\\n") as lines:
            for number, line in enumerate(lines, start=1):
                match = self._~s1~.match(line.rstrip("\\r\\n"))
                if match is None:
                    raise ~N1~Error(f"{self._path}:{number}: ~d~")
                yield match[1], self._~n2~s.setdefault(match[2], ~i~)


''',
    '''@pytest.mark.parametrize(("~f1~", "expected"), [("~w~", ~i~), ("~u~", ~i~), ("\\t", None)])
def test_~v1~_~n1~_~s~(~f1~: str, expected: int | None, tmp_path: Path) -> None:
    """~D~."""
    ~n1~ = ~N1~.from_json(\'{"~f1~": "~w~", "~f2~": ~I~}\')
    result = ~v1~_~n1~(~n1~, ~w~=~f1~)
    assert [item.~f2~ for item in result] == [expected] * ~i~, "~d~"


''',
)

RUST = (
    """// ~D~.
// ~D~, and ~d~.
impl ~N1~~N2~ {
    /// ~D~; ~d~.
    pub async fn ~v1~_~s~(&mut self, ~n2~s: &[~N2~]) -> anyhow::Result<usize> {
        let before = self.~s~.len();
        self.~n2~s.extend(~n2~s.iter().filter(|~n2~| !~n2~.is_~w~()).cloned());
        self.~n2~s.dedup_by_key(|~n2~| ~n2~.~f1~);
        Ok(self.~n2~s.len().saturating_sub(before))
    }
}

""",
    """/// ~D~.
///
/// Returns `Err` if ~d~.
pub fn ~v1~_~n1~(~n1~: &~N1~, ~f1~: Option<&str>) -> Result<Vec<~N2~>, ~N1~Error> {
    let mut ~n2~s = Vec::with_capacity(~i~);
    for (index, ~n2~) in ~n1~.~n2~s.iter().enumerate() {
        match ~n2~.~f2~ {
            Some(ref value) if value.starts_with("~w~") => ~n2~s.push(~n2~.clone()),
            Some(_) => log::warn!("~d~: {} at {index}", ~n2~.~f2~.as_deref().unwrap_or("?")),
            None => return Err(~N1~Error::Missing { field: "~f2~", at: index }),
        }
    }
    ~n2~s.sort_by_key(|~n2~| std::cmp::Reverse(~n2~.~s~));
    Ok(~n2~s)
}

""",
    """#[test]
fn ~v1~s_~n1~_~s~() {
    let ~n1~ = ~N1~::parse("~w~ \\"~u~\\" ~i~\\n").expect("~d~");
    assert_eq!(~n1~.~f1~, ~I~, "~d~");
    assert!(matches!(~v1~_~n1~(&~n1~, None), Err(~N1~Error::Missing { field: "~f2~", .. })));
}

#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ~N1~~N2~ {
    /// ~D~.
    pub ~s~: String,
    pub ~f1~: Option<u64>, // ~w~ ~w~ ~w~
    #[serde(default)]
    pub ~n2~s: HashMap<String, ~N2~>,
}

""",
)

SQL = (
    """-- ~D~.
-- ~D~, because ~d~.
create index concurrently if not exists ~n1~_~s~ on ~n1~s (~f1~, ~f2~ desc) where ~f2~ is not null;
update ~n1~s set ~f1~ = ~n2~s.~f1~ from ~n2~s
 where ~n2~s.~f2~ = ~n1~s.~f2~ and ~n1~s.~f1~ is distinct from ~n2~s.~f1~;

""",
    """-- ~D~
with ~n1~s as (
    select
        ~f1~,
        ~f2~,
        row_number() over (partition by ~f1~ order by ~f2~ desc) as ~s1~
    from {{ ref('stg_~n1~s') }}
    where ~f1~ is not null
      and "~n2~" <> '~w~ ~w~'
),

~n2~s as (
    select ~f1~, count(*) as ~n2~_count, sum(coalesce(~f2~, 0)) / ~i~.0 as ~s~
    from ~n1~s
    where ~s1~ = 1 -- ~d~
    group by 1
)

select * from ~n2~s left join {{ ref('dim_~n2~') }} using (~f1~)

""",
    """  - name: fct_~n1~_~n2~_~s~
    description: "~D~; ~d~"
    columns:
      - name: ~f1~
        tests: [not_null, unique]
      - name: ~f2~
        description: '~w~ ~w~ (~u~)'
        tests:
          - accepted_values: {values: ["~w~", "~w~", "~w~"]}

""",
)

SHELL = (
    """# ~D~.
# ~D~, so ~d~: see ~p~.
set -euo pipefail
readonly ~F1~=$HOME/.config/~n1~/~s~
find $~F1~ -type f -mtime +~i~ -print0 | xargs -0 --no-run-if-empty ~v1~ --~w~ --~f2~ ~i~

""",
    """# ~D~.
~v1~_~n1~() {
	local ~f1~="${1:?~d~}" ~w1~
	for ~w1~ in "$HOME"/.~n1~/*.~w~; do
		[ -e "$~w1~" ] || continue
		if ! grep -q "^~s~=" "$~w1~"; then
			printf '%s\\t%s\\n' "$~w1~" "~d~" >&2
			return ~i~
		fi
		ln -sfn "$~w1~" "$~f1~/$(basename "$~w1~" | sed -e 's/\\.~w~$//')"
	done
}

""",
    """case "$(uname -s)" in
	Darwin) ~n1~="/opt/~n1~/~w~" ;;
	Linux)	~n1~="/usr/share/~n1~" ;;
	*)	echo "~d~: $(uname -a)" >&2; exit ~i~ ;;
esac
export ~F1~="${~F1~:-$~n1~}"	# ~d~
alias ~w~='~v1~ --~w~ --~f2~="~w~"'

""",
)

BY_LANGUAGE = {
    "go": GO,
    "typescript": TYPESCRIPT,
    "python": PYTHON,
    "rust": RUST,
    "sql": SQL,
    "shell": SHELL,
}


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
- Can each ~n1~ without `~f~` be ~a~ or refused? I left it as it was…
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


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


COMMON = _words("""
    about above after again against almost along already always among another around aside asked away
    back because become before begin behind being below beside better between beyond both branch breaks
    bring broken build built call called careful carry case cause certain change check clear close code
    come common complete contains correct could cover current cut daily data decide deep default depend
    describe detail different direct does done double down draft drop during each early edge either empty
    enough entire equal error even every exact except expect explain extra fail fallback false far fast
    few field file final find first fix flag flat follow form found fresh from full further general give
    given goes good great group grow guard half hand handle hard have held help here hidden hold hour
    idea inside instead into invalid issue item join just keep kept kind known large last late later layer
    lead leave left less level light like limit line list little local lock long look loop loose lost low
    main make many mark match maybe mean merge middle might minor miss mode more most move much must name
    narrow near need never next night none normal note nothing number often older once only open order
    other outer over owner pair part pass past path pending place plain plan point prefer present previous
    print proper public pull push put quick quiet quite raise range rather raw reach read ready real
    reason record reduce remain remove rename repeat replace request rest result retry return right root
    round row rule safe same save scan second section seems select send separate set several shape share
    short should show side silent similar simple since single size skip slow small smooth some soon sort
    source space split stable stage stale start state stay step still stop store strict string strong such
    sure table take target tell temporary test text than that their them then there these thing this those
    through time tiny today together token too top total touch toward trace track true try turn twice
    type under unless until unused update upper usual valid value very view wait walk want warm watch week
    well went were what when where whether which while whole wide window with within without word work
    would wrap write wrong year yet zero
""")

STATES = _words("""
    absent aligned broken busy cached clean closed complete correct deferred dirty doubled dropped empty equal
    expired fresh frozen hidden idle inverted late loaded locked lost missing narrow negative nested old open
    partial pending plain private ready renamed reversed rounded shared short silent skipped small sorted
    split stable stale stored strict swapped truncated unknown unsorted untested unused valid wide wrong zero
""")

FOREIGN = (
    "日本語の表示名",
    "潮位計を更新しました",
    "注文が見つかりません",
    "请检查配置文件",
    "測定値が範囲外です",
    "größte Höhe",
    "Überlauf im Puffer",
    "naïve façade",
    "señal perdida",
    "přesčas",
    "żółty wątek",
    "ελλείπει πεδίο",
    "한국어 자막",
)

EMOJI = (
    "\U0001f41b",
    "\U0001f680",
    "\U0001f9ea",
    "\u2705",
    "\u274c",
    "\u26a0\ufe0f",
    "\U0001f4dd",
    "\U0001f527",
)

MOODS = _words("""
    amber brisk calm cobalt curious dapper eager fabled gentle hazy idle jolly keen lucid mellow nimble
    patient quiet rustic snug tidy upbeat velvet wandering wistful zesty
""")
MOTIONS = _words("""
    baking bouncing carving drifting exploring floating gathering humming juggling knitting leaping
    mapping nesting orbiting painting roaming sailing sketching spinning tumbling weaving whistling
""")
BEINGS = _words("""
    acorn badger comet dolphin ember fox gecko heron island jackdaw kettle lantern marmot nebula otter
    pebble quokka river sparrow teapot urchin violet walrus yarrow zephyr
""")

FEEDBACK = (
    "yes, go ahead",
    "looks good. Commit it, please",
    "hmm, that broke the other case, look at the last test again",
    "can you explain why, before you change more?",
    "no, keep the old name and add an alias",
    "run everything once more and show me the output",
    "that is too much at once: split it in two commits",
    "what happens when the input is empty?",
    'please use "double quotes" as in the rest of the file',
    "not like this. Undo it and try the smaller change first",
    "ok, and now write it down in the docs:\n\n- what it does\n- what it does not do\n- how to turn it off",
    "the CI says:\n```\nerror: process completed with exit code 1\n```\nis that us?",
    "ありがとう! 次はテストも追加してください",
    "continue",
    "great, what is left to do?",
)

COMMANDS = ("/clear", "/model", "/cost", "/context", "/status", "/mcp")

PAGE = 60_000
"""Bytes that must be left in a transcript for an agent inside it to make sense."""
