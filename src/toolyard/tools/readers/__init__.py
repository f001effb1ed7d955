"""Readers of files that are not plain text, and the page of one that is asked for."""

from dataclasses import dataclass

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure


@dataclass(frozen=True, slots=True)
class Page:
    """``limit`` lines or cells from ``start`` on, counted from 1."""

    start: int
    limit: int

    def beyond_end_failure(self, path: str, total: int, units: str) -> Failure:
        return Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "'{path}' has {total} {units}: start_line={start} is beyond its end.",
                path=path,
                total=total,
                units=units,
                start=self.start,
            ),
            hint=Message("Use a smaller start_line."),
            context={"path_resolved": path, "total": total},
        )
