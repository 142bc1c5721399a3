"""Code in the languages of the made-up projects, as templates: `~n~` is a noun, `~n1~` the same noun again.

The letters are listed in `threadline.demo.text.Words`. Every template ends with an empty line.
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
