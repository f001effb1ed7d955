"""Content parts, and the type of media told by its bytes."""

import base64
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolyard.blocking import BlockingYard
from toolyard.protocol.content import SNIFF_BYTES, Media, sniff

HEADS = [
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
    (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
    (b"\xff\xd8\xff\xe1\0\x10Exif", "image/jpeg"),
    (b"GIF87a\1\0", "image/gif"),
    (b"GIF89a\1\0", "image/gif"),
    (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
    (b"BM\x46\0\0\0\0\0\0\0\x36\0", "image/bmp"),
    (b"II*\0\x08\0\0\0", "image/tiff"),
    (b"MM\0*\0\0\0\x08", "image/tiff"),
    (b"\0\0\1\0\1\0", "image/x-icon"),
    (b"\0\0\0\x1cftypavif", "image/avif"),
    (b"\0\0\0\x18ftypheic", "image/heic"),
    (b"\0\0\0\x18ftypheix", "image/heic"),
    (b"\0\0\0\x18ftypmif1", "image/heic"),
    (b"%PDF-1.7\n", "application/pdf"),
    (b"ID3\4\0\0", "audio/mpeg"),
    (b"\xff\xfb\x90\x64", "audio/mpeg"),
    (b"\xff\xf3\x90\x64", "audio/mpeg"),
    (b"\xff\xf1\x50\x80", "audio/aac"),
    (b"fLaC\0\0\0\x22", "audio/flac"),
    (b"OggS\0\2", "audio/ogg"),
    (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
    (b"\0\0\0\x20ftypM4A ", "audio/mp4"),
    (b"\0\0\0\x20ftypisom", "video/mp4"),
    (b"\0\0\0\x20ftypmp42", "video/mp4"),
    (b"\0\0\0\x14ftypqt  ", "video/quicktime"),
    (b"RIFF\x24\0\0\0AVI LIST", "video/x-msvideo"),
    (b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\xf7\x81\1B\xf2\x81\4B\xf3\x81\x08B\x82\x84webm", "video/webm"),
    (b"\x1aE\xdf\xa3\xa3B\x86\x81\1B\xf7\x81\1B\xf2\x81\4B\xf3\x81\x08B\x82\x88matroska", "video/x-matroska"),
]


@pytest.mark.requirement("content:sniff")
@pytest.mark.parametrize(("head", "mime"), HEADS)
def test_media_are_known_by_their_first_bytes(head: bytes, mime: str) -> None:
    assert sniff(head) == mime
    assert sniff(head.ljust(SNIFF_BYTES, b"\0")) == mime


@pytest.mark.requirement("content:sniff")
@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"hello",
        b"\x89PN",
        "图片".encode(),
        b"BMW is a car, not a bitmap",
        b"RIFF\x24\0\0\0XXXX",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"\xef\xbb\xbfGIF89a",
        b"\xff\xfeh\0i\0",  # UTF-16 with its mark
        b"\xfe\xff\0h\0i",
        b"\xff\xfe\0\0h\0\0\0",
        b"PK\3\4",
        b"\x7fELF",
        b" %PDF-1.7",
    ],
)
def test_what_is_no_media_we_know_has_no_type(head: bytes) -> None:
    assert sniff(head) is None


@pytest.mark.requirement("content:sniff", "content:media")
@pytest.mark.parametrize("name", ["photo.png", "photo.txt", "photo.mp3", "photo"])
def test_a_file_is_the_media_its_bytes_say_whatever_it_is_called(yard: BlockingYard, project: Path, name: str) -> None:
    gif = b"GIF89a\1\0\1\0\0\0\0;"
    (project / name).write_bytes(gif)
    content = yard.call("Read", {"path": name}, dialect="vcp")["result"]["content"]
    url = f"data:image/gif;base64,{base64.b64encode(gif).decode()}"
    assert content[-1] == {"type": "image_url", "image_url": {"url": url}}


@pytest.mark.requirement("content:media")
@pytest.mark.parametrize(
    ("mime", "kind"),
    [("image/png", "image"), ("audio/mpeg", "audio"), ("video/mp4", "video"), ("application/pdf", "application")],
)
def test_the_kind_of_media_is_the_first_word_of_its_type(mime: str, kind: str) -> None:
    assert Media(mime, b"").kind == kind


@pytest.mark.requirement("content:media")
@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=200), mime=st.sampled_from([mime for _, mime in HEADS]))
def test_a_data_uri_carries_the_type_and_every_byte(data: bytes, mime: str) -> None:
    head, _, body = Media(mime, data).data_uri().partition(",")
    assert head == f"data:{mime};base64"
    assert base64.b64decode(body, validate=True) == data
