"""kill -9 at every crash point: what was acknowledged is there, what was cut off says so, and nothing runs twice."""

import ast
import zlib
from pathlib import Path

import pytest

from tests.crash.invariants import hold, orphans_die
from tests.crash.scene import ROOT, SOAK, Scene

ELSEWHERE = {
    "backup.before-rename": "backup and restore, in test_care",
    "restore.put-aside": "backup and restore, in test_care",
    "restore.before-removal": "backup and restore, in test_care",
    "restore.before-wait": "backup and restore, in test_care",
    "restore.put-in-place": "backup and restore, in test_care",
    "repair.before-replace": "a state that is repaired, in test_care",
    "plugin.before-removal": "plugins come and go, in test_care",
    "plugin.before-unpacked": "plugins come and go, in test_care",
    "key.before-link": "the keys of a server, in test_care",
    "secret-key.before-link": "a key that has encrypted nothing yet; its draft is in nobody's way",
    "tls.before-replace": "a self-signed certificate, which the next start makes again; its draft is in nobody's way",
    "audit.recorded": "the entry of a request that is over; approvals and rules commit theirs with themselves",
    "presence.before-replace": "where a server is, in test_care",
    "reads.before-replace": "a file of 2 MiB; a lost one only means that files are read again",
    "output.ignore-written": "the file that hides the folder from git, which the next call writes",
    "output.draft-written": "the whole of a long result, which is a convenience; its draft is in nobody's way",
    "chat-media.draft-written": "media for people to look at, which are made again; the sweep removes a draft",
    "media.draft-written": "media of a result that is not told yet; their draft is in nobody's way",
    "move.folder-made": "an empty folder is left of it; tests/workspace has the moves",
    "store.before-copy-kept": "a state of an older format, in test_migration",
    "postgres.before-begin": "PostgreSQL, in test_postgres_points",
    "postgres.before-commit": "PostgreSQL, in test_postgres_points",
    "postgres.after-commit": "PostgreSQL, in test_postgres_points",
}
AT_THE_START = ("transaction.recovered", "task.readopted")  # reached by the host after the one that died
ONE_IN = 12
ALWAYS = ("plugin.spawned:1", "task.ended:3", "callback.stored:2")
MANY = (4, 8, 15, 22, 30, 39, 49, 60, 72, 84)  # further hits of what is reached often


def points() -> list[str]:
    """Every crash point of the source."""
    sources = (file.read_text("utf-8") for file in (ROOT / "src/toolyard").rglob("*.py"))
    return sorted(
        str(node.args[0].value)
        for source in sources
        if "crashpoint(" in source  # only few are parsed, for the names are needed when tests are collected
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "crashpoint"
        if isinstance(node.args[0], ast.Constant)
    )


def sampled(cases: list[str]) -> list[str]:
    """All of them in a soak; else one of so many, the same ones each time, and those that once found something."""
    return [case for case in cases if SOAK or case in ALWAYS or zlib.crc32(case.encode()) % ONE_IN == 0]


def walked() -> list[str]:
    names = [name for name in points() if name not in ELSEWHERE and name not in AT_THE_START]
    twice = [f"{name}:{hit}" for name in names for hit in (1, 2) if (name, hit) != ("store.before-migrated", 2)]
    often = [f"store.{name}:{hit}" for name in ("before-begin", "before-commit", "after-commit") for hit in MANY]
    return [*twice, *often, "task.ended:3", "task.ended:4"]  # these two are cancelled


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "scene").lay_out()


@pytest.mark.requirement("crash:invariants")
async def test_a_host_that_is_not_killed_passes_every_point_twice_and_leaves_everything_in_order(scene: Scene) -> None:
    host = scene.run()
    assert host.code == 0, host.errors
    hits = host.of("points")[0]["hits"]
    rare = {name for name in points() if hits.get(name, 0) < 2} - {"store.before-migrated"}
    assert rare == {*ELSEWHERE, *AT_THE_START}
    await hold(scene, host)


@pytest.mark.requirement("r:R01", "r:R02", "crash:invariants", "p:P1", "p:P2", "p:P3", "p:P7", "p:P10")
@pytest.mark.parametrize("point", sampled(walked()))
async def test_after_kill_9_at_a_crash_point_the_invariants_hold(scene: Scene, point: str) -> None:
    host = scene.run(point)
    assert host.killed, (host.code, host.errors)
    await hold(scene, host)


@pytest.mark.requirement("r:R01", "r:R02", "r:R03b", "crash:invariants", "p:P3")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("task.spared:5", "task.readopted:1"),
        ("transaction.promised:2", "transaction.recovered:1"),
        ("schedule.ran:2", "store.before-commit:1"),
        ("journal.started:3", "store.after-commit:1"),
        ("approval.asked:1", "store.before-commit:2"),
        ("callback.before-stored:3", "task.ended:1"),
        ("callback.stored:3", "task.readopted:1"),
    ],
)
async def test_a_host_that_dies_while_it_clears_up_after_another_leaves_it_to_the_next(
    scene: Scene, first: str, second: str
) -> None:
    one = scene.run(first)
    assert one.killed, one.errors
    await orphans_die(scene, one)
    two = scene.run(second, "recover")
    assert two.killed, two.errors
    await hold(scene, one, two)
