"""Shell: runs one command in the project and answers with its exit code and its output.

One JSON object on stdin, one JSON object on stdout; what the command prints goes to stderr as progress while it runs.
A session keeps the working folder and the exported variables of one command for the next.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from command import CommandRun, run_command
from output import MAX_TOTAL
from session import Session, SessionError, list_sessions, load_session, remove_session, save_session

DEFAULT_TIMEOUT_S = 120.0
MAX_TIMEOUT_S = 600.0
ACTIONS = ("run", "sessions", "remove")
PLAIN = {"TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "LESS": "-F"}


class ArgumentError(Exception):
    """Raised when the arguments are not those of a command that can run."""


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the result for the arguments. Raises ArgumentError and SessionError."""
    given = fold_names(arguments)
    action = given.get("action") or "run"
    sessions = Path.home() / "sessions"
    if action == "sessions":
        return describe_sessions(sessions)
    name = given.get("session")
    if name is not None and not isinstance(name, str):
        raise ArgumentError("'session' must be a name.")
    if action == "remove":
        if not name:
            raise ArgumentError("'session' is missing: name the session to remove.")
        remove_session(sessions, name)
        return text_result(f"The session '{name}' is removed.", session=name)
    if action != "run":
        raise ArgumentError(f"'action' is one of {', '.join(ACTIONS)}, not {action!r}.")
    return run_in_project(given, load_session(sessions, name) if name else None, sessions)


def run_in_project(given: dict[str, Any], session: Session | None, sessions: Path) -> dict[str, Any]:
    command = given.get("command")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise ArgumentError("'command' is missing: write the command to run.")
    project = Path(os.environ.get("PROJECT_BASE_PATH") or os.getcwd()).resolve()
    folder = find_folder(project, given.get("folder"), session)
    base = {**os.environ, **PLAIN, "PATH": list_usable_folders(os.environ.get("PATH", os.defpath))}
    environment = session.apply(base) if session else base
    run = run_command(command, folder, environment, read_timeout(given.get("timeout")), keeps_state=session is not None)
    notes = describe_end(run)
    if session is not None:
        notes.append(keep_session(sessions, session, run, base, project))
    where = os.path.relpath(folder, project)
    summary = " ".join([f"{describe_exit(run)} after {run.seconds:.1f} s in '{where}'.", *filter(None, notes)])
    output = run.output.text
    details = {
        "exitCode": run.exit_code, "signal": run.signal, "timedOut": run.timed_out, "seconds": round(run.seconds, 3),
        "folder": where, "outputBytes": run.output.total, "leftOutBytes": run.output.left_out,
        **({"session": session.name} if session else {}),
    }  # fmt: skip
    content = [{"type": "text", "text": text} for text in (summary, output) if text]
    status = "partial" if run.timed_out or run.flooded else "success"
    return {"status": status, "result": {"content": content, **details}, "context": {"cwd": where}}


def fold_names(arguments: dict[str, Any]) -> dict[str, Any]:
    folded: dict[str, Any] = {}
    for name, value in arguments.items():
        plain = name.lower().replace("_", "").replace("-", "")
        if plain in folded and folded[plain] != value:
            raise ArgumentError(f"'{name}' is given twice.")
        folded[plain] = value
    return folded


def find_folder(project: Path, given: Any, session: Session | None) -> Path:
    """Return the working folder: the given one, the session's, or the project. Raises ArgumentError."""
    if given is not None and not isinstance(given, str):
        raise ArgumentError("'folder' must be a path relative to the project.")
    start = given or (session.folder if session else "") or "."
    try:
        folder = (project / start).resolve()
        inside = folder.is_relative_to(project) and folder.is_dir()
    except (OSError, ValueError) as error:
        raise ArgumentError(f"'{start}' cannot be opened: {error}.") from error
    if not inside:
        raise ArgumentError(f"'{start}' is not a folder of the project: use a path relative to its root.")
    return folder


def list_usable_folders(path: str) -> str:
    """Return PATH without the folders that a command cannot open: a shell would find programs there and fail."""
    usable = []
    for folder in path.split(os.pathsep):
        try:
            os.scandir(folder or ".").close()
        except OSError:
            continue
        usable.append(folder)
    return os.pathsep.join(usable)


def read_timeout(given: Any) -> float:
    if given is None or given == "":
        return DEFAULT_TIMEOUT_S
    try:
        seconds = float(given)
    except (TypeError, ValueError):
        seconds = 0.0
    if not 1 <= seconds <= MAX_TIMEOUT_S:
        raise ArgumentError(f"'timeout' is a number of seconds from 1 to {MAX_TIMEOUT_S:g}.")
    return seconds


def describe_exit(run: CommandRun) -> str:
    if run.timed_out:
        return "Stopped because its time was over"
    if run.flooded:
        return "Stopped because it printed too much"
    return f"Ended by signal {run.signal}" if run.signal else f"Exit code {run.exit_code}"


def describe_end(run: CommandRun) -> list[str]:
    notes = []
    if run.timed_out:
        notes.append("What it had done by then is done; use a larger timeout, or smaller steps.")
    if run.flooded:
        notes.append(f"A command may print {MAX_TOTAL} bytes: redirect its output to a file.")
    if run.output.left_out:
        notes.append(
            f"{run.output.left_out} of the {run.output.total} bytes that it printed are left out in the middle."
        )
    if not run.output.total:
        notes.append("It printed nothing.")
    return notes


def keep_session(sessions: Path, session: Session, run: CommandRun, base: dict[str, str], project: Path) -> str:
    """Save what the command left behind for the next one; return what happened in one sentence."""
    if run.state is None:
        return f"The session '{session.name}' is as it was before, because the shell did not end by itself."
    folder, environment = run.state
    place = Path(folder)
    inside = place.is_relative_to(project)
    kept = os.path.relpath(place, project) if inside else ""
    save_session(sessions, session.after(base, environment, kept))
    return "" if inside else f"The session continues in the project, because '{folder}' is outside it."


def describe_sessions(sessions: Path) -> dict[str, Any]:
    found = list_sessions(sessions)
    lines = [
        f"{one.name}: folder '{one.folder or '.'}', variables {', '.join(sorted(one.set)) or 'none'}" for one in found
    ]
    listed = [{"name": one.name, "folder": one.folder or ".", "variables": sorted(one.set)} for one in found]
    return text_result("\n".join(lines) or "There are no sessions.", sessions=listed)


def text_result(text: str, **details: Any) -> dict[str, Any]:
    return {"status": "success", "result": {"content": [{"type": "text", "text": text}], **details}}


def main() -> int:
    try:
        given = json.loads(sys.stdin.buffer.read() or b"{}")
        if not isinstance(given, dict):
            raise ArgumentError('The input must be a JSON object such as {"command": "ls"}.')
        output = answer(given)
    except (ArgumentError, SessionError) as error:
        output = {"status": "error", "error": {"code": "INVALID_PARAM", "message": str(error)}}
    except (ValueError, RecursionError) as error:
        output = {"status": "error", "error": f"stdin is not valid JSON: {error}"}
    except OSError as error:
        output = {"status": "error", "error": f"The command could not be started: {error}"}
    sys.stdout.write(json.dumps(output) + "\n")
    return 0 if output["status"] != "error" else 1


if __name__ == "__main__":
    sys.exit(main())
