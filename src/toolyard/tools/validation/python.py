"""Python, by Python's own compiler. Nothing of the file is run."""

import re
import symtable
import warnings
from collections.abc import Iterator

from toolyard.protocol.tool import Checkpoint
from toolyard.tools.validation import Finding, Severity, Unchecked, finding_at

_MAX_COMPILED = 128 * 1024  # of longer files only grammar and names are checked: the compiler's time is not linear
_FILE = "<validated file>"
_QUIET = ("ignore", None, Warning, re.compile(re.escape(_FILE)), 0)


def check(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    checkpoint()
    if _QUIET not in warnings.filters:
        # What Python would warn of is not ours to print, nor an error if warnings are. Only this file's name is
        # silenced, once and for all: warnings.catch_warnings() is not safe among threads.
        warnings.filterwarnings("ignore", module=re.escape(_FILE))
    try:
        if len(text) <= _MAX_COMPILED:
            compile(text, _FILE, "exec", dont_inherit=True)
        else:
            symtable.symtable(text, _FILE, "exec")
    except SyntaxError as error:
        yield _to_finding(text, error)
    except (RecursionError, MemoryError) as error:  # the parser says MemoryError for thousands of nested operators
        raise Unchecked("its expressions are nested too deeply") from error
    except (ValueError, OverflowError) as error:
        yield finding_at(text, 0, str(error))


def _to_finding(text: str, error: SyntaxError) -> Finding:
    line = max(1, min(error.lineno or 1, text.count("\n") + 1))
    return Finding(line, max(1, error.offset or 1), Severity.ERROR, error.msg[:200])
