"""Clients that nobody here wrote, with default settings, and a provider that fails after a tool has run."""

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.clients.harness import ANSWER, CLIENTS, FOREVER, Case, Client, Toolyard, serving_tally, starting_client

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not SOAK, reason="installs seven clients from their registries: only in soak"),
]

FAULTS = ("429", "500", "503", "closed", "cut")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Toolyard]:
    async with serving_tally(tmp_path_factory.mktemp("matrix")) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CLIENTS)
async def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    async with starting_client(request.param, tmp_path_factory.mktemp(request.param) / "stderr") as one:
        yield one


def make_case(server: Toolyard, request: pytest.FixtureRequest, fault: str, times: int, *, is_streamed: bool) -> Case:
    case = Case(f"case {request.node.callspec.id}", fault, times, is_streamed)
    server.faults.cases[case.name] = case
    return case


@pytest.mark.requirement("clients:matrix")
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_provider_that_recovers_costs_no_second_effect_and_the_client_gets_its_answer(
    server: Toolyard, client: Client, request: pytest.FixtureRequest, fault: str, times: int, is_streamed: bool
) -> None:
    case, before = make_case(server, request, fault, times, is_streamed=is_streamed), await server.chat_statuses()
    seen = await client.ask(server, case)
    assert "error" not in seen, seen
    assert seen["text"].strip().endswith(ANSWER)
    assert server.count_effects(case) == 1
    assert (server.faults.rounds[case.name, 1], server.faults.rounds[case.name, 2]) == (1, times + 1)
    assert (await server.chat_statuses())[len(before) :] == [200]


@pytest.mark.requirement("clients:matrix")
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_provider_that_fails_for_good_is_told_once_and_asking_again_runs_no_tool(
    server: Toolyard, client: Client, request: pytest.FixtureRequest, fault: str, is_streamed: bool
) -> None:
    case, before = make_case(server, request, fault, FOREVER, is_streamed=is_streamed), await server.chat_statuses()
    seen = await client.ask(server, case)
    assert "error" in seen, seen
    assert "Tools have already run in this turn" in seen["message"]
    assert (await server.chat_statuses())[len(before) :] == [200 if is_streamed else 400], "it was sent once"
    assert "Tools have already run in this turn" in (await client.ask(server, case))["message"]
    assert server.count_effects(case) == 1
    assert server.faults.rounds[case.name, 1] == 1
