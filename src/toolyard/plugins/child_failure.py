"""The end of a child as the answer of its call, or as a Failure with the cause and the remedy."""

import re
import signal

from toolyard.plugins.child import ChildReport
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import MAX_DEPTH, JsonObject

_STDERR = 2048  # bytes of its end that a failure shows
_HEX = 64  # bytes of stdout that are shown as numbers when they are no text
_SEEN = 200  # characters of the last line of stderr that stand in a message

_python_module = re.compile(r"^ModuleNotFoundError: No module named '(\w+)", re.M)
_node_module = re.compile(r"Cannot find (?:module|package) '([^']+)'")
_node_version = re.compile(r"Node\.js v\d")
_python_syntax = re.compile(r"(?:Syntax|Indentation|Tab)Error\b")
_python_place = re.compile(r"^\s*File \"(?:[^\"\n]*/)?([^\"\n/]+)\", line (\d+)", re.MULTILINE)
_node_error = re.compile(r"(?:Uncaught |\[)?\w*(?:Error|Exception)\b.*: ")
_no_command = re.compile(r"([^\s:]+): (?:command )?not found|env: ['‘’\"]?([^'‘’\"\s:]+)['‘’\"]?: No such file")

_no_file = re.compile(r"(?:can't|cannot|Can't) open (?:file )?'?([^':\n]+)")
_PACKAGES = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dotenv": "python-dotenv",
    "yaml": "pyyaml",
}

_SIGNALS = {
    signal.SIGKILL: ("possibly because of a memory limit", "Ask for less at once, or raise limits.memoryMb."),
    signal.SIGXCPU: ("it used more CPU time than it may", "Ask for less at once, or raise limits.cpuSeconds."),
    signal.SIGXFSZ: ("it wrote a larger file than it may", "Write less, or raise limits.fileSizeMb."),
    signal.SIGSEGV: ("it crashed in native code", "Look at its stderr and its native dependencies."),
}


def require_answer(plugin: str, ended: ChildReport) -> JsonObject:
    """Return the object that the plugin answered with. Raises Failure."""
    if ended.answer is None or ended.too_large:
        raise explain_failure(plugin, ended)
    broken = ended.bad_utf8_at is not None and ended.answer["status"] == "success"
    return {**ended.answer, "status": "partial"} if broken else ended.answer


def explain_failure(plugin: str, ended: ChildReport) -> Failure:
    """Return the failure of a plugin that ended without an answer."""
    if ended.too_large:
        most = ended.limits.stdout_bytes
        return _failure(
            Reason.OUTPUT_TOO_LARGE,
            f"{plugin} printed more than {_format_size(most)} and was stopped.",
            "Ask for less, or have the plugin write a file and answer with its path.",
            ended,
        )
    if ended.overrun:
        return _failure(
            Reason.CRASHED,
            f"{plugin} started more than {ended.limits.processes} processes and was stopped.",
            "Have it start fewer, or raise limits.processes.",
            ended,
        )
    if ended.signal is not None:
        return _signal_failure(plugin, ended.signal, ended)
    return _missing_dependency_failure(plugin, ended) or _no_answer_failure(plugin, ended)


def _signal_failure(plugin: str, number: int, ended: ChildReport) -> Failure:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "unknown"
    why, hint = _SIGNALS.get(number, ("", "Look at its stderr."))  # type: ignore[call-overload]
    message = f"{plugin} was ended by signal {number} ({name}){', ' + why if why else ''} before it had answered."
    return _failure(Reason.CRASHED, message, hint, ended)


def _missing_dependency_failure(plugin: str, ended: ChildReport) -> Failure | None:
    """Return the failure of a program that lacks something it needs to start."""
    if not ended.exit_code:
        return None
    what, fix = _find_missing_dependency(ended.stderr.last(_STDERR * 4), ended.exit_code)
    return _failure(Reason.START_FAILED, f"{plugin} could not run: {what}.", fix, ended) if what else None


def _find_missing_dependency(stderr: str, exit_code: int) -> tuple[str, str]:
    """Return what is missing and how to get it."""
    if found := _python_module.search(stderr):
        name = found[1]
        often = _PACKAGES.get(name, name)
        return f"it needs the Python package {name}", f"Install what provides it (often `pip install {often}`)."
    if found := _node_module.search(stderr):
        name = found[1]
        if name.startswith((".", "/")):
            return f"its file {name} is not there", "Install the plugin again, or mend entryPoint.command."
        return f"it needs the Node package {name}", f"Run `npm install` in its folder (or `npm install {name}`)."
    if exit_code in {2, 127} and (found := _no_file.search(stderr)):
        return f"its file {found[1]} is not there", "Install the plugin again, or mend entryPoint.command."
    if exit_code in {126, 127}:
        found = _no_command.search(stderr)
        command = (found[1] or found[2]) if found else "a command it uses"
        state = "not found" if exit_code == 127 else "not executable"
        return f"{command} was {state}", f"Install {command}, or make it reachable by the PATH of plugins."
    return "", ""


def _no_answer_failure(plugin: str, ended: ChildReport) -> Failure:
    last = _last_stderr_line(ended.stderr.last(_STDERR * 4))
    seen = f" Its stderr ends with: {last[:_SEEN]}" if last else ""
    if ended.exit_code and (last or ended.stdout_bytes):
        how = f"{plugin} exited with code {ended.exit_code} before it had answered."
        return _failure(Reason.CRASHED, how + seen, "" if seen else "Look at what it printed.", ended)
    if not ended.stdout_head.strip():
        how = f" (exit code {ended.exit_code})" if ended.exit_code else ""
        message = f"{plugin} ended without printing anything on stdout{how}.{seen}"
        return _failure(Reason.NO_OUTPUT, message, _ANSWER, ended)
    if ended.too_deep:
        message = f"{plugin} printed JSON nested deeper than {MAX_DEPTH} levels."
        return _failure(Reason.INVALID_OUTPUT, message, "Answer with a flatter object.", ended)
    message = f"{plugin} printed no complete JSON object with a status.{seen}"
    return _failure(Reason.INVALID_OUTPUT, message, _ANSWER, ended)


def _last_stderr_line(stderr: str) -> str:
    """Return the last line of stderr, without the version that Node.js prints below an error."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if lines and _node_version.match(lines[-1]):
        lines = [line for line in lines if _node_error.match(line)] or lines
    last = lines[-1] if lines else ""
    places = _python_place.findall(stderr) if _python_syntax.match(last) else []
    return f"{last} ({places[-1][0]}, line {places[-1][1]})" if places else last


_ANSWER = 'A plugin answers with one JSON object such as {"status": "success", "result": "..."}.'


def _failure(reason: Reason, message: str, hint: str, ended: ChildReport) -> Failure:
    data: JsonObject = {
        "stdout": ended.stdout_head.decode("utf-8", "replace"),
        "stderr": ended.stderr.last(_STDERR),
    }
    if ended.exit_code is not None:
        data["exit_code"] = ended.exit_code
    if ended.signal is not None:
        data["signal"] = ended.signal
    if reason is Reason.INVALID_OUTPUT and "\ufffd" in str(data["stdout"]):
        data["stdout_hex"] = ended.stdout_head[:_HEX].hex(" ")
    return Failure(reason, message, hint=hint, data=data)


def _format_size(size: int) -> str:
    return f"{size / 2**20:g} MiB" if size >= 2**20 else f"{size} bytes"
