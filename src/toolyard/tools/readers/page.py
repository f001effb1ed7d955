"""The requested page of a file."""

from dataclasses import dataclass

from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure


@dataclass(frozen=True, slots=True)
class Page:
    """``limit`` lines or cells from ``start`` on, counted from 1."""

    start: int
    limit: int

    def beyond_end_failure(self, path: str, total: int, units: str) -> Failure:
        return Failure(
            ErrorCode.INVALID_PARAM,
            f"'{path}' has {total} {units}: start_line={self.start} is beyond its end.",
            hint="Use a smaller start_line.",
            context={"path_resolved": path, "total": total},
        )
