"""A glance over a window: the signs that several searches begin with are looked for once for all of them."""

from __future__ import annotations

import re

from threadline.render.redaction.assigned import ENV_WORDS, LONG_OPTION
from threadline.render.redaction.broken import anchors
from threadline.render.redaction.rare import Rare

# In lower case, so that one search does for names and for forms; where case matters, those who ask look again. What
# begins with a letter is told apart at once, and what looks behind is slower: that comes last.
_DASH = re.compile(
    rb"-(?:[panu](?<=[ \t]-.)|-(?=[a-z0-9])(?=" + LONG_OPTION + rb"|(?:proxy-)?user)"
    rb"|s(?<=sudo -s)()|s(?<=convertto-s)ecurestring()|b(?<=-----b)egin()|e(?<=-----e)nd()|l(?<=private-l)ines: ()"
    rb"|" + anchors(b"-") + rb"(?P<anchor>))"
)
_ANCHOR = _DASH.groupindex["anchor"]
# A letter that goes on with the name says that it is another one; `is` and `was` may stand there.
_NAME_ENDS = rb"(?![a-hj-vx-z0-9_])"
_UNDERSCORE = re.compile(rb"_(?:" + b"|".join(word + _NAME_ENDS for word in ENV_WORDS) + rb"|" + anchors(b"_") + rb")")


def glance(low: bytes) -> Rare:
    """What a window in lower case has of what is rare."""
    seen = Rare(low)
    for found in _DASH.finditer(low):
        # What begins a word or an option may be in the middle of a form, too.
        seen.dashes.append(found.start())
        if found.lastindex is None:
            seen.options.append(found.start())
        elif found.lastindex != _ANCHOR:
            seen.words.add(found[0])
    seen.underscores = [found.start() for found in _UNDERSCORE.finditer(low)]
    return seen
