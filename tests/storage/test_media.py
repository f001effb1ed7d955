"""The store of media: whole files under the hash of their content, for a time, within bounds."""

import os
import stat
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from tests.fakes import FakeClock
from toolyard.protocol.content import Media, sniff
from toolyard.storage import media_store as stored
from toolyard.storage.media_store import EXTENSIONS, KEPT, MediaStore

pytestmark = pytest.mark.requirement("media:store")
HEADS = (
    b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"II*\x00", b"\x00\x00\x01\x00", b"ID3\x04", b"\xff\xf1", b"fLaC",
    b"OggS", b"RIFF....WEBP", b"RIFF....WAVE", b"RIFF....AVI ", b"....ftypavif", b"....ftypheic", b"....ftypM4A ",
    b"....ftypqt  ", b"....ftypisom", b"\x1aE\xdf\xa3webm", b"\x1aE\xdf\xa3", b"BM....\0\0\0\0",
)  # fmt: skip


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> MediaStore:
    return MediaStore(tmp_path / "media", clock.now)


def png(size: int = 10, fill: bytes = b"x") -> Media:
    return Media("image/png", fill * size, "a.png")


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if not file.name.startswith("."))


def test_the_same_bytes_are_one_file_under_their_hash_that_only_its_owner_reads(
    store: MediaStore, tmp_path: Path
) -> None:
    name = store.put(png())
    assert name == store.put(png()) == f"{sha256(b'x' * 10).hexdigest()}.png"
    assert files(tmp_path / "media") == [name]
    found = store.find(name)
    assert found is not None
    assert (found.path.read_bytes(), found.mime) == (b"x" * 10, "image/png")
    assert stat.S_IMODE(found.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(found.path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("head", HEADS)
def test_each_kind_of_media_that_is_recognised_can_be_kept_and_keeps_its_type(store: MediaStore, head: bytes) -> None:
    mime = sniff(head)
    assert mime is not None
    found = store.find(store.put(Media(mime, head)))
    assert found is not None
    assert found.mime == mime


def test_no_type_that_could_run_a_script_is_kept() -> None:
    assert {mime.partition("/")[0] for mime in EXTENSIONS} == {"image", "audio", "video"}
    assert not {mime for mime in EXTENSIONS if "svg" in mime or "xml" in mime or "html" in mime}


@pytest.mark.parametrize("name", ["", ".", "..", "../key", ".key", "x.png", "a" * 64, f"{'A' * 64}.png", "\0"])
def test_only_names_of_its_own_files_lead_anywhere(store: MediaStore, name: str) -> None:
    store.put(png())
    store.make_signing_key()
    assert store.find(name) is None


def test_a_link_in_its_folder_is_no_file_of_it(store: MediaStore, tmp_path: Path) -> None:
    store.put(png())
    (tmp_path / "secret").write_text("secret")
    name = f"{'0' * 64}.png"
    (tmp_path / "media" / name).symlink_to(tmp_path / "secret")
    assert store.find(name) is None


def test_a_file_goes_seven_days_after_it_was_put_last(store: MediaStore, clock: FakeClock) -> None:
    once, again = store.put(png()), store.put(png(fill=b"y"))
    clock.advance(timedelta(days=4).total_seconds())
    store.put(png(fill=b"y"))
    clock.advance(timedelta(days=3, seconds=-1).total_seconds())
    assert store.sweep() == 0
    clock.advance(2)
    assert store.sweep() == 1
    assert (store.find(once), store.find(again) is not None) == (None, True)
    clock.advance(KEPT.total_seconds())
    assert store.sweep() == 1


def test_the_oldest_make_room_for_a_new_one(
    store: MediaStore, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "MAX_TOTAL", 100)
    names = []
    for fill in (b"a", b"b", b"c"):
        names.append(store.put(png(40, fill)))
        clock.advance(1)
    assert files(tmp_path / "media") == sorted(names[1:])
    monkeypatch.setattr(stored, "MAX_FILES", 1)
    last = store.put(png(1, b"d"))
    assert files(tmp_path / "media") == [last]


def test_a_draft_of_a_process_that_died_is_swept_and_a_young_one_is_not(
    store: MediaStore, clock: FakeClock, tmp_path: Path
) -> None:
    store.put(png())
    draft = tmp_path / "media/.writing-1"
    draft.write_bytes(b"half")
    os.utime(draft, (clock.now().timestamp(), clock.now().timestamp()))
    store.sweep()
    assert draft.exists()
    clock.advance(3700)
    store.sweep()
    assert not draft.exists()


def test_the_key_that_signs_links_is_made_once_for_a_home_and_is_no_media(
    store: MediaStore, clock: FakeClock, tmp_path: Path
) -> None:
    assert store.signing_key() is None
    assert not (tmp_path / "media").exists()  # asking makes nothing
    key = store.make_signing_key()
    assert len(key) == 32
    assert MediaStore(tmp_path / "media", clock.now).make_signing_key() == store.signing_key() == key
    assert MediaStore(tmp_path / "other", clock.now).make_signing_key() != key
    assert stat.S_IMODE((tmp_path / "media/.key").stat().st_mode) == 0o600
    clock.advance(KEPT.total_seconds() * 2)
    store.sweep()
    assert store.signing_key() == key
