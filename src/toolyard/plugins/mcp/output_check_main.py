"""A process that checks results against the output schemas of MCP servers, so that a check without end can be killed.

On stdin: a schema and a value, each as JSON on a line of its own. On stdout, for each pair: one line, the problem as a
JSON text, empty when there is none. A check may use as many seconds of processor time as the first argument says; then
the system ends this process. Nothing is ever fetched for a ``$ref``.
"""

import json
import signal
import sys
from functools import lru_cache

from jsonschema_rs import ReferencingError, Validator, validator_for

_KEPT = 256  # schemas
_MOST = 500  # characters of a problem


@lru_cache(maxsize=_KEPT)
def _validator(schema: bytes) -> Validator:
    return validator_for(json.loads(schema), offline=True)


def find_problem(schema: bytes, value: bytes) -> str:
    """Return the problem with a value, or with the schema itself; empty when there is none."""
    try:
        error = next(iter(_validator(schema).iter_errors(json.loads(value))), None)
    except (ValueError, ReferencingError) as broken:
        return f"its output schema cannot be used: {broken}"[:_MOST]
    if error is None:
        return ""
    where = "".join(f"[{step!r}]" for step in error.instance_path)
    return f"its structured content breaks its output schema{f' at {where}' if where else ''}: {error.message}"[:_MOST]


def main() -> None:
    """Answer until stdin ends."""
    cpu_s = float(sys.argv[1])
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    while (schema := sys.stdin.buffer.readline()) and (value := sys.stdin.buffer.readline()):
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        problem = find_problem(schema, value)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps(problem) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
