"""Links to media: whoever has one may look, at that alone, for seven days."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.fakes import FakeClock
from tests.waiting import wait_until
from tests.web.conftest import RunningServer, run_server
from tests.web.test_settings_reloader import save_by_replacing
from toolyard.protocol.content import Media
from toolyard.storage.media_store import KEPT, MAX_BYTES
from toolyard.web.server.lifecycle import ServerOptions

pytestmark = pytest.mark.requirement("media:route")
PNG = Media("image/png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 100, "a.png")
LINK = re.compile(r"/media/[0-9a-f]{64}\.[a-z0-9]+\?expires=\d+&signature=[0-9a-f]{64}")


async def make_path(running: RunningServer, media: Media = PNG) -> str:
    """The path and query of a new link."""
    link = urlsplit(await running.server.links.publish(media))
    return f"{link.path}?{link.query}"


async def test_whoever_has_the_link_sees_the_picture_without_a_key_on_a_page_of_any_origin(
    running_server: RunningServer,
) -> None:
    path = await make_path(running_server)
    assert LINK.fullmatch(path)
    answer = await running_server.get(path, key=None, headers={"Origin": "https://elsewhere.example"})
    assert (answer.status, answer.body, answer.headers["Content-Type"]) == (200, PNG.data, "image/png")
    assert answer.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Disposition"] == "inline"
    assert answer.headers["Cache-Control"] == "private, max-age=604800, immutable"
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    head = await running_server.request("HEAD", path, key=None)
    assert (head.status, head.body, head.headers["Content-Length"]) == (200, b"", str(len(PNG.data)))


@pytest.mark.parametrize(
    ("asked", "status", "body"),
    [
        ("bytes=0-9", 206, PNG.data[:10]),
        ("bytes=100-", 206, PNG.data[100:]),
        ("bytes=-5", 206, PNG.data[-5:]),
        (f"bytes={len(PNG.data)}-", 416, None),
        ("nonsense", 400, None),
    ],
)
async def test_a_player_gets_the_range_that_it_asks_for(
    running_server: RunningServer, asked: str, status: int, body: bytes | None
) -> None:
    path = await make_path(running_server)
    answer = await running_server.get(path, key=None, headers={"Range": asked})
    assert answer.status == status
    if body is not None:
        assert answer.body == body
        assert answer.headers["Content-Range"].startswith("bytes ")


@pytest.mark.requirement("s:S-40")
async def test_a_link_opens_nothing_but_what_it_was_made_for(running_server: RunningServer) -> None:
    path, other = await make_path(running_server), await make_path(running_server, Media("image/png", b"other"))
    expires, signature = re.findall(r"expires=(\d+)&signature=(\w+)", path)[0]
    forged = [
        path.partition("?")[0],
        path.replace(f"expires={expires}", f"expires={int(expires) + 1}"),
        path.replace(signature, signature[::-1]),
        path.replace(signature, ""),
        path.replace(expires, "9" * 400),
        path.replace(expires, "٣"),
        path.partition("?")[0] + "?" + other.partition("?")[2],
        path.replace("/media/", "/media/%2e%2e%2f"),
        f"/media/.key?expires={expires}&signature={signature}",
        f"/media/?expires={expires}&signature={signature}",
    ]
    for one in forged:
        answer = await running_server.get(one, key=None)
        assert (one, answer.status) in {(one, 403), (one, 404)}
        assert PNG.data not in answer.body
    assert "signature" in (await running_server.get(forged[1], key=None)).json["error"]["message"]
    for method in ("POST", "PUT", "DELETE"):
        assert (await running_server.request(method, path)).status == 405
    assert (await running_server.get("/media", key=None)).status == 401


async def test_a_link_of_another_home_opens_nothing_and_asking_makes_no_files(tmp_path: Path) -> None:
    async with run_server(tmp_path / "one") as one, run_server(tmp_path / "two") as two:
        path = await make_path(one)
        assert (await two.get(path, key=None)).status == 403
        assert not (two.home / "media").exists()
        await make_path(two)
        assert (await two.get(path, key=None)).status == 403


async def test_after_seven_days_a_link_says_so_and_the_sweep_takes_the_file(tmp_path: Path) -> None:
    clock = FakeClock()
    async with run_server(tmp_path, ServerOptions(port=0, grace_s=2.0, clock=clock)) as running:
        path = await make_path(running)
        clock.advance(KEPT.total_seconds() - 1)
        await running.yard.state.sweep()
        assert (await running.get(path, key=None)).status == 200
        clock.advance(2)
        gone = await running.get(path, key=None)
        assert (gone.status, gone.json["error"]["code"]) == (410, "gone")
        assert "7 days" in gone.json["error"]["message"]
        await running.yard.state.sweep()
        assert [file.name for file in (running.home / "media").iterdir()] == [".key"]


async def test_a_link_whose_file_had_to_make_room_is_gone_too(running_server: RunningServer) -> None:
    path = await make_path(running_server)
    (running_server.home / path.removeprefix("/").partition("?")[0]).unlink()
    assert (await running_server.get(path, key=None)).status == 410


async def test_what_is_no_media_or_too_large_or_cannot_be_stored_gets_no_link(
    running_server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    links = running_server.server.links
    for media in (Media("application/pdf", b"%PDF-"), Media("image/svg+xml", b"<svg/>"), Media("text/html", b"<p>")):
        assert await links.publish(media) == ""
    assert await links.publish(Media("image/png", bytes(MAX_BYTES + 1))) == ""
    (running_server.home / "media").write_text("in the way")
    assert await links.publish(PNG) == ""
    assert "cannot be kept" in caplog.text


async def test_no_log_has_a_signature(running_server: RunningServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "toolyard")
    path = await make_path(running_server)
    await running_server.get(path, key=None)

    def own() -> str:
        return repr([record.__dict__ for record in caplog.records if record.name.startswith("toolyard")])

    await wait_until(lambda: path.partition("?")[0] in own())
    assert path.partition("signature=")[2] not in own()


@pytest.mark.requirement("config:public-url", "s:S-42")
async def test_the_public_address_is_in_links_and_its_host_is_let_in_as_soon_as_it_is_set(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        assert (await running.server.links.publish(PNG)).startswith(f"{running.url}/media/")
        named = {"Host": "yard.example.org"}
        assert (await running.get("/healthz", headers=named)).status == 421
        save_by_replacing(running.home / "config.toml", 'public_url = "https://yard.example.org/"\n')
        await wait_until(lambda: running.server.links.public_url == "https://yard.example.org")
        link = urlsplit(await running.server.links.publish(PNG))
        assert f"{link.scheme}://{link.netloc}" == "https://yard.example.org"
        assert (await running.get(f"{link.path}?{link.query}", key=None, headers=named)).status == 200
        assert (await running.get("/healthz", headers={"Host": "evil.example.org"})).status == 421
