"""Read: images, audio, video and PDF files, told by their bytes."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.tools.media import MP4, PNG, WAV, pdf
from tests.workspace.answers import code, timeless
from tests.workspace.vectors import put
from toolyard.blocking import BlockingYard
from toolyard.protocol.envelope import ErrorCode, Failure, Status
from toolyard.protocol.result_limits import MAX_BYTES, MAX_LINE_CHARS
from toolyard.tools.readers.pdf import _extract_lines
from toolyard.workspace.text_reader import SMALL_FILE

PASSWORDS = {
    "rc4": b"/Encrypt << /Filter /Standard /V 1 /R 2 /O ("
    + b"o" * 32
    + b") /U ("
    + b"u" * 32
    + b") /P -4 >> /ID [(a) (a)]",
    "aes": (
        b"/Encrypt << /Filter /Standard /V 4 /R 4 /Length 128 /O (" + b"o" * 32 + b") /U (" + b"u" * 32 + b") /P -4"
        b" /CF << /StdCF << /CFM /AESV2 /Length 16 >> >> /StmF /StdCF /StrF /StdCF >> /ID [(a) (a)]"
    ),
}


def parts(yard: BlockingYard, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """The content parts of an answer as the VCP dialect shows them."""
    shown: list[dict[str, Any]] = yard.call("Read", arguments, dialect="vcp")["result"]["content"]
    return shown


@pytest.mark.requirement("read:media", "plugin:data")
@pytest.mark.parametrize(
    ("raw", "mime"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "image/jpeg"),
        (b"GIF89a\1\0\1\0\0\0\0;", "image/gif"),
        (b"RIFF\x1a\0\0\0WEBPVP8 ", "image/webp"),
        (WAV, "audio/wav"),
        (b"ID3\4\0\0\0\0\0\0", "audio/mpeg"),
        (b"OggS\0\2", "audio/ogg"),
        (b"fLaC\0\0\0\x22", "audio/flac"),
        (MP4, "video/mp4"),
        (b"\x1aE\xdf\xa3\x93B\x82\x84webm", "video/webm"),
    ],
)
def test_media_are_told_by_their_bytes_and_come_as_a_part(
    yard: BlockingYard, project: Path, raw: bytes, mime: str
) -> None:
    (project / "misleading.txt").write_bytes(raw)
    envelope = yard.call("Read", {"path": "misleading.txt"})
    assert timeless(envelope) == {
        "status": "success",
        "data": {
            "mime": mime,
            "size": len(raw),
            "hash": hashlib.sha256(raw).hexdigest(),
            "truncated": False,
            "content": [
                {
                    "type": mime.partition("/")[0],
                    "mime": mime,
                    "size": len(raw),
                    "name": "misleading.txt",
                    "path": "misleading.txt",
                }
            ],
        },
        "text": f"Read 'misleading.txt' ({mime}, {len(raw)} bytes).",
        "stats": {"bytes": len(raw)},
        "context": {
            "cwd": ".",
            "params_input": {"path": "misleading.txt"},
            "path_resolved": "misleading.txt",
            "truncation_skip": True,
        },
    }
    uri = f"data:{mime};base64,{base64.b64encode(raw).decode()}"
    assert parts(yard, {"path": "misleading.txt"}) == [
        {"type": "text", "text": envelope.text},
        {"type": "image_url", "image_url": {"url": uri}},
    ]


@pytest.mark.requirement("read:binary", "envelope:text")
@pytest.mark.parametrize("raw", [b"\0", b"\x7fELF\2\1\1\0", b"PK\3\4\0\0", b"text\0text", "né".encode("utf-16-le")])
def test_any_other_binary_file_is_refused(yard: BlockingYard, project: Path, raw: bytes) -> None:
    (project / "a.png").write_bytes(raw)
    envelope = yard.call("Read", {"path": "a.png"})
    assert (code(envelope), envelope.text) == (
        ErrorCode.BINARY_FILE,
        (
            f"'a.png' is a binary file of {len(raw)} bytes that is no image, audio, video or PDF."
            " If it is text after all, name its encoding, such as encoding=utf-16-le."
        ),
    )


@pytest.mark.requirement("read:binary", "read:encoding")
@pytest.mark.parametrize(
    ("raw", "encoding", "content"),
    [
        ("né".encode("utf-16-le"), "utf-16-le", "1\tné"),
        (b"a\0b", "latin-1", "1\ta\0b"),
        (b"GIF89a", "ascii", "1\tGIF89a"),
    ],
)
def test_a_named_encoding_makes_text_of_any_file(
    yard: BlockingYard, project: Path, raw: bytes, encoding: str, content: str
) -> None:
    (project / "a").write_bytes(raw)
    envelope = yard.call("Read", {"path": "a", "encoding": encoding})
    assert (envelope.status, envelope.data["content"]) == (Status.SUCCESS, content)


@pytest.mark.requirement("read:binary", "read:content")
def test_a_text_that_is_named_like_an_image_is_text(yard: BlockingYard, project: Path) -> None:
    put(project, {"logo.png": "not an image\n", "a.pdf": "no PDF\n"})
    assert [yard.call("Read", {"path": path}).data["content"] for path in ("logo.png", "a.pdf")] == [
        "1\tnot an image",
        "1\tno PDF",
    ]


@pytest.mark.requirement("read:media")
def test_media_of_more_than_10_mib_are_refused(yard: BlockingYard, project: Path) -> None:
    path = project / "big.png"
    path.write_bytes(PNG + b"\0" * (SMALL_FILE - len(PNG)))
    assert code(yard.call("Read", {"path": "big.png"})) is None
    with path.open("ab") as file:
        file.write(b"\0")
    envelope = yard.call("Read", {"path": "big.png"})
    assert (code(envelope), envelope.context["reason"]) == (ErrorCode.INVALID_PARAM, "TOO_LARGE")


@pytest.mark.requirement("read:media", "read:content")
def test_a_pdf_comes_as_text_and_as_the_file(yard: BlockingYard, project: Path) -> None:
    raw = pdf("Hello\nworld", "Second page")
    (project / "a.pdf").write_bytes(raw)
    envelope = yard.call("Read", {"path": "a.pdf"})
    assert (envelope.status, envelope.data) == (
        Status.SUCCESS,
        {
            "content": ("1\t--- page 1 of 2 ---\n2\tHello\n3\tworld\n4\t\n5\t--- page 2 of 2 ---\n6\tSecond page\n7\t"),
            "mime": "application/pdf",
            "pages": 2,
            "truncated": False,
            "next_line": None,
            "total_lines": 7,
            "hash": hashlib.sha256(raw).hexdigest(),
            "content_parts": [
                {"type": "file", "mime": "application/pdf", "size": len(raw), "name": "a.pdf", "path": "a.pdf"}
            ],
        },
    )
    assert envelope.stats["total_lines"] == 7
    assert envelope.text == f"Read 'a.pdf' (application/pdf, 2 pages, {len(raw)} bytes)."
    whole = f"data:application/pdf;base64,{base64.b64encode(raw).decode()}"
    assert whole in str(parts(yard, {"path": "a.pdf"}))


@pytest.mark.requirement("read:media", "read:next-line", "envelope:status:truncated")
def test_the_pages_of_a_pdfs_text_give_every_line_once(yard: BlockingYard, project: Path) -> None:
    (project / "a.pdf").write_bytes(pdf("Hello\nworld", "Second page"))
    start: int | None = 1
    lines: list[str] = []
    while start is not None:
        page = yard.call("Read", {"path": "a.pdf", "start_line": start, "limit": 2})
        lines += str(page.data["content"]).split("\n")
        start = page.data["next_line"]  # type: ignore[assignment]
        assert (page.status is Status.PARTIAL, f"Use start_line={start}" in page.text) == (start is not None,) * 2
    assert lines == str(yard.call("Read", {"path": "a.pdf"}).data["content"]).split("\n")
    assert len(parts(yard, {"path": "a.pdf", "start_line": 3})) == 2, "later pages need no second copy of the file"


@pytest.mark.requirement("read:start-line")
def test_a_start_beyond_the_text_of_a_pdf_is_refused(yard: BlockingYard, project: Path) -> None:
    (project / "a.pdf").write_bytes(pdf("Hello"))
    envelope = yard.call("Read", {"path": "a.pdf", "start_line": 9})
    assert (code(envelope), envelope.context["total"]) == (ErrorCode.INVALID_PARAM, 3)


@pytest.mark.requirement("read:bytes", "read:media")
def test_long_lines_and_long_texts_of_a_pdf_are_cut(yard: BlockingYard, project: Path) -> None:
    (project / "a.pdf").write_bytes(pdf("\n".join(["x" * 5000] * 60)))
    envelope = yard.call("Read", {"path": "a.pdf"})
    content = str(envelope.data["content"])
    assert len(content.encode()) <= MAX_BYTES
    assert content.split("\n")[1] == f"2\t{'x' * MAX_LINE_CHARS}… [line cut: 5000 bytes in all]"
    assert (envelope.status, envelope.data["truncated"]) == (Status.PARTIAL, True)


BROKEN = {
    "only a head": b"%PDF-1.4\n",
    "no objects": b"%PDF-1.4\n%%EOF",
    "cut": pdf("Hello")[:200],
    "pages in a circle": pdf("Hello").replace(b"/Kids [3 0 R]", b"/Kids [2 0 R]"),
    "a filter that nobody has": pdf("Hello").replace(b"<< /Length ", b"<< /Filter /LZWDecode"),
    "a filter that needs a program": pdf("Hello").replace(b"<< /Length ", b"<< /Filter /JBIG2Decode /Length "),
    "an object in place of a number": pdf("Hello").replace(b"12 Tf", b"12 2 0 R Tf"),
    "an old password": pdf("Hello", extra=PASSWORDS["rc4"]),
    "a password that needs a library": pdf("Hello", extra=PASSWORDS["aes"]),
}


@pytest.mark.requirement("read:media", "envelope:text")
@pytest.mark.parametrize("raw", BROKEN.values(), ids=list(BROKEN))
def test_a_broken_or_closed_pdf_is_partial_and_the_file_is_there(yard: BlockingYard, project: Path, raw: bytes) -> None:
    (project / "a.pdf").write_bytes(raw)
    envelope = yard.call("Read", {"path": "a.pdf"})
    assert (code(envelope), envelope.status) == (None, Status.PARTIAL)
    assert "Its text could not be read: " in envelope.text
    assert envelope.text.endswith("Look at the attached file instead.")
    assert envelope.data["hash"] == hashlib.sha256(raw).hexdigest()


@pytest.mark.requirement("read:media")
def test_a_pdf_damaged_at_any_place_still_ends_in_an_answer() -> None:
    raw = pdf("Hello", "world")
    tokens = [b"null", b"-1", b"<<", b">>", b"[", b"]", b"1 0 R", b"2 0 R", b"/Filter /LZWDecode ", b"\xff"]
    answers = []
    for at in range(9, len(raw), 7):
        token = tokens[at % len(tokens)]
        answers.append(_extract_lines(raw[:at] + token + raw[at + len(token) :], lambda: None))
    assert {type(problem) for _, _, problem in answers} == {str}
    assert {bool(problem) for _, _, problem in answers} == {True, False}


@pytest.mark.requirement("read:media")
def test_a_pdf_stops_between_two_pages_when_the_call_is_over() -> None:
    def too_late() -> None:
        raise Failure(ErrorCode.TIMEOUT, "too late")

    with pytest.raises(Failure, match="too late"):
        _extract_lines(pdf("Hello"), too_late)
