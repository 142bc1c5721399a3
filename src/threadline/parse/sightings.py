"""A transcript as sightings of messages: what accounting needs, at the speed of looking for bytes.

Only lines that hold a token count are decoded, and of those only what counts. Such a line holds `put_tokens"`, for
every count's key ends so (`input_tokens`, `output_tokens`, `cache_read_input_tokens` and the rest), and no writer of
JSON escapes letters in a key. A line that does not decode at once is read by the forgiving reader, so that what
`entries` recovers is counted, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from threadline.errors import Error
from threadline.model.found import Transcript
from threadline.model.sighting import Seen
from threadline.parse.gathering import Gathering
from threadline.parse.lines_with import lines_with

NEEDLE = b'put_tokens"'
"""What every line with a token count holds."""
_FIRST = 16 * 1024


def _first_lines(block: bytes) -> Iterator[bytes]:
    """The first lines of a block, one by one: the first of all mostly tells what is wanted."""
    start = 0
    while start < _FIRST and (end := block.find(b"\n", start) + 1):
        yield block[start:end]
        start = end


def sightings(transcript: Transcript, *, calls: bool = True) -> Seen:
    """Every message that a transcript tells the usage of. Refusals of the machine become a problem.

    Without `calls`, it is not told which tools a message calls: a tenth of the time, and few reports ask for it.
    """
    gathering = Gathering(transcript, calls=calls)
    first: Iterable[bytes] = ()
    passed = 0
    try:
        for found in lines_with(transcript.path, NEEDLE):
            first = first or _first_lines(found.block)
            passed += found.passed
            gathering.add(found)
        seen = gathering.seen(first)
    except Error as error:
        return Seen("", gathering.origins, gathering.sightings, str(error))
    if passed:
        seen.problem = f"{str(transcript.path)!r} has {passed:,} bytes in lines that are too long to be read."
    return seen
