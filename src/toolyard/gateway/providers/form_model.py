"""Finds the field ``model`` of a form while it is uploaded, before the files that follow it."""

import re
from enum import Enum
from typing import Final

MAX_NAME: Final = 1024  # bytes of a model's name
_MAX_HEAD = 16 * 1024  # of the head of one part
_BOUNDARY = re.compile(r"boundary=(?:\"([^\"]{1,70})\"|([^\s\";,]{1,70}))", re.IGNORECASE)
_FIELD = re.compile(rb"content-disposition:\s*form-data\s*;([^\r\n]*)", re.IGNORECASE)
_NAME = re.compile(rb"(?:^|[;\s])name=(?:\"([^\"\r\n]*)\"|([^\s;\"]+))", re.IGNORECASE)
_FILE = re.compile(rb"(?:^|[;\s])filename\*?=", re.IGNORECASE)
_LINE, _HEAD_END, _LAST = b"\r\n", b"\r\n\r\n", b"--"


class _Seeks(Enum):
    """States of the form reader, each named by the piece it looks for next."""

    PART = "the line that begins a part"
    KIND = "whether that line was the last"
    HEAD = "the end of the part's head"
    VALUE = "the end of the model's name"
    NOTHING = "nothing"


class FormModel:
    """Feed it a form until ``is_done``; ``data`` is everything it was fed, ``span`` the place of the name in it."""

    def __init__(self, boundary: str) -> None:
        self.data = bytearray()
        self.span: tuple[int, int] | None = None
        self._delimiter = b"--" + boundary.encode("latin-1", "replace")
        self._between = _LINE + self._delimiter
        self._at = self._start = 0  # searched up to here; start of the current piece
        self._seeks = _Seeks.PART
        self._is_first = True

    @property
    def is_done(self) -> bool:
        return self._seeks is _Seeks.NOTHING

    @property
    def model(self) -> str:
        """The model's name; empty when the form has none."""
        return bytes(self.data[slice(*self.span)]).decode("utf-8", "replace") if self.span else ""

    def feed(self, piece: bytes) -> None:
        self.data += piece
        steps = {
            _Seeks.PART: self._seek_part,
            _Seeks.KIND: self._seek_kind,
            _Seeks.HEAD: self._seek_head,
            _Seeks.VALUE: self._seek_value,
        }
        while not self.is_done and steps[self._seeks]():
            pass

    def _find(self, what: bytes) -> int:
        """Return the position of ``what``; -1 when it has not arrived yet. Searches no byte twice."""
        start = self.data.find(what, self._at)
        if start < 0:
            self._at = max(self._at, len(self.data) - len(what) + 1)
        return start

    def _seek_part(self) -> bool:
        what = self._delimiter if self._is_first else self._between
        start = self._find(what)
        if start < 0:
            return False
        self._at, self._is_first, self._seeks = start + len(what), False, _Seeks.KIND
        return True

    def _seek_kind(self) -> bool:
        if len(self.data) < self._at + 2:
            return False
        is_last = self.data[self._at : self._at + 2] == _LAST
        self._start, self._seeks = self._at, _Seeks.NOTHING if is_last else _Seeks.HEAD
        return True

    def _seek_head(self) -> bool:
        end = self._find(_HEAD_END)
        if end < 0:
            self._give_up_beyond(_MAX_HEAD)
            return False
        if end - self._start > _MAX_HEAD:
            self._seeks = _Seeks.NOTHING
            return False
        is_model = _is_model(bytes(self.data[self._start : end]))
        self._start = end + len(_HEAD_END)
        self._at = end + len(_LINE)  # an empty value ends with the line that ends the head
        self._seeks = _Seeks.VALUE if is_model else _Seeks.PART
        return True

    def _seek_value(self) -> bool:
        end = self._find(self._between)
        if end < 0:
            self._give_up_beyond(MAX_NAME)
            return False
        if end - self._start <= MAX_NAME:
            self.span = (min(self._start, end), end)
        self._seeks = _Seeks.NOTHING
        return True

    def _give_up_beyond(self, most: int) -> None:
        if len(self.data) - self._start > most:
            self._seeks = _Seeks.NOTHING


def boundary_of(content_type: str) -> str:
    """Return the boundary of a form; empty when its header names none."""
    match = _BOUNDARY.search(content_type)
    return (match[1] or match[2]) if match else ""


def _is_model(head: bytes) -> bool:
    field = _FIELD.search(head)
    name = _NAME.search(field[1]) if field else None
    return field is not None and name is not None and (name[1] or name[2]) == b"model" and not _FILE.search(field[1])
