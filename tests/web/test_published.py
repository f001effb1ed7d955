"""``/pw=KEY/images/...`` and ``/pw=KEY/files/...``: files that plugins publish, for whoever has the address."""

import asyncio
import logging
import re
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.fakes import FakeClock
from tests.web.conftest import HttpResponse, RunningServer, run_server
from toolyard.web.routes.plugins.published import parse_range
from toolyard.web.security.access import MAX_PER_ADDRESS
from toolyard.web.server.lifecycle import ServerOptions

PNG = b"\x89PNG\r\n\x1a\n" + b"picture"
DRAWING = b"<svg xmlns='http://www.w3.org/2000/svg'><script>document.title='ran'</script></svg>"
MAKES_A_PICTURE = """
import json, os, pathlib, sys
sys.stdin.read()
folder = pathlib.Path(os.environ["PROJECT_BASE_PATH"], "image", "maker")
folder.mkdir(parents=True, exist_ok=True)
(folder / "a.png").write_bytes(bytes.fromhex("PICTURE"))
url = "%s:%s/pw=%s/images/maker/a.png" % tuple(
    os.environ[name] for name in ("VarHttpUrl", "SERVER_PORT", "IMAGESERVER_IMAGE_KEY"))
print("writes " + url, file=sys.stderr)
print(json.dumps({"status": "success", "result": {"content": [{"type": "text", "text": "see " + url}]}}))
""".replace("PICTURE", PNG.hex())


def image_key(running: RunningServer) -> str:
    return running.server.publish_keys.read()["IMAGESERVER_IMAGE_KEY"]


def file_key(running: RunningServer) -> str:
    return running.server.publish_keys.read()["IMAGESERVER_FILE_KEY"]


@pytest.fixture
async def published(tmp_path: Path) -> AsyncIterator[RunningServer]:
    """A server on a project with something in ``image/`` and ``file/``, and a secret beside them."""
    async with run_server(tmp_path) as running:
        for name, content in (
            ("image/sub/cat 猫.png", PNG),
            ("image/drawing.svg", DRAWING),
            ("image/notes.txt", b"no picture"),
            ("image/.env", b"secret"),
            ("file/page.html", b"<script>1</script>"),
            ("file/film.mp4", bytes(range(256)) * 4096),
            ("file/data.bin", b"binary"),
            ("secret.png", b"secret"),
        ):
            (running.project / name).parent.mkdir(parents=True, exist_ok=True)
            (running.project / name).write_bytes(content)
        (running.project / "image/out.png").symlink_to("../secret.png")
        yield running


async def get_image(running: RunningServer, path: str, **more: str) -> HttpResponse:
    return await running.get(f"/pw={image_key(running)}/images/{path}", key=None, headers=more)


async def get_file(running: RunningServer, path: str, **more: str) -> HttpResponse:
    return await running.get(f"/pw={file_key(running)}/files/{path}", key=None, headers=more)


@pytest.mark.requirement("http:published")
async def test_whoever_has_the_address_sees_the_file(published: RunningServer) -> None:
    response = await get_image(published, "sub/cat%20%E7%8C%AB.png")
    assert (response.status, response.body, response.headers["Content-Type"]) == (200, PNG, "image/png")
    twice = await published.get(f"//pw={image_key(published)}/images/drawing.svg", key=None)
    assert twice.status == 200, "some plugins write two slashes"
    film = await get_file(published, "film.mp4")
    assert (film.status, len(film.body), film.headers["Content-Type"]) == (200, 256 * 4096, "video/mp4")


@pytest.mark.requirement("http:published")
async def test_a_browser_gets_types_it_cannot_misunderstand(published: RunningServer) -> None:
    response = await get_image(published, "drawing.svg")
    assert response.headers["Content-Type"] == "image/svg+xml"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    page = await get_file(published, "page.html")
    assert page.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    binary = await get_file(published, "data.bin")
    assert binary.headers["Content-Type"] == "application/octet-stream"
    assert binary.headers["Content-Disposition"] == "attachment; filename*=UTF-8''data.bin"
    assert (await get_image(published, "notes.txt")).status == 404, "the key of pictures opens pictures"


@pytest.mark.requirement("http:published")
async def test_a_film_can_be_watched_from_any_place(published: RunningServer) -> None:
    part = await get_file(published, "film.mp4", Range="bytes=255-257")
    assert (part.status, part.body) == (206, b"\xff\x00\x01")
    assert part.headers["Content-Range"] == f"bytes 255-257/{256 * 4096}"
    beyond = await get_file(published, "film.mp4", Range="bytes=99999999-")
    assert (beyond.status, beyond.headers["Content-Range"]) == (416, f"bytes */{256 * 4096}")
    whole = await get_file(published, "film.mp4", **{"Range": "bytes=0-1", "If-Range": '"other"'})
    assert whole.status == 200
    again = await get_file(published, "film.mp4", **{"If-None-Match": part.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    head = await published.request("HEAD", f"/pw={file_key(published)}/files/film.mp4", key=None)
    assert (head.status, head.body, head.headers["Content-Length"]) == (200, b"", str(256 * 4096))


@pytest.mark.requirement("http:published")
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-", (206, 0, 100)), ("bytes=10-19", (206, 10, 10)), ("bytes=-1", (206, 99, 1)),
        ("bytes=-1000", (206, 0, 100)), ("bytes=90-1000", (206, 90, 10)), ("bytes=100-", (416, 0, 0)),
        ("bytes=-0", (416, 0, 0)), ("", (200, 0, 100)), ("bytes=-", (200, 0, 100)), ("bytes=5-2", (200, 0, 100)),
        ("bytes=a-b", (200, 0, 100)), ("bytes=0-1,5-6", (200, 0, 100)), ("items=0-1", (200, 0, 100)),
        ("bytes=" + "9" * 5000 + "-", (200, 0, 100)), ("bytes=٣-", (200, 0, 100)),
    ],
)  # fmt: skip
def test_a_range_that_is_not_understood_is_the_whole(header: str, expected: tuple[int, int, int]) -> None:
    assert parse_range(header, 100) == expected


@pytest.mark.requirement("http:published:confined")
@pytest.mark.parametrize(
    "path",
    [
        "", "sub", "sub/", "missing.png", "../secret.png", "..%2fsecret.png", "%2e%2e/secret.png", "..%5csecret.png",
        "%252e%252e%252fsecret.png", "sub/..%2f..%2fsecret.png", "out.png", ".env", "..%00/secret.png",
        "drawing.svg%00.png", "/etc/passwd", "%2fetc%2fpasswd", "%c0%ae%c0%ae/secret.png", "....//secret.png",
    ],
)  # fmt: skip
async def test_no_path_leads_out_and_nothing_is_listed(published: RunningServer, path: str) -> None:
    raw = f"GET /pw={image_key(published)}/images/{path} HTTP/1.1\r\nHost: 127.0.0.1:{published.port}\r\n\r\n"
    status, head = await published.send_raw(raw.encode())
    assert status == 404
    assert b"location" not in head.lower()


@pytest.mark.requirement("http:published:confined")
@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")
async def test_curl_gets_no_file_beside_the_folder(published: RunningServer) -> None:
    for path in ("../secret.png", "sub/../../secret.png", "..%2f..%2fhome%2fkey"):
        url = f"{published.url}/pw={image_key(published)}/images/{path}"
        curl = await asyncio.create_subprocess_exec(
            "curl", "-s", "--path-as-is", "-w", "%{http_code}", url, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await curl.communicate()
        assert out.endswith(b"404")
        assert b"secret" not in out


@pytest.mark.requirement("http:published:confined")
async def test_it_is_for_reading_only(published: RunningServer) -> None:
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        answer = await published.request(method, f"/pw={image_key(published)}/images/drawing.svg", key=None)
        assert answer.status == 405
    assert (published.project / "image/drawing.svg").read_bytes() == DRAWING


@pytest.mark.requirement("http:published:keys")
async def test_a_wrong_key_is_as_good_as_no_file(published: RunningServer) -> None:
    missing = await get_image(published, "missing.png")
    for key in ("x", file_key(published), published.key, "%00", image_key(published) + "x"):
        wrong = await published.get(f"/pw={key}/images/drawing.svg", key=None)
        assert (wrong.status, wrong.body) == (404, missing.body)
    page = await published.get("/pw=x/images/drawing.svg", key=None, headers={"Accept": "text/html"})
    assert (page.status, page.body) == (404, missing.body)
    assert (await published.get(f"/pw={image_key(published)}/files/film.mp4", key=None)).status == 404


@pytest.mark.requirement("http:published:keys")
async def test_guesses_are_slowed_down_but_lock_nobody_out_of_the_server(tmp_path: Path, clock: FakeClock) -> None:
    async with run_server(tmp_path, ServerOptions(port=0, grace_s=2.0, ping_s=600.0, clock=clock)) as running:
        (running.project / "image").mkdir()
        (running.project / "image/a.png").write_bytes(PNG)
        for _ in range(MAX_PER_ADDRESS):
            assert (await running.get("/pw=guess/images/a.png", key=None)).status == 404
        slowed = await running.get("/pw=guess/images/a.png", key=None)
        assert (slowed.status, int(slowed.headers["Retry-After"])) == (429, 1)
        assert (await get_image(running, "a.png")).status == 200  # a right key is never locked out
        assert (await running.get("/v1/tools")).status == 200


@pytest.mark.requirement("http:published:keys")
async def test_the_keys_are_random_and_of_one_home(tmp_path: Path) -> None:
    async with run_server(tmp_path / "a") as one, run_server(tmp_path / "b") as other:
        keys = {image_key(one), file_key(one), image_key(other), file_key(other)}
        assert len(keys) == 4
        assert all(re.fullmatch(r"[\w-]{43}", key) for key in keys)
        before = image_key(one)
    async with run_server(tmp_path / "a") as again:
        assert image_key(again) == before
    assert (tmp_path / "a/home/publish-keys.json").stat().st_mode & 0o077 == 0


@pytest.mark.requirement("http:published", "http:published:keys")
async def test_the_link_of_a_plugin_opens_and_no_log_has_its_key(
    tmp_path: Path, add_plugin: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "toolyard.web")
    add_plugin("Maker", MAKES_A_PICTURE)
    async with run_server(tmp_path) as running:
        made = (await running.post("/v1/tools/Maker", {})).json
        assert made["status"] == "success", made
        link = made["text"].partition("see ")[2].split()[0]
        assert link.startswith(f"{running.url}/pw=")
        async with running.client.get(link) as view:
            assert (view.status, await view.read()) == (200, PNG)
        key = image_key(running)
        logs = await running.get("/v1/plugins/Maker/logs")
        call = (await running.get("/v1/calls")).json["data"][0]["id"]
        process = (await running.get(f"/v1/calls/{call}")).json["process"]
        assert running.yard.mask.log_text(f"GET {link}") == f"GET {link.replace(key, '[masked]')}"
    assert b"writes " in logs.body
    assert key.encode() not in logs.body
    assert "writes " in process["stderr"]
    assert key not in str(process)
    result = [str(record.__dict__) for record in caplog.records]
    assert any("/pw={key}/images/{path:path}" in one for one in result)
    assert not any(key in one for one in result)


@pytest.mark.requirement("http:published")
async def test_a_plugin_can_publish_from_its_own_folder(tmp_path: Path, add_plugin: Callable[..., Path]) -> None:
    add_plugin("Maker", MAKES_A_PICTURE)
    add_plugin("Other", "print('{}')")
    async with run_server(tmp_path) as running:
        for plugin in ("Maker", "Other"):
            folder = running.home / "plugin-data" / plugin
            (folder / "image").mkdir(parents=True)
            (folder / "image/own.png").write_bytes(PNG)
            (folder / "token.png").write_bytes(b"secret")
            (folder / "image/out.png").symlink_to("../token.png")
        assert (await get_image(running, "Maker/own.png")).body == PNG
        for path in ("Other/own.png", "Maker/token.png", "Maker/out.png", "Maker", "own.png"):
            assert (await get_image(running, path)).status == 404
