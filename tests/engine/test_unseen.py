"""Calls that nobody was asked about run one at a time; those that wait for a person hold up nobody."""

import asyncio

import pytest

from toolyard.engine.unseen import Unseen

pytestmark = pytest.mark.requirement("approval:auto-safe")


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


async def test_a_call_is_judged_only_when_the_one_before_it_has_ended() -> None:
    unseen, judged = Unseen(), list[str]()

    async def judge() -> bool:
        judged.append("second")
        return True

    assert await unseen.admits("first", yes)
    second = asyncio.create_task(unseen.admits("second", judge))
    await asyncio.sleep(0)
    unseen.over("another")  # was never admitted
    await asyncio.sleep(0)
    assert judged == []
    unseen.over("first")
    assert await asyncio.wait_for(second, 60)
    assert judged == ["second"]


async def test_who_is_not_admitted_fails_or_leaves_holds_up_nobody() -> None:
    async def fails() -> bool:
        raise RuntimeError("it is a bug")

    unseen = Unseen()
    assert not await unseen.admits("first", no)
    with pytest.raises(RuntimeError):
        await unseen.admits("second", fails)
    assert await asyncio.wait_for(unseen.admits("third", yes), 60)
    waiting = asyncio.create_task(unseen.admits("fourth", yes))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    unseen.over("third")
    assert await asyncio.wait_for(unseen.admits("fifth", yes), 60)
