"""The end of a child as the answer of its call, or as a Failure with the cause and the remedy."""

import re
import signal

from toolyard.message import Message
from toolyard.plugins.child import ChildReport
from toolyard.plugins.stderr import StderrRing
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
    signal.SIGKILL: (
        Message("plugin.signal_memory", "possibly because of a memory limit"),
        Message("hint.raise_memory", "Ask for less at once, or raise limits.memoryMb."),
    ),
    signal.SIGXCPU: (
        Message("plugin.signal_cpu", "it used more CPU time than it may"),
        Message("hint.raise_cpu", "Ask for less at once, or raise limits.cpuSeconds."),
    ),
    signal.SIGXFSZ: (
        Message("plugin.signal_file", "it wrote a larger file than it may"),
        Message("hint.raise_file_size", "Write less, or raise limits.fileSizeMb."),
    ),
    signal.SIGSEGV: (
        Message("plugin.signal_native", "it crashed in native code"),
        Message("hint.look_at_native", "Look at its stderr and its native dependencies."),
    ),
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
            Message(
                "plugin.printed_too_much",
                "{plugin} printed more than {size} and was stopped.",
                plugin=plugin,
                size=_format_size(most),
            ),
            Message("hint.answer_with_path", "Ask for less, or have the plugin write a file and answer with its path."),
            report,
        )
    if report.overrun:
        return _failure(
            Reason.CRASHED,
            Message(
                "plugin.too_many_processes",
                "{plugin} started more than {most} processes and was stopped.",
                plugin=plugin,
                most=report.limits.processes,
            ),
            Message("hint.raise_processes", "Have it start fewer, or raise limits.processes."),
            report,
        )
    if report.signal is not None:
        return _signal_failure(plugin, report.signal, report)
    return _missing_dependency_failure(plugin, report) or _no_answer_failure(plugin, report)


def explain_missing_callback(stderr: StderrRing) -> Failure:
    """Return the failure of an asynchronous plugin that ended after its receipt, without having called back."""
    message = Message("task.ended_without_callback", "Its process ended without a callback.")
    last = _last_stderr_line(stderr.last_text(_STDERR * 4))
    return Failure(Reason.CRASHED, _add_stderr(message, last), data={"stderr": stderr.last_text(_STDERR)})


def _signal_failure(plugin: str, number: int, report: ChildReport) -> Failure:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "unknown"
    why, hint = _SIGNALS.get(number, ("", Message("hint.look_at_stderr", "Look at its stderr.")))  # type: ignore[call-overload]
    message = Message(
        "plugin.ended_by_signal",
        "{plugin} was ended by signal {number} ({name}) before it had answered.",
        plugin=plugin,
        number=number,
        name=name,
    )
    if why:
        message = Message(
            "plugin.ended_by_signal_why",
            "{plugin} was ended by signal {number} ({name}), {why} before it had answered.",
            plugin=plugin,
            number=number,
            name=name,
            why=why,
        )
    return _failure(Reason.CRASHED, message, hint, report)


def _missing_dependency_failure(plugin: str, report: ChildReport) -> Failure | None:
    """Return the failure of a program that lacks something it needs to start."""
    if not report.exit_code:
        return None
    what, fix = _find_missing_dependency(report.stderr.last_text(_STDERR * 4), report.exit_code)
    return (
        _failure(
            Reason.START_FAILED,
            Message("plugin.could_not_run", "{plugin} could not run: {what}.", plugin=plugin, what=what),
            fix,
            report,
        )
        if what
        else None
    )


def _find_missing_dependency(stderr: str, exit_code: int) -> tuple[str, str]:
    """Return what is missing and how to get it."""
    if match := _python_module.search(stderr):
        name = match[1]
        often = _PACKAGES.get(name, name)
        return Message("plugin.needs_python_package", "it needs the Python package {name}", name=name), Message(
            "hint.pip_install", "Install what provides it (often `pip install {name}`).", name=often
        )
    if match := _node_module.search(stderr):
        name = match[1]
        if name.startswith((".", "/")):
            return _missing_file(name), Message(
                "hint.mend_entry_point", "Install the plugin again, or mend entryPoint.command."
            )
        return Message("plugin.needs_node_package", "it needs the Node package {name}", name=name), Message(
            "hint.npm_install", "Run `npm install` in its folder (or `npm install {name}`).", name=name
        )
    if exit_code in {2, 127} and (match := _no_file.search(stderr)):
        return _missing_file(match[1]), Message(
            "hint.mend_entry_point", "Install the plugin again, or mend entryPoint.command."
        )
    if exit_code in {126, 127}:
        match = _no_command.search(stderr)
        command = (match[1] or match[2]) if match else Message("plugin.some_command", "a command it uses")
        problem = (
            Message("plugin.command_not_found", "{command} was not found", command=command)
            if exit_code == 127
            else Message("plugin.command_not_executable", "{command} was not executable", command=command)
        )
        return problem, Message(
            "hint.install_command", "Install {command}, or make it reachable by the PATH of plugins.", command=command
        )
    return "", ""


def _no_answer_failure(plugin: str, report: ChildReport) -> Failure:
    last = _last_stderr_line(report.stderr.last_text(_STDERR * 4))
    if report.exit_code and (last or report.stdout_bytes):
        message = Message(
            "plugin.exited_early",
            "{plugin} exited with code {exit_code} before it had answered.",
            plugin=plugin,
            exit_code=report.exit_code,
        )
        return _failure(
            Reason.CRASHED,
            _add_stderr(message, last),
            "" if last else Message("hint.look_at_output", "Look at what it printed."),
            report,
        )
    if not report.stdout_head.strip():
        message = Message("plugin.no_stdout", "{plugin} ended without printing anything on stdout.", plugin=plugin)
        if report.exit_code:
            message = Message(
                "plugin.no_stdout_exit_code",
                "{plugin} ended without printing anything on stdout (exit code {exit_code}).",
                plugin=plugin,
                exit_code=report.exit_code,
            )
        return _failure(Reason.NO_OUTPUT, _add_stderr(message, last), _ANSWER, report)
    if report.too_deep:
        message = Message(
            "plugin.printed_deep_json",
            "{plugin} printed JSON nested deeper than {levels} levels.",
            plugin=plugin,
            levels=MAX_DEPTH,
        )
        return _failure(
            Reason.INVALID_OUTPUT, message, Message("hint.flatter_answer", "Answer with a flatter object."), report
        )
    message = Message(
        "plugin.printed_no_answer", "{plugin} printed no complete JSON object with a status.", plugin=plugin
    )
    return _failure(Reason.INVALID_OUTPUT, _add_stderr(message, last), _ANSWER, report)


def _add_stderr(message: Message, last: str) -> Message:
    """Return a message with the last line of stderr, if there is one."""
    if not last:
        return message
    return Message("plugin.with_stderr", "{message} Its stderr ends with: {line}", message=message, line=last[:_SEEN])


def _missing_file(name: str) -> Message:
    return Message("plugin.file_not_there", "its file {name} is not there", name=name)


def _last_stderr_line(stderr: str) -> str:
    """Return the last line of stderr, without the version that Node.js prints below an error."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if lines and _node_version.match(lines[-1]):
        lines = [line for line in lines if _node_error.match(line)] or lines
    last = lines[-1] if lines else ""
    places = _python_place.findall(stderr) if _python_syntax.match(last) else []
    return f"{last} ({places[-1][0]}, line {places[-1][1]})" if places else last


_ANSWER = Message(
    "hint.answer_form", 'A plugin answers with one JSON object such as {{"status": "success", "result": "..."}}.'
)


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
