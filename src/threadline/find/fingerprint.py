"""Fingerprints of transcripts: enough about the bytes that were read to recognise them later.

A fingerprint has hashes of the first and the last 4 kB that were read, and a CRC-32 of everything that was read.
Comparing the ends takes two short reads and tells an append from a rewrite. Comparing the checksum takes a pass over
the file (2 GB/s and more), so it is done only if equal ends prove nothing; `changes` has the table.
"""

from __future__ import annotations

import os
from zlib import crc32

from msgspec.structs import replace

from threadline.files import blake2b, read_at
from threadline.home_files import opened_in_home
from threadline.model.homes import TranscriptFingerprint, TranscriptStat

END = 4096
"""How many bytes at each end are hashed."""
_BLOCK = 1 << 20
# The coarsest mtimes (those of FAT) advance every two seconds. A ctime advances with the kernel's clock.
_MTIME_GRANULARITY_NS = 2_000_000_000
_MIN_INTEGER, _MAX_INTEGER = -1 << 63, (1 << 63) - 1
HAS_CHANGE_TIME = os.name != "nt"
"""Whether `st_ctime_ns` is the time of the last change. On Windows it is when the file was created."""


def make_stat(path: str, status: os.stat_result, now_ns: int) -> TranscriptStat:
    """Return what a directory says about a transcript; `now_ns` decides whether its mtime is racy."""
    ctime_ns, mtime_ns = change_time_ns(status), modified_time_ns(status)
    is_racy = mtime_ns > now_ns - _MTIME_GRANULARITY_NS
    return TranscriptStat(path, *file_number(status), status.st_size, mtime_ns, is_racy, ctime_ns)


def modified_time_ns(status: os.stat_result) -> int:
    """Return the mtime. SQLite cannot store times before 1677 and after 2262: they become the first or last it can."""
    return max(_MIN_INTEGER, min(status.st_mtime_ns, _MAX_INTEGER))


def file_number(status: os.stat_result) -> tuple[int, int]:
    """Return device and inode, in the range that SQLite can store. Some file systems use all 64 bits."""
    return status.st_dev & _MAX_INTEGER, status.st_ino & _MAX_INTEGER


def change_time_ns(status: os.stat_result) -> int:
    """Return when a file was last changed in any way, which no program can set back; 0 on Windows."""
    return status.st_ctime_ns if HAS_CHANGE_TIME else 0


def path_change_time_ns(path: str | os.PathLike[str]) -> int:
    """Return `change_time_ns` of the file at a path; 0 if there is none."""
    try:
        return change_time_ns(os.lstat(path))
    except OSError:
        return 0


def hash_ends(path: str | os.PathLike[str], read_to: int) -> tuple[bytes, bytes]:
    """Return the hashes of the first and of the last 4 kB before `read_to`; no other byte is read.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with opened_in_home(path) as file:
        head, tail = _read_ends(file, read_to)
    return _hash(head), _hash(tail)


def make_fingerprint(
    stat: TranscriptStat,
    read_to: int,
    *,
    before: TranscriptFingerprint | None = None,
    last: bytes = b"",
    is_open: bool = False,
    summed: int | None = None,
) -> TranscriptFingerprint:
    """Make the fingerprint of a transcript whose lines up to `read_to` were just read.

    If the last bytes that were read, or what `before` describes, are no longer in the file, then it was rewritten
    during the read. The fingerprint is then one that never matches, so the file is read again next time.

    Args:
        stat: the status from before the read, so that bytes written during it do not count as read.
        read_to: the offset after the last line that was read.
        before: the previous fingerprint, if its lines were kept. Only the bytes after it are added to the checksum.
        last: the last bytes that were read, as many as are at hand.
        is_open: the last line that was read has no newline.
        summed: the checksum of everything up to `read_to`, if the caller has computed it.

    Raises:
        OSError: it can no longer be read, or is not a regular file.
    """
    with opened_in_home(stat.path) as file:
        head, tail = _read_ends(file, read_to)
        is_kept = before is None or not before.head_hash or _has_ends(file, before, head)
        start, so_far = (before.read_to, before.checksum) if before is not None else (0, 0)
        checksum = _checksum(file, start, read_to, so_far) if summed is None else summed
    fingerprint = TranscriptFingerprint(
        path=stat.path,
        device=stat.device,
        inode=stat.inode,
        size=stat.size,
        mtime_ns=stat.mtime_ns,
        read_to=read_to,
        head_hash=_hash(head),
        tail_hash=_hash(tail),
        checksum=checksum,
        racy=stat.racy,
        ctime_ns=stat.ctime_ns,
    )
    is_as_read = is_kept and tail.endswith(last[-END:]) and (read_to == 0 or is_open or tail.endswith(b"\n"))
    return fingerprint if is_as_read else replace(fingerprint, head_hash=b"", tail_hash=b"", racy=True)


def with_new_stat(fingerprint: TranscriptFingerprint, stat: TranscriptStat) -> TranscriptFingerprint:
    """Return the fingerprint of the same lines in a file with another path, inode or other times."""
    return replace(
        fingerprint,
        path=stat.path,
        device=stat.device,
        inode=stat.inode,
        size=stat.size,
        mtime_ns=stat.mtime_ns,
        racy=stat.racy,
        ctime_ns=stat.ctime_ns,
    )


def has_known_prefix(path: str, status: os.stat_result, fingerprint: TranscriptFingerprint) -> bool:
    """Whether a file with this status starts with the lines that the fingerprint describes.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with opened_in_home(path) as file:
        if os.fstat(file).st_size < fingerprint.read_to or not _has_ends(file, fingerprint):
            return False
        # Up to twice the length of an end, the ends cover every byte.
        if fingerprint.read_to <= 2 * END or not _needs_full_checksum(status, fingerprint):
            return True
        return _checksum(file, 0, fingerprint.read_to, 0) == fingerprint.checksum


def _needs_full_checksum(status: os.stat_result, fingerprint: TranscriptFingerprint) -> bool:
    is_same_file = file_number(status) == (fingerprint.device, fingerprint.inode)
    times = (modified_time_ns(status), change_time_ns(status))
    is_touched = status.st_size == fingerprint.size and times != (fingerprint.mtime_ns, fingerprint.ctime_ns)
    return not is_same_file or is_touched


def _has_ends(file: int, fingerprint: TranscriptFingerprint, beginning: bytes = b"") -> bool:
    """Whether both ends are in the file; `beginning` is its first bytes if they have been read already."""
    head, tail = _read_ends(file, fingerprint.read_to, beginning)
    return (_hash(head), _hash(tail)) == (fingerprint.head_hash, fingerprint.tail_hash)


def _read_ends(file: int, read_to: int, beginning: bytes = b"") -> tuple[bytes, bytes]:
    size = min(END, read_to)
    head = beginning[:size] if len(beginning) >= size else read_at(file, 0, size)
    return head, head if read_to <= END else read_at(file, read_to - END, read_to)


def _checksum(file: int, start: int, stop: int, so_far: int) -> int:
    while start < stop and (block := read_at(file, start, min(start + _BLOCK, stop))):
        so_far = crc32(block, so_far)
        start += len(block)
    return so_far


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
