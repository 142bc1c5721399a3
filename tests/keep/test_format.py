"""docs/keep-format.md is sufficient to read a keep: this reader is written from it alone."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.keep.stores import (
    HERE,
    THERE,
    all_bytes,
    keep_home,
    kept_versions,
    lines,
    session_id,
    transcript_path,
    write_home,
)

from threadline.keep import Catalogue, Store, forget_session, merge_keeps, repack
from threadline.keep.store import README_TEXT

_PAGE = Path(__file__).parents[2] / "docs" / "keep-format.md"
_UUID = 36


class Reader:
    """A reader of keeps, following the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        info = json.loads((folder / "keep.json").read_bytes())
        label = "\n".join(
            [
                info["format"],
                str(info["version"]),
                info["id"],
                *info.get("recipients", []),
                info.get("identity", ""),
            ]
        )
        assert info["version"] == 1
        assert info["check"] == hashlib.sha256(label.encode()).hexdigest()
        self.rows: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.forgets: list[dict[str, Any]] = []
        self.runs: dict[str, dict[str, Any]] = {}
        for path in (folder / "runs").glob("*.jsonl.zst"):
            self._manifest(path)
        self.by_id = {row_id(row): row for _run, row in self.rows}
        self.where = dict(item for path in (folder / "packs").glob("*.zst") for item in self._pieces(path))

    def _manifest(self, path: Path) -> None:
        data = path.read_bytes()
        machine, number, rest = path.name.split("-")
        assert rest.removesuffix(".jsonl.zst") == hashlib.sha256(data).hexdigest()
        text = zstandard.ZstdDecompressor().decompress(data)
        first, *rows, last = (json.loads(line) for line in text.decode().split("\n")[:-1])
        assert (first["kind"], last["kind"]) == ("run", "end")
        assert (first["machine"], first["number"]) == (machine, int(number))
        self.runs[hashlib.sha256(text).hexdigest()] = first
        self.rows += [(first, row) for row in rows if row["kind"] == "file"]
        self.forgets += [row for row in rows if row["kind"] == "forgot"]

    def _pieces(self, path: Path) -> list[tuple[str, tuple[Path, dict[str, Any], int, int]]]:
        data = path.read_bytes()
        assert path.name == f"{hashlib.sha256(data).hexdigest()}.zst"
        length, sign = struct.unpack("<I8s", data[-12:])
        body = data[-44 - length : -44]
        assert sign == b"threadln"
        assert hashlib.sha256(body).digest() == data[-44:-12]
        assert struct.unpack("<II", data[-52 - length : -44 - length]) == (0x184D2A5B, length + 44)
        locations = []
        for frame in json.loads(body)["frames"]:
            offset = 0
            for hash_, size in frame["pieces"]:
                locations.append((hash_, (path, frame, offset, size)))
                offset += size
            assert offset == frame["size"]
        return locations

    def piece(self, hash_: str) -> bytes:
        """A piece, checked against its hash."""
        path, frame, offset, size = self.where[hash_]
        dictionary = None
        if "dictionary" in frame:
            data = (self.folder / "dictionaries" / f"{frame['dictionary']}.dict").read_bytes()
            dictionary = zstandard.ZstdCompressionDict(data)
        packed = path.read_bytes()[frame["offset"] : frame["offset"] + frame["length"]]
        piece = zstandard.ZstdDecompressor(dict_data=dictionary).decompress(packed)[offset : offset + size]
        assert hashlib.sha256(piece).hexdigest() == hash_
        return piece

    def data(self, row: dict[str, Any]) -> bytes:
        """The content of a row's file."""
        before = self.data(self.by_id[row["base"]]) if "base" in row else b""
        assert len(before) == row.get("start", 0)
        content = before + b"".join(map(self.piece, row["pieces"]))
        assert len(content) == row["size"]
        return content

    def files(self) -> dict[str, list[bytes]]:
        """Every version of every file."""
        versions: dict[str, list[bytes]] = {}
        for _run, row in sorted(self.rows, key=lambda item: (item[0]["machine"], item[0]["number"])):
            is_forgotten = any(row["path"] in forget["paths"] for forget in self.forgets)
            is_forgotten |= any(
                len(forget["session"]) == _UUID and forget["session"] in row["path"] for forget in self.forgets
            )
            if not is_forgotten:
                versions.setdefault(row["path"], []).append(self.data(row))
        return versions


def row_id(row: dict[str, Any]) -> str:
    """The id of a file row."""
    return hashlib.sha256("\n".join([row.get("base", ""), *row["pieces"]]).encode()).hexdigest()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keep with growth, a dictionary, two machines and a merge."""
    tmp_path = tmp_path_factory.mktemp("format")
    store = Store.make(tmp_path / "keep")
    files = {transcript_path(1): lines(1, 20_000), transcript_path(2): lines(2, 300), "history.jsonl": lines(3, 20)}
    home = write_home(tmp_path / "home", files)
    keep_home(store, home)
    write_home(
        home,
        {
            transcript_path(1): lines(1, 20_000) + lines(4, 40),
            transcript_path(3): b"",
            transcript_path(2): lines(5, 300),
        },
    )
    keep_home(store, home)
    other = Store.make(tmp_path / "other")
    keep_home(other, write_home(tmp_path / "there", {transcript_path(9): lines(9, 50)}), THERE)
    merge_keeps(Catalogue(store, trust_cache=False), HERE, [other])
    return store.folder


@pytest.fixture
def store(template: Path, tmp_path: Path) -> Store:
    """A copy of that keep."""
    return Store.make(shutil.copytree(template, tmp_path / "keep"))


@pytest.mark.slow
def test_page_is_sufficient(store: Store) -> None:
    """A program that knows only the page reads every version of every file."""
    assert any(frame[1].frame.dictionary for frame in Catalogue(store).located.items())
    assert Reader(store.folder).files() == kept_versions(store)
    assert len(kept_versions(store)[transcript_path(1)]) == 2


@pytest.mark.slow
def test_page_is_sufficient_after_packing_and_forgetting(store: Store) -> None:
    """The same holds for a rewritten keep."""
    repack(Catalogue(store, trust_cache=False), HERE)
    assert Reader(store.folder).files() == kept_versions(store)
    forget_session(Catalogue(store, trust_cache=False), HERE, session_id(2), [], "a wish")
    files = Reader(store.folder).files()
    assert files == kept_versions(store)
    assert transcript_path(2) not in files


def test_manifests_are_a_chain(store: Store) -> None:
    """Every manifest except the first of a machine names the hash of the previous one."""
    runs = Reader(store.folder).runs
    befores = [run["before"] for run in runs.values()]
    assert sorted(run["number"] for run in runs.values()) == [1, 1, 2]
    assert all(before is None or before in runs for before in befores)
    assert befores.count(None) == 2


@pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")
def test_zstd_unpacks_the_lines(store: Store) -> None:
    """`zstd -dc` unpacks the content of a keep without any program of ours."""
    repack(Catalogue(store, trust_cache=False), HERE)
    output = b"".join(
        subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout  # noqa: S603, S607
        for path in store.pack_files()
        if not any(location.frame.dictionary for location in Catalogue(store).located.values())
    )
    assert lines(4, 40) in output


def test_page_documents_every_key() -> None:
    """Every key that is written is on the page."""
    from threadline.keep.manifest import EndRow, FileRow, ForgetRow, GoneRow, RunRow  # noqa: PLC0415
    from threadline.keep.pack import Frame, PackContents  # noqa: PLC0415
    from threadline.keep.store import KeepInfo  # noqa: PLC0415

    page = _PAGE.read_text()
    for struct_ in (RunRow, FileRow, GoneRow, ForgetRow, EndRow, Frame, PackContents, KeepInfo):
        for key in struct_.__struct_fields__:
            assert f"`{key}`" in page or f'"{key}"' in page


def test_only_the_owner_can_read(store: Store) -> None:
    """Every file of a keep has mode 0600 and every folder 0700."""
    for path in (store.folder, *store.folder.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)


def test_readme_describes_the_format(store: Store) -> None:
    """A keep describes itself in README.txt."""
    assert (store.folder / "README.txt").read_text() == README_TEXT
    assert README_TEXT.encode() in all_bytes(store)
