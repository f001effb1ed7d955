"""The limits of a result as a model sees it, and the end at which a longer one is cut (002 §2)."""

from enum import StrEnum

MAX_LINES = 2000
MAX_BYTES = 51_200
HARD_CAP_BYTES = 1024 * 1024  # even a tool that pages by itself shows no more than this
MAX_PARAM_BYTES = 4096  # a longer string the caller sent, or message of an error, is not shown whole
MAX_LINE_CHARS = 2000  # Read shows no more of one line, so the stored text has no longer ones


class Direction(StrEnum):
    """The part of a result that is kept when it is cut."""

    HEAD = "head"
    TAIL = "tail"
