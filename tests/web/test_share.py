"""What is shared from a page is redacted, and seen before it is copied or saved."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.transcripts import SESSION, Pen, call, prompt, reply, transcript, write
from tests.web.client import Client

from threadline.cli.commands import run
from threadline.export import ExportResult, UnsafeExport, export_sessions

SECRET = "sk-ant-api03-" + "Zk3Qp9Wm4Tx7Lc2V" * 5 + "-AAAAAA"
PAGE = f"/session/{SESSION}"


@pytest.fixture
def leaky(tmp_path: Path) -> Client:
    """A client for a session with a key in its second turn."""
    rows = transcript(
        prompt("Sort the shelf"),
        reply("Sorted."),
        prompt("Print the key"),
        call("Bash", "cat key", result=f"ANTHROPIC_API_KEY={SECRET}"),
        reply(f"It is {SECRET}."),
    )
    home = tmp_path / "home"
    write(home / "projects" / "-work-app" / f"{SESSION}.jsonl", *rows)
    return Client(home)


def test_markdown_of_a_session_is_redacted(leaky: Client) -> None:
    """D11: what the button copies has no secrets; as it is only on request."""
    assert SECRET not in leaky.get(f"{PAGE}/markdown").text
    assert "Print the key" in leaky.get(f"{PAGE}/markdown").text
    assert SECRET in leaky.get(f"{PAGE}/markdown?redact=0").text


def test_markdown_of_an_entry_is_redacted(leaky: Client) -> None:
    """The key `m` copies an entry without its secrets, and nothing else."""
    text = leaky.get(f"{PAGE}/markdown?anchor=L6").text
    assert "It is" in text
    assert SECRET not in text
    assert "Sort the shelf" not in text


def test_nothing_is_exported_before_the_preview(leaky: Client) -> None:
    """Without a preview there is only the form, and the file needs what the preview shows."""
    assert "hidden" not in leaky.get(f"{PAGE}/share.json").json()
    assert leaky.get(f"{PAGE}/share/file?format=md").status_code == 400


@pytest.mark.parametrize("form", ["atif", "inspect", "scout", "messages", "hf"])
def test_formats_for_other_programs_are_not_offered(leaky: Client, form: str) -> None:
    """Those are for many sessions: `threadline export` writes them. The page names the formats that it has."""
    for path in (f"share?format={form}&preview=1", f"share/file?format={form}"):
        answer = leaky.get(f"{PAGE}/{path}")
        assert answer.status_code == 400
        assert "must be one of html, md" in answer.text


@pytest.mark.parametrize("form", ["html", "md", "txt", "json"])
def test_the_file_is_what_was_previewed(leaky: Client, form: str) -> None:
    """The preview counts what was redacted; the file has the hash of the preview, and no secret."""
    query = f"scope=session&format={form}"
    preview = leaky.get(f"{PAGE}/share.json?{query}&preview=1").json()
    assert sum(preview["hidden"].values()) >= 2
    assert SECRET not in leaky.get(f"{PAGE}/share?{query}&preview=1").text
    file = leaky.get(f"{PAGE}/share/file?{query}&hash={preview['hash']}")
    assert file.status_code == 200
    assert "attachment" in file.headers["content-disposition"]
    assert (len(file.content), SECRET in file.text) == (preview["size"], False)


def test_some_turns_can_be_shared(leaky: Client) -> None:
    """Only the chosen turns are in the file, and only their findings are counted."""
    preview = leaky.get(f"{PAGE}/share.json?scope=turns&from=1&to=1&format=md&preview=1").json()
    file = leaky.get(f"{PAGE}/share/file?scope=turns&from=1&to=1&format=md&hash={preview['hash']}").text
    assert "Sorted." in file
    assert "Print the key" not in file
    assert preview["hidden"] == {}


def test_more_words_can_be_hidden(leaky: Client) -> None:
    """Words of the form are hidden, too; one that does not occur is reported."""
    page = leaky.get(f"{PAGE}/share?format=md&hide=shelf,zebra&preview=1").text
    assert "Sort the shelf" not in page.partition("share-preview")[2]
    assert "does not contain zebra" in page


def test_a_file_that_is_not_safe_is_refused_with_its_reason(leaky: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says what would remain, and what can be done on this page."""

    def refuse(*_arguments: object, **_options: object) -> ExportResult:
        raise UnsafeExport("Nothing was written, because 1 secret or name would remain in x.html (password 1).")

    monkeypatch.setattr("threadline.web.session.shared_file.export_sessions", refuse)
    for query in ("part=preview", "preview=1"):
        answer = leaky.get(f"{PAGE}/share?{query}")
        assert answer.status_code == 200
        assert "would remain in x.html (password 1). Hide more words" in answer.text
        assert "--hide" not in answer.text
    for path in ("share.json?preview=1", "share/file?format=md", "markdown"):
        answer = leaky.get(f"{PAGE}/{path}")
        assert (answer.status_code, "would remain" in answer.text) == (400, True), path


def test_words_added_to_the_settings_are_hidden_at_once(leaky: Client) -> None:
    """An export that was made before is not used again, and the level of the settings applies."""
    assert "shelf" in leaky.get(f"{PAGE}/markdown").text
    settings = Path.home() / ".config" / "threadline" / "redaction.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('words = ["shelf"]\n')
    assert "shelf" not in leaky.get(f"{PAGE}/markdown").text
    settings.write_text('level = "metrics"\n')
    assert "Sorted" not in leaky.get(f"{PAGE}/markdown").text
    assert "Sorted" not in leaky.get(f"{PAGE}/share?scope=session&format=md&preview=1").text
    settings.unlink()
    assert "shelf" in leaky.get(f"{PAGE}/markdown").text


@pytest.fixture
def exports(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The sessions that the engine has exported."""
    exported: list[Path] = []

    def export(mains: list[Path], *args: Any, **keywords: Any) -> ExportResult:
        exported.extend(mains)
        return export_sessions(mains, *args, **keywords)

    monkeypatch.setattr("threadline.web.session.shared_file.export_sessions", export)
    return exported


def _share(client: Client, query: str = "format=md") -> str:
    """The file, after its preview."""
    preview = client.get(f"{PAGE}/share.json?{query}&preview=1").json()
    file = client.get(f"{PAGE}/share/file?{query}&hash={preview['hash']}")
    assert file.status_code == 200
    return file.text


def test_a_file_is_exported_once(leaky: Client, exports: list[Path]) -> None:
    """The page prepares the file that its preview and its download then use, also while another session is written."""
    assert leaky.get(f"{PAGE}/share").status_code == 200
    for thread in threading.enumerate():
        if thread.name == "threadline-ahead":
            thread.join(30)
    assert len(exports) == 1
    other = f"{SESSION[:-1]}2"
    folder = leaky.pool.homes[0].path / "projects" / "-work-app"
    write(folder / f"{other}.jsonl", *transcript(prompt("begin"), reply("so"), pen=Pen(other)))
    leaky.pool.expire()
    assert "Sorted." in _share(leaky, "format=html")
    assert len(exports) == 1


def test_a_file_is_exported_once_in_the_zone_of_the_machine(
    leaky: Client, exports: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request has an object of its own for the machine's zone. The file is the same, but not in another zone."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert _share(leaky) == _share(leaky, "format=md&tz=Asia/Tokyo")
    assert len(exports) == 1
    _share(leaky, "format=md&tz=Europe/Berlin")
    assert len(exports) == 2


def test_a_file_is_prepared_in_another_process(leaky: Client, exports: list[Path], tmp_path: Path) -> None:
    """Its bytes are those of a file that is exported here, and the page and the download use it."""
    here = Client(tmp_path / "home")
    expected = _share(here, "format=html")
    assert (len(exports), SECRET in expected) == (1, False)
    assert leaky.get(f"{PAGE}/share/prepare").status_code == 204
    # The page contains the preview, and the browser need not load it.
    assert f"Save {SESSION}.html" in leaky.get(f"{PAGE}/share").text
    assert _share(leaky, "format=html") == expected
    assert len(exports) == 1


def test_what_would_be_prepared_in_vain_is_not(leaky: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is cached, a session that is still written, and one that is too large for that."""
    processes: list[object] = []

    async def run(*arguments: object, **_options: object) -> None:
        processes.append(arguments)
        raise AssertionError("nothing was to be prepared")

    monkeypatch.setattr("anyio.run_process", run)
    _share(leaky, "format=html")
    assert leaky.get(f"{PAGE}/share/prepare").status_code == 204
    with monkeypatch.context() as small:
        small.setattr("threadline.web.session.share._MAX_PREPARED_BYTES", 100)
        assert leaky.get(f"{PAGE}/share/prepare?tz=Asia/Tokyo").status_code == 204
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    main = leaky.pool.homes[0].path / "projects" / "-work-app" / f"{SESSION}.jsonl"
    write(main, *transcript(prompt("Go on"), reply("Going on.", timestamp=now)))
    leaky.pool.expire()
    assert leaky.get(f"{PAGE}/share/prepare").status_code == 204
    assert processes == []


def test_nothing_is_prepared_of_a_session_that_is_not_there(leaky: Client) -> None:
    """The request fails like that of any page."""
    assert leaky.get("/session/00000000-0000-4000-8000-000000000000/share/prepare").status_code == 404


@pytest.mark.parametrize("change", ["session", "agent", "settings"])
def test_a_file_is_exported_again_after_a_change(
    leaky: Client, exports: list[Path], change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cached file is used only for the same files, and for the same settings: a word that was added is hidden."""
    settings = tmp_path / "redact.toml"
    monkeypatch.setattr("threadline.export.redaction_settings.user_settings_file", lambda: settings)
    assert "Sort the shelf" in _share(leaky)
    main = leaky.pool.homes[0].path / "projects" / "-work-app" / f"{SESSION}.jsonl"
    if change == "session":
        with main.open("ab") as file:
            file.write(b'{"type": "summary", "summary": "One more"}\n')
    elif change == "agent":
        write(main.with_suffix("") / "subagents" / "agent-a1.jsonl", *transcript(prompt("begin"), reply("so")))
    else:
        settings.write_text('words = ["shelf"]\n', encoding="utf-8")
    leaky.pool.expire()
    text = _share(leaky)
    assert len(exports) == 2
    assert ("Sort the shelf" in text) == (change != "settings")


@pytest.mark.parametrize("form", ["html", "md"])
def test_the_file_is_that_of_the_command(leaky: Client, form: str, tmp_path: Path) -> None:
    """The page and `threadline export` with the same options write the same bytes."""
    path = tmp_path / f"file.{form}"
    home = leaky.pool.homes[0].path
    details = ["--thinking", "fold", "--tools", "fold", "--agents", "fold"]
    options = ["--format", form, "--tz", "UTC", "--out", str(path), "--home", str(home)]
    assert run(["export", SESSION, *details, *options]) == 0
    assert _share(leaky, f"format={form}&tz=UTC") == path.read_text(encoding="utf-8")
