"""Timelapse: receipt, progress, callback, and GIFs decoded frame by frame."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.shipped.children import PATIENCE, Reply, Said, receipt, run, serving, started
from tests.shipped.pictures import from_uri, gif

pytestmark = pytest.mark.requirement("shipped:timelapse")
TAKEN = Reply({"status": "success"})
SMALL = {"command": "render", "width": "48", "height": "36"}


def settings(host: str = "", **more: str) -> dict[str, str]:
    base = (
        {"CALLBACK_BASE_URL": f"{host}/plugin-callback/~token", "PLUGIN_NAME_FOR_CALLBACK": "Timelapse"} if host else {}
    )
    return {**base, "CALLBACK_RETRY_S": "0.02", **more}


def failure(said: Said) -> str:
    assert (said.answer["status"], said.code) == ("error", 1), said.answer
    return str(said.answer["error"])


@pytest.mark.parametrize("scene", ["life", "mandelbrot", "heat", "pendulum"])
def test_a_scene_is_rendered_and_called_back(scene: str, tmp_path: Path) -> None:
    with (
        serving(lambda _: TAKEN) as host,
        started("Timelapse", {**SMALL, "scene": scene, "frames": 12, "fps": 10}, tmp_path, settings(host.url)) as child,
    ):
        first = receipt(child)
        called = host.next()
        assert child.wait(PATIENCE) == 0
        assert child.stdout is not None
        assert child.stdout.read() == b""
    match = re.search(r"\{\{VCP_ASYNC_RESULT::Timelapse::([0-9a-f]{16})\}\}", first["result"])
    assert match
    assert called.path == f"/plugin-callback/~token/Timelapse/{match[1]}"
    body = called.json
    assert (body["requestId"], body["status"], body["pluginName"]) == (match[1], "Succeed", "Timelapse")
    assert (body["scene"], body["width"], body["height"], body["frames"]) == (scene, 48, 36, 12)
    raw = Path(body["file"]).read_bytes()
    assert body["file"] in body["message"]
    assert Path(body["file"]).parent == tmp_path / "Timelapse"
    assert len(raw) == body["bytes"]
    assert from_uri(body["content"][1]["image_url"]["url"], "gif") == raw
    frames, pause = gif(raw)
    assert (len(frames), pause) == (12, 10)
    assert len({frame.pixels for frame in frames}) == 12


def test_the_progress_is_told_line_by_line_on_stderr(tmp_path: Path) -> None:
    said = run("Timelapse", {**SMALL, "frames": 10}, tmp_path, settings())
    shares = [float(share) for share in re.findall(r"^PROGRESS ([01]\.\d\d) \d+/10 frames$", said.stderr, re.MULTILINE)]
    assert shares == [i / 10 for i in range(1, 11)]


def test_the_receipt_comes_before_the_work(tmp_path: Path) -> None:
    long = {"scene": "mandelbrot", "width": 400, "height": 300, "frames": 200}
    with serving(lambda _: TAKEN) as host, started("Timelapse", long, tmp_path, settings(host.url)) as child:
        assert "VCP_ASYNC_RESULT" in receipt(child)["result"]
        assert child.poll() is None
        assert host.asked.empty()


def test_the_same_seed_gives_the_same_animation(tmp_path: Path) -> None:
    bodies = []
    for seed in ("3", "3", "4"):
        with serving(lambda _: TAKEN) as host:
            run("Timelapse", {**SMALL, "scene": "life", "frames": 4, "seed": seed}, tmp_path, settings(host.url))
            bodies.append(host.next().json["content"][1])
    assert bodies[0] == bodies[1]
    assert bodies[0] != bodies[2]


def test_life_follows_its_rules(tmp_path: Path) -> None:
    with serving(lambda _: TAKEN) as host:
        run("Timelapse", {"scene": "life", "width": 80, "height": 80, "frames": 6}, tmp_path, settings(host.url))
        frames, _ = gif(Path(host.next().json["file"]).read_bytes())
    alive = [
        {(x, y) for x in range(20) for y in range(20) if frame.at(x * 4, y * 4) == (225, 255, 235)} for frame in frames
    ]
    for now, after in pairwise(alive):
        wanted = set()
        for x in range(20):
            for y in range(20):
                around = sum(((x + i) % 20, (y + j) % 20) in now for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
                if around == 3 or (around == 2 and (x, y) in now):
                    wanted.add((x, y))
        assert after == wanted
    assert alive[0]


def test_seconds_and_fps_make_the_number_of_frames(tmp_path: Path) -> None:
    with serving(lambda _: TAKEN) as host:
        run("Timelapse", {**SMALL, "seconds": "0.5", "fps": "20"}, tmp_path, settings(host.url))
        assert host.next().json["frames"] == 10


def test_a_noisy_frame_survives_the_coder(tmp_path: Path) -> None:
    """Long enough that the table of codes fills and begins anew."""
    with serving(lambda _: TAKEN) as host:
        args = {"scene": "mandelbrot", "width": 160, "height": 120, "frames": 2}
        run("Timelapse", args, tmp_path, settings(host.url))
        frames, _ = gif(Path(host.next().json["file"]).read_bytes())
    assert len({frames[0].at(x, 60) for x in range(160)}) > 20


def test_the_callback_is_tried_again_until_the_host_takes_it(tmp_path: Path) -> None:
    answers = [Reply({}, 503), Reply({}, 500), TAKEN]
    with serving(lambda _: answers.pop(0)) as host:
        said = run("Timelapse", {**SMALL, "frames": 2}, tmp_path, settings(host.url))
        assert host.asked.qsize() == 3
    assert said.code == 0


def test_a_host_that_is_away_ends_the_plugin_with_a_failure_and_the_file_stays(tmp_path: Path) -> None:
    said = run("Timelapse", {**SMALL, "frames": 2}, tmp_path, settings("http://127.0.0.1:9"))
    assert said.code == 1
    assert said.stderr.count("callback try") == 5
    (kept,) = (tmp_path / "Timelapse").iterdir()
    assert kept.suffix == ".gif"


def test_a_folder_that_cannot_be_written_is_called_back_as_failed(tmp_path: Path) -> None:
    (tmp_path / "Timelapse").write_text("in the way", "utf-8")
    with serving(lambda _: TAKEN) as host:
        run("Timelapse", {**SMALL, "frames": 2}, tmp_path, settings(host.url))
        body = host.next().json
    assert body["status"] == "Failed"
    assert "cannot be written" in body["message"]


def test_a_query_tells_whether_the_file_is_there(tmp_path: Path) -> None:
    with serving(lambda _: TAKEN) as host:
        run("Timelapse", {**SMALL, "frames": 2}, tmp_path, settings(host.url))
        body = host.next().json
    said = run("Timelapse", {"command": "query", "request_id": body["requestId"]}, tmp_path)
    assert body["file"] in said.answer["result"]
    assert "There is no file of the task" in failure(
        run("Timelapse", {"command": "query", "request_id": "0" * 16}, tmp_path)
    )


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ({"scene": "opera"}, "mandelbrot"),
        ({"frames": "0"}, "from 1 to 900"),
        ({"frames": "many"}, "frames"),
        ({"width": 640, "height": 640, "frames": 900}, "too large"),
        ({"seconds": "-1"}, "seconds"),
        ({"command": "dance"}, "render or query"),
        ({"command": "query", "request_id": "../../etc/passwd"}, "request_id"),
    ],
)
def test_a_bad_request_is_told(args: dict[str, Any], word: str, tmp_path: Path) -> None:
    assert word in failure(run("Timelapse", args, tmp_path))
