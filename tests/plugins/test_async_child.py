"""Children that give a receipt and live on."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest

from tests.plugins.children import Keeper, bytes_written, catch_failure, is_gone, keeper
from tests.waiting import wait_until
from toolyard.plugins.long_work.task_child import AsyncChild
from toolyard.plugins.process.child_report import require_answer
from toolyard.protocol.envelope import Reason
from toolyard.protocol.manifests.manifest import Limits

BOUND_S = 60


@pytest.fixture
async def zoo() -> AsyncIterator[Keeper]:
    async with keeper() as opened:
        yield opened


async def _living(
    zoo: Keeper, program: str, *arguments: str, detached: bool = False, stdout: int = 2**20
) -> AsyncChild:
    limits = Limits(stdout_bytes=stdout)
    child = await zoo.spawn(program, *arguments, limits=limits)
    return AsyncChild(child, b"{}", children=zoo.children, limits=limits, detached=detached, drain_s=0.1)


@pytest.mark.requirement("plugin:stdout", "r:R22")
async def test_the_receipt_comes_while_the_child_goes_on_talking(zoo: Keeper) -> None:
    child = await _living(zoo, "receipt_then_works.py")
    receipt = await asyncio.wait_for(child.wait_receipt(), BOUND_S)
    assert require_answer("Works", receipt)["result"] == "see {{VCP_ASYNC_RESULT::X::1}} later"
    assert (receipt.exit_code, receipt.signal) == (None, None)
    assert zoo.list_alive() == [child.pid]
    await child.terminate(0.2)
    assert await asyncio.wait_for(child.wait(), BOUND_S) == -15
    assert await zoo.wait_all_gone()


@pytest.mark.requirement("r:R22")
async def test_of_two_objects_the_first_is_the_receipt(zoo: Keeper) -> None:
    child = await _living(zoo, "two_answers.py")
    assert require_answer("Twice", await asyncio.wait_for(child.wait_receipt(), BOUND_S))["result"] == "first"
    assert await asyncio.wait_for(child.wait(), BOUND_S) == 0


@pytest.mark.requirement("r:R25")
async def test_a_child_that_dies_after_its_receipt_tells_how(zoo: Keeper) -> None:
    child = await _living(zoo, "receipt_then_dies.py")
    assert require_answer("Dies", await asyncio.wait_for(child.wait_receipt(), BOUND_S))["result"] == "started"
    assert await asyncio.wait_for(child.wait(), BOUND_S) == -9


@pytest.mark.requirement("r:R26", "p:P4")
async def test_a_child_that_sends_no_receipt_is_killed_when_the_wait_is_given_up(zoo: Keeper) -> None:
    child = await _living(zoo, "sleeps_forever.py")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(child.wait_receipt(), 0.2)
    assert await zoo.wait_all_gone()


@pytest.mark.requirement("r:R27", "p:P4")
async def test_a_child_past_its_total_limit_is_killed_with_all_it_started(zoo: Keeper) -> None:
    child = await _living(zoo, "receipt_then_detaches.py", detached=True)
    await asyncio.wait_for(child.wait_receipt(), BOUND_S)
    assert await asyncio.wait_for(child.wait(), BOUND_S) == 0
    await zoo.run("scatters.py")
    await wait_until(lambda: len(zoo.list_alive()) <= 1)  # there was a sweep
    assert len(zoo.list_alive()) == 1  # it did not take what the living call left behind
    await child.terminate(0.1)
    assert await zoo.wait_all_gone()


@pytest.mark.requirement("r:R25", "p:P4")
async def test_what_a_child_leaves_behind_ends_with_it_unless_it_is_detached(zoo: Keeper) -> None:
    child = await _living(zoo, "receipt_then_detaches.py")
    await asyncio.wait_for(child.wait_receipt(), BOUND_S)
    assert await asyncio.wait_for(child.wait(), BOUND_S) == 0
    assert await zoo.wait_all_gone()


@pytest.mark.requirement("r:R24", "r:R19")
async def test_an_exit_without_a_receipt_is_told_as_any_other(zoo: Keeper) -> None:
    child = await _living(zoo, "silent.py", "0")
    failure = catch_failure(require_answer, "Silent", await asyncio.wait_for(child.wait_receipt(), BOUND_S))
    assert failure.reason is Reason.NO_OUTPUT


@pytest.mark.requirement("r:R14", "p:P4")
async def test_a_flood_before_the_receipt_ends_the_child(zoo: Keeper) -> None:
    child = await _living(zoo, "floods_stdout.py", stdout=100_000)
    failure = catch_failure(require_answer, "Flood", await asyncio.wait_for(child.wait_receipt(), BOUND_S))
    assert failure.reason is Reason.OUTPUT_TOO_LARGE
    assert await zoo.wait_all_gone()


@pytest.mark.requirement("r:R02")
async def test_a_spared_child_outlives_the_end_of_its_host_and_can_go_on_printing() -> None:
    async with keeper() as zoo:
        child = await _living(zoo, "receipt_then_works.py")
        await asyncio.wait_for(child.wait_receipt(), BOUND_S)
        child.spare()
        guardian = zoo.children.guardian_pid
        await child.release()
    assert zoo.list_alive() == [child.pid]
    before = bytes_written(child.pid)
    await wait_until(lambda: bytes_written(child.pid) > before + 300_000)  # far more than a pipe holds: somebody reads
    os.kill(child.pid, signal.SIGKILL)
    await wait_until(lambda: is_gone(child.pid))
    assert guardian is not None
    await wait_until(lambda: is_gone(guardian))  # with nobody left to read from it ends by itself
