"""A window of lines out of a file of any size: the same lines whatever the blocks, the limits and the changes."""

import hashlib
import os
import resource
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.blocking import BlockingYard
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.workspace import text_reader
from toolyard.workspace.encoding import Encoding
from toolyard.workspace.text_reader import Line, TextReader, TextWindow, WindowLimits
from toolyard.workspace.workspace import Workspace, read_consistently

HUGE = 2 * 1024**3 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 256 * 1024**2
MANY = WindowLimits(start_line=1, max_lines=10_000, max_bytes=10_000_000, max_line_chars=10_000)
PIECES = st.sampled_from(["a", "bc", "é", "中文", "😀", "\t", "\x0c", "\x85", "\u2028", "\ufeff", " "])
LINES = st.lists(st.lists(PIECES, max_size=4).map("".join), max_size=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    opened = Workspace(tmp_path_factory.mktemp("project"))
    yield opened
    opened.close()


def look(folder: Workspace, raw: bytes, limits: WindowLimits = MANY, encoding: str | None = None) -> TextWindow:
    (folder.root / "file").write_bytes(raw)
    with folder.open_file("file") as file:
        return TextReader(encoding, ("gb18030",), lambda: None).read_window(file, limits)


def look_large(
    folder: Workspace,
    raw: bytes,
    limits: WindowLimits = MANY,
    encoding: str | None = None,
    block: int = 3,
    sample: int = 1000,
) -> TextWindow:
    """The same as ``look``, by the way that large files go."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_reader, "SMALL_FILE", 0)
        patch.setattr(text_reader, "_BLOCK", block)
        patch.setattr(text_reader, "_SAMPLE", sample)
        return look(folder, raw, limits, encoding)


def texts(window: TextWindow) -> list[str]:
    return [line.text for line in window.lines]


def lines_of(whole: str) -> list[str]:
    """What an editor shows: the reference, slow and simple."""
    if "\n" not in whole:
        lines = whole.split("\r")
        return lines if lines[-1] else lines[:-1]
    *ended, last = whole.split("\n")
    return [line.removesuffix("\r") for line in ended] + ([last] if last else [])


@st.composite
def wholes(draw: st.DrawFn) -> str:
    ending = draw(st.sampled_from(["\n", "\r\n", "\r", "mixed"]))
    pieces = [
        line + (draw(st.sampled_from(["\n", "\r\n", "\n\n"])) if ending == "mixed" else ending) for line in draw(LINES)
    ]
    whole = "".join(pieces)
    return (whole if draw(st.booleans()) else whole.removesuffix("\n").removesuffix("\r")).lstrip("\ufeff")


ENCODED: list[tuple[str, Callable[[str], bytes], str | None]] = [
    ("utf-8", lambda whole: whole.encode(), None),
    ("utf-8 with a mark", lambda whole: whole.encode("utf-8-sig"), None),
    ("gb18030", lambda whole: whole.encode("gb18030"), "gb18030"),
    ("utf-16 with a mark", lambda whole: b"\xff\xfe" + whole.encode("utf-16-le"), None),
    ("utf-16 big-endian with a mark", lambda whole: b"\xfe\xff" + whole.encode("utf-16-be"), None),
    ("utf-32 with a mark", lambda whole: b"\xff\xfe\0\0" + whole.encode("utf-32-le"), None),
]


@pytest.mark.requirement("read:next-line", "read:content", "read:encoding", "truncation:paging")
@pytest.mark.parametrize(("encode", "encoding"), [case[1:] for case in ENCODED], ids=[case[0] for case in ENCODED])
@given(
    whole=wholes(),
    max_lines=st.integers(1, 5),
    max_bytes=st.integers(1, 60),
    block=st.integers(1, 9),
    large=st.booleans(),
)
def test_reading_on_gives_every_line_exactly_once(
    folder: Workspace,
    encode: Callable[[str], bytes],
    encoding: str | None,
    whole: str,
    max_lines: int,
    max_bytes: int,
    block: int,
    large: bool,
) -> None:
    raw = encode(whole)
    pages: list[TextWindow] = []
    start: int | None = 1
    while start is not None:
        limits = WindowLimits(start, max_lines, max_bytes, max_line_chars=1000)
        page = look_large(folder, raw, limits, encoding, block) if large else look(folder, raw, limits, encoding)
        shown = "\n".join(f"{number}\t{line.display_text}" for number, line in enumerate(page.lines, start))
        assert len(page.lines) <= max_lines
        assert len(shown.encode()) <= max_bytes or len(page.lines) == 1
        pages.append(page)
        start = page.next_line
    assert [line for page in pages for line in texts(page)] == lines_of(whole)
    assert (pages[-1].total_lines, pages[-1].hash) == (len(lines_of(whole)), hashlib.sha256(raw).hexdigest())


@pytest.mark.requirement("read:content", "s:S-16")
@given(
    whole=wholes(),
    name=st.sampled_from(["utf-8", "gb18030", "utf-16-le", "utf-16-be", "utf-32-le", "utf-7"]),
    limits=st.builds(WindowLimits, st.integers(1, 14), st.integers(1, 14), st.integers(1, 80), st.integers(1, 6)),
    block=st.integers(1, 9),
)
def test_a_large_file_reads_like_a_small_one_wherever_its_blocks_end(
    folder: Workspace, whole: str, name: str, limits: WindowLimits, block: int
) -> None:
    raw = whole.encode(name)
    small, large = look(folder, raw, limits, name), look_large(folder, raw, limits, name, block)
    if large.next_line is not None:  # then the number of lines and the hash are not known
        small = replace(small, total_lines=None, hash=None)
    assert replace(large, eol=None) == replace(small, eol=None)


@pytest.mark.requirement("read:encoding")
@given(whole=wholes().filter(lambda whole: "\n" in whole or "\r" not in whole), sample=st.integers(1, 40))
def test_the_encoding_of_a_large_file_is_found_wherever_its_sample_ends(
    folder: Workspace, whole: str, sample: int
) -> None:
    window = look_large(folder, whole.encode(), sample=sample)
    assert (texts(window), window.encoding) == (lines_of(whole), Encoding("utf-8"))


@pytest.mark.requirement("read:content", "read:eol")
@pytest.mark.parametrize("read", [look, look_large])
@pytest.mark.parametrize(
    ("raw", "lines", "eol"),
    [
        (b"", [], None),
        (b"a", ["a"], None),
        (b"a\n", ["a"], "lf"),
        (b"\n", [""], "lf"),
        (b"\n\n", ["", ""], "lf"),
        (b"a\nb", ["a", "b"], "lf"),
        (b"a\r\nb\r\n", ["a", "b"], "crlf"),
        (b"a\r\nb", ["a", "b"], "crlf"),
        (b"\r\n", [""], "crlf"),
        (b"a\r\nb\n", ["a", "b"], "mixed"),
        (b"a\nb\r\nc", ["a", "b", "c"], "mixed"),
        (b"a\rb\rc", ["a", "b", "c"], "cr"),
        (b"a\r", ["a"], "cr"),
        (b"\r\r", ["", ""], "cr"),
        (b"a\rb\n", ["a\rb"], "lf"),
        (b"a\r\r\n", ["a\r"], "crlf"),
        (b"a\n\r", ["a", "\r"], "lf"),
        (b"\xef\xbb\xbf", [], None),
        (b"\xef\xbb\xbfa\n", ["a"], "lf"),
        (b"a\x0cb\x0bc\x1cd\xc2\x85e\xe2\x80\xa8f\n", ["a\x0cb\x0bc\x1cd\x85e\u2028f"], "lf"),
        (b"\xff\xfea\0\r\0\n\0", ["a"], "crlf"),
    ],
)
def test_lines_end_where_editors_end_them(
    folder: Workspace, read: Callable[..., TextWindow], raw: bytes, lines: list[str], eol: str | None
) -> None:
    window = read(folder, raw)
    assert (texts(window), window.eol, window.total_lines) == (lines, eol, len(lines))


@pytest.mark.requirement("read:encoding")
def test_ebcdic_has_its_own_newline(folder: Workspace) -> None:
    raw = "one\ntwo\n".encode("cp037")
    assert b"\n" not in raw
    assert [texts(read(folder, raw, encoding="cp037")) for read in (look, look_large)] == [["one", "two"]] * 2


@pytest.mark.requirement("read:eol")
def test_a_long_line_of_a_large_file_keeps_its_line_ending(folder: Workspace) -> None:
    window = look_large(folder, b"x" * 500 + b"\r\n" + b"y\r\n", replace(MANY, max_line_chars=2))
    assert (window.eol, window.lines) == ("crlf", (Line("xx", 500, cut=True), Line("y", 1, cut=False)))


@pytest.mark.requirement("read:eol")
def test_a_sample_that_ends_inside_a_line_ending_is_no_old_mac_file(folder: Workspace) -> None:
    window = look_large(folder, b"abc\r\nd\r\n", sample=4)
    assert (texts(window), window.eol) == (["abc", "d"], "crlf")


@pytest.mark.requirement("read:encoding")
@pytest.mark.parametrize("late", ["中文" * 40, "x" + "中" * 40, "é"])
def test_an_encoding_that_shows_only_in_the_window_is_found_there(folder: Workspace, late: str) -> None:
    """Behind an ASCII head, and in lines of which only the beginning is kept."""
    limits = replace(MANY, start_line=3, max_line_chars=5)
    window = look_large(folder, f"one\ntwo\n{late}\n".encode(), limits, sample=4)
    assert (texts(window), window.encoding) == ([late[:5]], Encoding("utf-8"))
    window = look_large(folder, f"one\ntwo\n{'你好世界' * 20}\n".encode("gb18030"), limits, sample=4)
    assert (texts(window), window.encoding) == (["你好世界你"], Encoding("gb18030"))


@pytest.mark.requirement("read:encoding")
@pytest.mark.parametrize("read", [look, look_large])
def test_damage_is_shown_and_makes_the_encoding_uncertain(folder: Workspace, read: Callable[..., TextWindow]) -> None:
    raw = ("中文" * 20 + "\n").encode() + b"bad \xff\n"
    window = read(folder, raw)
    assert (window.encoding, texts(window)[1]) == (Encoding("utf-8", certain=False), r"bad \xff")


@pytest.mark.requirement("read:encoding")
def test_damage_behind_the_sample_makes_the_encoding_uncertain_too(folder: Workspace) -> None:
    raw = ("中文" * 20 + "\n").encode() + b"bad \xff\n"
    assert look_large(folder, raw, sample=9).encoding == Encoding("utf-8", certain=False)


@pytest.mark.requirement("read:bytes")
@pytest.mark.parametrize("read", [look, look_large])
@pytest.mark.parametrize(
    ("line", "encoding"), [("中" * 30, "gb18030"), ("é" * 30, "latin-1"), ("é" * 30, "ascii"), ("x" * 30, "utf-8")]
)
def test_the_bytes_that_count_are_the_bytes_that_are_shown(
    folder: Workspace, read: Callable[..., TextWindow], line: str, encoding: str
) -> None:
    raw = f"{line}\n".encode("latin-1" if encoding == "ascii" else encoding) * 20
    one = len(read(folder, raw, encoding=encoding).lines[0].display_text.encode()) + len("1\t")
    exact = read(folder, raw, replace(MANY, max_bytes=3 * one + 2), encoding)
    short = read(folder, raw, replace(MANY, max_bytes=3 * one + 1), encoding)
    assert [(len(window.lines), window.next_line) for window in (exact, short)] == [(3, 4), (2, 3)]


@pytest.mark.requirement("read:bytes", "read:exact-end")
@pytest.mark.parametrize("read", [look, look_large])
def test_a_file_that_fits_exactly_is_not_cut(folder: Workspace, read: Callable[..., TextWindow]) -> None:
    raw = b"".join(b"%04d\n" % number for number in range(8))
    exact = read(folder, raw, replace(MANY, max_lines=8, max_bytes=8 * len("1\t0000\n") - 1))
    assert (len(exact.lines), exact.next_line, exact.total_lines) == (8, None, 8)
    assert read(folder, raw, replace(MANY, max_bytes=8 * len("1\t0000\n") - 2)).next_line == 8
    assert read(folder, raw, replace(MANY, max_lines=7)).next_line == 8


@pytest.mark.requirement("read:bytes")
@pytest.mark.parametrize("read", [look, look_large])
@pytest.mark.parametrize("chars", [1, 5, 40])
def test_a_long_line_is_cut_between_characters_and_says_so(
    folder: Workspace, read: Callable[..., TextWindow], chars: int
) -> None:
    line = "a😀中é" * 10
    [cut] = read(folder, f"{line}\n".encode(), replace(MANY, max_line_chars=chars)).lines
    size = len(line.encode())
    whole = chars == len(line)
    assert cut == Line(line[:chars], size, cut=not whole)
    assert cut.display_text == (line if whole else f"{line[:chars]}… [line cut: {size} bytes in all]")


@pytest.mark.requirement("read:bytes")
def test_a_cut_is_told_even_when_the_kept_bytes_hold_few_characters(folder: Workspace) -> None:
    """In ISO-2022-JP every change of script costs bytes, so that fewer characters are kept than may be shown."""
    raw = ("aあ" * 500 + "\n").encode("iso-2022-jp")
    [line] = look_large(folder, raw, replace(MANY, max_line_chars=900), "iso-2022-jp").lines
    assert line.cut
    assert line.text.startswith("aあaあ")


@pytest.mark.requirement("read:hash")
@pytest.mark.parametrize(("start_line", "known"), [(1, False), (5, True)])
def test_a_large_file_has_a_hash_only_when_its_end_was_reached(folder: Workspace, start_line: int, known: bool) -> None:
    raw = b"".join(b"line %d\n" % number for number in range(1, 8))
    window = look_large(folder, raw, replace(MANY, start_line=start_line, max_lines=3))
    expected = (7, hashlib.sha256(raw).hexdigest()) if known else (None, None)
    assert (window.total_lines, window.hash) == expected


OLD = b"old 1\nold 2\nold 3\nold 4\n"


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more\n")


def shrink(path: Path) -> None:
    os.truncate(path, 5)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def rewrite(path: Path, word: bytes = b"new") -> None:
    path.write_bytes(OLD.replace(b"old", word))


def rewrite_longer(path: Path) -> None:
    path.write_bytes(OLD.replace(b"old", b"newer"))


def replace_by_rename(path: Path) -> None:
    path.with_name("other").write_bytes(b"another file altogether\n")
    path.with_name("other").rename(path)


def touch(path: Path) -> None:
    os.utime(path, ns=(0, 0))


def remove(path: Path) -> None:
    path.unlink()


class Changing:
    """A file of four blocks, changed before the ``at``-th block is read and, if wanted, before every later one."""

    def __init__(self, folder: Workspace, change: Callable[[Path], None], at: int, *, ever_after: bool = False) -> None:
        self.path = folder.root / "changing"
        self.path.write_bytes(OLD)
        self._folder, self._change, self._at, self._ever_after = folder, change, at, ever_after
        self._blocks = 0
        self.versions = [OLD]

    def _checkpoint(self) -> None:
        self._blocks += 1
        if self._blocks == self._at or (self._ever_after and self._blocks > self._at):
            self._change(self.path)
            self.versions.append(self.path.read_bytes() if self.path.exists() else b"")

    def read(self) -> TextWindow:
        with pytest.MonkeyPatch.context() as patch, self._folder.open_file("changing") as file:
            patch.setattr(text_reader, "SMALL_FILE", 0)
            patch.setattr(text_reader, "_BLOCK", 6)
            return TextReader(None, (), self._checkpoint).read_window(file, MANY)

    def read_version(self) -> bytes:
        """The version that was read: it must be a whole one."""
        window = self.read()
        [version] = {raw for raw in self.versions if hashlib.sha256(raw).hexdigest() == window.hash}
        assert texts(window) == lines_of(version.decode())
        return version


@pytest.mark.requirement("r:R96")
@pytest.mark.parametrize("at", [1, 2, 4, 6])
@pytest.mark.parametrize(
    ("change", "newest"),
    [
        (append, True),
        (touch, True),
        (rewrite, True),
        (rewrite_longer, True),
        (replace_by_rename, False),
        (remove, False),
    ],
)
def test_a_file_that_changes_once_while_it_is_read_gives_one_whole_version(
    folder: Workspace, change: Callable[[Path], None], newest: bool, at: int
) -> None:
    changing = Changing(folder, change, at)
    assert changing.read_version() == changing.versions[-1 if newest else 0]


@pytest.mark.requirement("r:R96")
@pytest.mark.parametrize("at", [1, 2, 4, 6])
def test_a_file_that_grows_all_the_time_can_still_be_read(folder: Workspace, at: int) -> None:
    changing = Changing(folder, append, at, ever_after=True)
    assert changing.read_version() in changing.versions


@pytest.mark.requirement("r:R96")
@pytest.mark.parametrize("at", [1, 2, 4])
@pytest.mark.parametrize("change", [shrink, empty])
def test_a_file_that_shrinks_while_it_is_read_is_a_conflict(
    folder: Workspace, change: Callable[[Path], None], at: int
) -> None:
    with pytest.raises(Failure) as failure:
        Changing(folder, change, at).read()
    assert (failure.value.code, failure.value.hint) == (ErrorCode.CONFLICT, "Read it again.")


@pytest.mark.requirement("r:R96")
def test_a_file_that_is_rewritten_all_the_time_is_a_conflict(folder: Workspace) -> None:
    words = (b"%03d" % number for number in range(1000))
    changing = Changing(folder, lambda path: rewrite(path, next(words)), 2, ever_after=True)
    with pytest.raises(Failure, match="changed while it was read") as failure:
        changing.read()
    assert failure.value.code is ErrorCode.CONFLICT


@pytest.mark.requirement("r:R96")
def test_what_was_written_back_unchanged_is_no_conflict(folder: Workspace) -> None:
    path = folder.root / "same"
    path.write_bytes(OLD)
    with folder.open_file("same") as file:
        first = read_consistently(file, lambda now: (os.pread(now.fd, 99, 0), path.write_bytes(OLD))[0])
    assert first == OLD


@pytest.mark.requirement("s:S-16", "read:bytes")
@pytest.mark.parametrize("limits", [replace(MANY, max_lines=2), replace(MANY, max_bytes=20)])
def test_a_full_window_reads_no_further(
    folder: Workspace, monkeypatch: pytest.MonkeyPatch, limits: WindowLimits
) -> None:
    monkeypatch.setattr(text_reader, "SMALL_FILE", 0)
    monkeypatch.setattr(text_reader, "_BLOCK", 6)
    (folder.root / "long").write_bytes(OLD * 100)
    blocks: list[int] = []
    with folder.open_file("long") as file:
        window = TextReader(None, (), lambda: blocks.append(1)).read_window(file, limits)
    assert (window.next_line, len(blocks)) == (3, 3)


@pytest.mark.requirement("r:R96")
def test_a_reader_is_stopped_between_two_blocks(folder: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_reader, "SMALL_FILE", 0)
    monkeypatch.setattr(text_reader, "_BLOCK", 6)
    (folder.root / "long").write_bytes(OLD)
    seen: list[int] = []

    def checkpoint() -> None:
        seen.append(len(seen))
        if len(seen) == 3:
            raise Failure(ErrorCode.TIMEOUT, "too late")

    with pytest.raises(Failure, match="too late"), folder.open_file("long") as file:
        TextReader(None, (), checkpoint).read_window(file, MANY)
    assert seen == [0, 1, 2]


@pytest.mark.requirement("s:S-16")
def test_a_huge_file_is_read_page_by_page_in_constant_memory(yard: BlockingYard, project: Path) -> None:
    path = project / "huge.log"
    head, tail = "".join(f"head {number}\n" for number in range(2000)), "".join(f"tail {n}\n" for n in range(2000))
    path.write_text(head)
    os.truncate(path, HUGE - len(tail))  # a hole: one very long line of NULs
    with path.open("a") as file:
        file.write(tail)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        first = yard.call("Read", {"path": "huge.log", "limit": 3})
        late = yard.call("Read", {"path": "huge.log", "start_line": 2001, "limit": 3})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert first.data == {
        "content": "1\thead 0\n2\thead 1\n3\thead 2",
        "truncated": True,
        "encoding": "utf-8",
        "eol": "lf",
        "next_line": 4,
    }
    hole, *rest = str(late.data["content"]).split("\n")
    gap = HUGE - len(head) - len(tail) + len("tail 0")
    assert hole == "2001\t" + "\0" * 2000 + f"… [line cut: {gap} bytes in all]"
    assert (rest, late.data["next_line"]) == (["2002\ttail 1", "2003\ttail 2"], 2004)
    assert peak < 64 * 1024**2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # in kB
