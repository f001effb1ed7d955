"""Timelapse: renders an animation as a GIF, asynchronously and offline.

The receipt with the placeholder is printed at once; a thread that is no daemon then renders and calls the host back.
Progress goes to stderr as lines ``PROGRESS <share from 0 to 1> <text>``, at most one per whole percent. The file is
written under another name first and stands under its own only when it is whole. ``query`` tells what is there.
"""

import base64
import json
import os
import re
import sys
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from callback import call_back, log
from gif import GifFile
from scenes import SCENES

NAME = "Timelapse"
MAX_PIXELS = 40_000_000  # of all frames together
MAX_INLINE = 512 * 1024  # a larger file is named, not sent along
_SYNONYMS = {
    "生命游戏": "life", "生命": "life", "game_of_life": "life", "gameoflife": "life", "曼德博": "mandelbrot",
    "分形": "mandelbrot",
    "fractal": "mandelbrot", "zoom": "mandelbrot", "热扩散": "heat", "diffusion": "heat", "双摆": "pendulum",
    "摆": "pendulum",
    "double_pendulum": "pendulum",
}  # fmt: skip


class Bad(Exception):
    """The request cannot be done; the message says why and how to write it."""


class Job(NamedTuple):
    """One animation to render."""

    task: str
    scene: str
    width: int
    height: int
    frames: int
    fps: float
    seed: int
    file: Path


def number(args: Mapping[str, Any], names: str, default: float, least: float, most: float) -> float:
    """A number under any of its names, within its bounds."""
    given = next((args[name] for name in names.split() if args.get(name) not in (None, "")), default)
    try:
        found = float(given)
    except (TypeError, ValueError):
        found = float("nan")
    if not least <= found <= most:
        raise Bad(f"{names.partition(' ')[0]} must be a number from {least:g} to {most:g}, not '{str(given)[:50]}'.")
    return found


def folder(env: Mapping[str, str]) -> Path:
    """Where the animations are kept."""
    return Path(env.get("TIMELAPSE_SAVE_DIR", "").strip() or Path(env.get("HOME") or Path.home()) / "Timelapse")


def job_from(args: Mapping[str, Any], env: Mapping[str, str]) -> Job:
    """The request as a value; what is wrong is refused here."""
    written = str(args.get("scene") or args.get("type") or args.get("场景") or "life").strip().lower()
    scene = _SYNONYMS.get(written, written)
    if scene not in SCENES:
        raise Bad(f"There is no scene '{written[:50]}'. Use one of: {', '.join(SCENES)}.")
    width = int(number(args, "width 宽", 240, 16, 640))
    height = int(number(args, "height 高", 180, 16, 640))
    fps = number(args, "fps", 15, 1, 50)
    seconds = number(args, "seconds duration 秒", 4, 0.05, 60)
    frames = int(number(args, "frames 帧数", max(1, round(seconds * fps)), 1, 900))
    if width * height * frames > MAX_PIXELS:
        raise Bad(
            f"{frames} frames of {width}x{height} are too large: make them smaller or fewer, at most {MAX_PIXELS} "
            "pixels in all."
        )
    task = uuid.uuid4().hex[:16]
    seed = int(number(args, "seed 种子", 7, 0, 2**31 - 1))
    return Job(task, scene, width, height, frames, fps, seed, folder(env) / f"{scene}_{task}.gif")


def render(job: Job) -> int:
    """Writes the file and gives its size, telling the progress."""
    scene = SCENES[job.scene]
    job.file.parent.mkdir(parents=True, exist_ok=True)
    growing = job.file.with_suffix(".part")
    told = -1
    try:
        with growing.open("xb") as opened:
            gif = GifFile(opened, job.width, job.height, scene.palette, job.fps)
            for done, pixels in enumerate(scene.paint(job.width, job.height, job.frames, job.seed), 1):
                gif.add(pixels)
                if done * 100 // job.frames > told:
                    told = done * 100 // job.frames
                    log(f"PROGRESS {done / job.frames:.2f} {done}/{job.frames} frames")
            gif.end()
        growing.replace(job.file)
    finally:
        growing.unlink(missing_ok=True)
    return job.file.stat().st_size


def finished(job: Job) -> dict[str, Any]:
    """Renders, and gives the body of the callback."""
    try:
        size = render(job)
    except OSError as problem:
        reason = f"{job.file} cannot be written: {problem.strerror or problem}"
        message = f"The animation (ID: {job.task}) failed: {reason}"
        return {"status": "Failed", "reason": reason, "message": message}
    text = (
        f"The animation (ID: {job.task}) is finished: {SCENES[job.scene].name}, {job.width}x{job.height}, "
        f"{job.frames} frames, {job.frames / job.fps:.1f} s, {size} bytes. File: {job.file}"
    )
    body: dict[str, Any] = {
        "status": "Succeed",
        "message": text,
        "file": str(job.file),
        "mimeType": "image/gif",
        "bytes": size,
    }
    body |= {"scene": job.scene, "width": job.width, "height": job.height, "frames": job.frames}
    if size <= MAX_INLINE:
        uri = f"data:image/gif;base64,{base64.b64encode(job.file.read_bytes()).decode()}"
        body["content"] = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": uri}}]
    return body


def render_request(args: Mapping[str, Any], env: Mapping[str, str]) -> tuple[str, threading.Thread]:
    """The receipt, and the thread that does the work."""
    job = job_from(args, env)
    base = env.get("CALLBACK_BASE_URL", "").strip()
    plugin = env.get("PLUGIN_NAME_FOR_CALLBACK", "").strip() or NAME
    pause = number(env, "CALLBACK_RETRY_S", 1, 0.001, 600)

    def work() -> None:
        body = {"requestId": job.task, "pluginName": plugin, **finished(job)}
        if not base:
            log(f"[{job.task}] no CALLBACK_BASE_URL: {body['message']}")
        elif not call_back(base, plugin, job.task, body, pause):
            os._exit(1)  # the main thread has long ended with 0

    receipt = (
        f"The animation (ID: {job.task}) is being rendered: {SCENES[job.scene].name}, {job.frames} frames.\n"
        "Repeat the following placeholder in your reply exactly as it is: when the animation is finished, its result "
        f"replaces it.\n{{{{VCP_ASYNC_RESULT::{NAME}::{job.task}}}}}"
    )
    return receipt, threading.Thread(target=work, name="render")


def query(args: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """Whether the file of a task is there."""
    task = str(args.get("request_id") or args.get("requestid") or args.get("id") or "").strip()
    if not re.fullmatch(r"[0-9a-f]{16}", task):
        raise Bad("request_id is missing or wrong: write the id of the task from its receipt, 16 characters.")
    whole = next(folder(env).glob(f"*_{task}.gif"), None)
    if whole:
        return f"The animation (ID: {task}) is finished. File: {whole}"
    if next(folder(env).glob(f"*_{task}.part"), None):
        return f"The animation (ID: {task}) is being rendered: ask again later."
    raise Bad(f"There is no file of the task {task}: it has not begun to write, or it has failed.")


def main() -> int:
    """Reads, prints the one answer, and lets the thread live on."""
    worker: threading.Thread | None = None
    try:
        said = json.loads(sys.stdin.buffer.read() or b"{}")
        if not isinstance(said, dict):
            raise Bad('The input must be a JSON object, such as {"scene": "life", "seconds": 4}.')
        args = {str(key).strip().lower(): value for key, value in said.items()}
        command = str(args.get("command") or "render").strip().lower()
        if command in ("render", "submit"):
            result, worker = render_request(args, os.environ)
        elif command == "query":
            result = query(args, os.environ)
        else:
            raise Bad(f"There is no command '{command[:50]}'. Use render or query.")
        output = {"status": "success", "result": result}
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as problem:
        output = {"status": "error", "error": f"stdin is not valid JSON: {problem}"}
    except Bad as problem:
        output = {"status": "error", "error": f"The animation failed: {problem}"}
    sys.stdout.write(json.dumps(output) + "\n")
    sys.stdout.flush()
    if worker:
        worker.start()
    return 0 if output["status"] == "success" else 1


if __name__ == "__main__":
    sys.exit(main())
