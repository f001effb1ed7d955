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


def require_answer(plugin: str, report: ChildReport) -> JsonObject:
    """Return the object that the plugin answered with. Raises Failure."""
    if report.answer is None or report.too_large:
        raise explain_failure(plugin, report)
    broken = report.bad_utf8_at is not None and report.answer["status"] == "success"
    return {**report.answer, "status": "partial"} if broken else report.answer


def explain_failure(plugin: str, report: ChildReport) -> Failure:
    """Return the failure of a plugin that ended without an answer."""
    if report.too_large:
        most = report.limits.stdout_bytes
        return _failure(
            Reason.OUTPUT_TOO_LARGE,
            f"{plugin} printed more than {_format_size(most)} and was stopped.",
            "Ask for less, or have the plugin write a file and answer with its path.",
            report,
        )
    if report.overrun:
        return _failure(
            Reason.CRASHED,
            f"{plugin} started more than {report.limits.processes} processes and was stopped.",
            "Have it start fewer, or raise limits.processes.",
            report,
        )
    if report.signal is not None:
        return _signal_failure(plugin, report.signal, report)
    return _missing_dependency_failure(plugin, report) or _no_answer_failure(plugin, report)


def _signal_failure(plugin: str, number: int, report: ChildReport) -> Failure:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "unknown"
    why, hint = _SIGNALS.get(number, ("", "Look at its stderr."))  # type: ignore[call-overload]
    message = f"{plugin} was ended by signal {number} ({name}){', ' + why if why else ''} before it had answered."
    return _failure(Reason.CRASHED, message, hint, report)


def _missing_dependency_failure(plugin: str, report: ChildReport) -> Failure | None:
    """Return the failure of a program that lacks something it needs to start."""
    if not report.exit_code:
        return None
    what, fix = _find_missing_dependency(report.stderr.last_text(_STDERR * 4), report.exit_code)
    return _failure(Reason.START_FAILED, f"{plugin} could not run: {what}.", fix, report) if what else None


def _find_missing_dependency(stderr: str, exit_code: int) -> tuple[str, str]:
    """Return what is missing and how to get it."""
    if match := _python_module.search(stderr):
        name = match[1]
        often = _PACKAGES.get(name, name)
        return f"it needs the Python package {name}", f"Install what provides it (often `pip install {often}`)."
    if match := _node_module.search(stderr):
        name = match[1]
        if name.startswith((".", "/")):
            return f"its file {name} is not there", "Install the plugin again, or mend entryPoint.command."
        return f"it needs the Node package {name}", f"Run `npm install` in its folder (or `npm install {name}`)."
    if exit_code in {2, 127} and (match := _no_file.search(stderr)):
        return f"its file {match[1]} is not there", "Install the plugin again, or mend entryPoint.command."
    if exit_code in {126, 127}:
        match = _no_command.search(stderr)
        command = (match[1] or match[2]) if match else "a command it uses"
        state = "not found" if exit_code == 127 else "not executable"
        return f"{command} was {state}", f"Install {command}, or make it reachable by the PATH of plugins."
    return "", ""


def _no_answer_failure(plugin: str, report: ChildReport) -> Failure:
    last = _last_stderr_line(report.stderr.last_text(_STDERR * 4))
    seen = f" Its stderr ends with: {last[:_SEEN]}" if last else ""
    if report.exit_code and (last or report.stdout_bytes):
        how = f"{plugin} exited with code {report.exit_code} before it had answered."
        return _failure(Reason.CRASHED, how + seen, "" if seen else "Look at what it printed.", report)
    if not report.stdout_head.strip():
        how = f" (exit code {report.exit_code})" if report.exit_code else ""
        message = f"{plugin} ended without printing anything on stdout{how}.{seen}"
        return _failure(Reason.NO_OUTPUT, message, _ANSWER, report)
    if report.too_deep:
        message = f"{plugin} printed JSON nested deeper than {MAX_DEPTH} levels."
        return _failure(Reason.INVALID_OUTPUT, message, "Answer with a flatter object.", report)
    message = f"{plugin} printed no complete JSON object with a status.{seen}"
    return _failure(Reason.INVALID_OUTPUT, message, _ANSWER, report)


def _last_stderr_line(stderr: str) -> str:
    """Return the last line of stderr, without the version that Node.js prints below an error."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if lines and _node_version.match(lines[-1]):
        lines = [line for line in lines if _node_error.match(line)] or lines
    last = lines[-1] if lines else ""
    places = _python_place.findall(stderr) if _python_syntax.match(last) else []
    return f"{last} ({places[-1][0]}, line {places[-1][1]})" if places else last


_ANSWER = 'A plugin answers with one JSON object such as {"status": "success", "result": "..."}.'


def _failure(reason: Reason, message: str, hint: str, report: ChildReport) -> Failure:
    data: JsonObject = {
        "stdout": report.stdout_head.decode("utf-8", "replace"),
        "stderr": report.stderr.last_text(_STDERR),
    }
    if report.exit_code is not None:
        data["exit_code"] = report.exit_code
    if report.signal is not None:
        data["signal"] = report.signal
    if reason is Reason.INVALID_OUTPUT and "\ufffd" in str(data["stdout"]):
        data["stdout_hex"] = report.stdout_head[:_HEX].hex(" ")
    return Failure(reason, message, hint=hint, data=data)


def _format_size(size: int) -> str:
    return f"{size / 2**20:g} MiB" if size >= 2**20 else f"{size} bytes"
