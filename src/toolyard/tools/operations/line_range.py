"""A range of lines: ``head:N``, ``tail:N``, ``M-N``, ``M:N`` or ``N``, counted from 1."""

import re
from dataclasses import dataclass

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure

_FORM = re.compile(r"(?:(head|tail)\s*:\s*)?(\d{1,12})(?:\s*[-:]\s*(\d{1,12}))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LineRange:
    """Lines from ``first`` to ``last``, or the ``tail`` last ones. Without ``last``: as many as an answer holds."""

    first: int = 1
    last: int | None = None
    tail: int | None = None

    @classmethod
    def parse(cls, value: str | int | None) -> "LineRange":
        if value is None or value == "":
            return cls()
        form = _FORM.fullmatch(str(value).strip())
        if form is None or (form[1] and form[3]):
            raise _invalid_range(Message("file.lines_wrong_form", "is none of head:N, tail:N, M-N, M:N and N"))
        number, last = int(form[2]), int(form[3] or form[2])
        if number < 1:
            raise _invalid_range(Message("file.lines_from_one", "counts lines from 1"))
        if last < number:
            raise _invalid_range(Message("file.lines_reversed", "ends before it begins"))
        match (form[1] or "").lower():
            case "head":
                return cls(last=number)
            case "tail":
                return cls(tail=number)
            case _:
                return cls(number, last)

    @property
    def is_everything(self) -> bool:
        return self == LineRange()

    def resolve(self, total: int) -> "LineRange":
        """Return the range by line numbers, in a text of ``total`` lines."""
        return self if self.tail is None else LineRange(max(1, total - self.tail + 1), max(1, total))


def _invalid_range(why: str) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        Message("file.invalid_lines", "'lines' {why}.", why=why),
        hint=Message("hint.line_range_form", "Use a form such as head:50, tail:80 or 120-180."),
    )
