"""Words that every made-up project shares: the plain vocabulary, and phrases outside ASCII."""

from __future__ import annotations


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
