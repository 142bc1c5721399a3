"""Tables and views as they are declared: how they are made, and which of them people may query."""

from __future__ import annotations

from msgspec import Struct


class Topic(Struct, frozen=True):
    """Some tables that belong together.

    `tables` and `views` are by name, with the statement that makes each; a comment behind a column says what it means.
    `indexes` are made after them. `of_transcript` are the tables whose rows go when their transcript is read anew or is
    gone, by `transcript_id`, in the order in which they are to be emptied; `of_entries` are those whose rows go with an
    entry, by `entry_id`, and before it. `private` are those that only the refresh
    needs: they are documented, and may change without notice.
    """

    tables: dict[str, str] = {}
    views: dict[str, str] = {}
    indexes: tuple[str, ...] = ()
    of_transcript: tuple[str, ...] = ()
    of_entries: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
