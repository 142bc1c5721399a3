"""The words that our own forms write: where one of them is also to be hidden, it is not a thing that was missed."""

from __future__ import annotations

import re

from threadline.render.redaction.wordlist import words

_ANCHOR = re.compile("l[0-9]{1,9}")


class _Own(frozenset[str]):
    """The words, and the anchors of entries: `L120` is a place that we named, and nothing that anybody said."""

    __slots__ = ()

    def __contains__(self, word: object) -> bool:
        return super().__contains__(word) or (isinstance(word, str) and _ANCHOR.fullmatch(word) is not None)


_WORDS = words(
    "a act active after agent agents all amount an and another answer api as assistant at background base64 became"
    " bound branch branches by cache call called calls characters charges claude cleared code command compacted"
    " compaction content context continuations cost created deeper denied description details diff done ended"
    " entries entry error errors evidence exit export exports failed failure feedback file files first folded format"
    " found from full git goes h has hash have here home hour html id image images in index input interrupted is it"
    " items its join json jsonl k kept kind known label last left line lines link list local lost lower m main"
    " markdown md memory message messages meta min mode model models moment more ms name new no none not nothing"
    " notice number of ok old on open or other out output page pages part parts pdf pending person place plan price"
    " priced problem problems programmatic project prompt prompts read reason redacted replies reply result results"
    " resume role run s search searches seconds session sessions shell show shown shows side site skip so source"
    " spent started state status steering stood subtype summary sureness system task tasks text that the them there"
    " these things thinking thread threadline time timestamp title to todo todos token tokens took tool tools"
    " transcript tree trigger turn turns txt type typed under unknown unpriced untitled usage user utc uuid version"
    " versions was web were what when where which while whole window with without words work working write written"
    " you"
)
OWN = _Own(_WORDS)
"""In small letters."""
