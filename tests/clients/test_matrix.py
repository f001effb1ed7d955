"""Clients that nobody here wrote, with default settings, in each protocol: what they get, and what happens once."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import pytest
import pytest_asyncio

from tests.clients.driven import CLIENTS, RECALLED, WAYS, Client, starting_client
from tests.clients.harness import COUNTED, Toolyard, serving_tally
from tests.clients.model import ANSWER, FOREVER, LAST, LOST, SIGNATURE, Case
from tests.waiting import wait_for_value

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not SOAK, reason="installs many clients from their registries: only in soak"),
]

FAULTS = ("429", "500", "503", "closed", "cut")
FAULTS_OF_OTHERS = ("500", "cut")  # the rest is the same code, whatever the client speaks
TOLD = "Tools have already run in this turn"
REFUSED = "Not this week."


def parametrize(ways: Iterable[tuple[str, bool]]) -> pytest.MarkDecorator:
    """Run a test with each client, plain or streamed; a client is started once for all its tests."""
    made = [pytest.param(*way, id=f"{way[0]}-{'streamed' if way[1] else 'whole'}") for way in ways]
    return pytest.mark.parametrize(("client", "is_streamed"), made, indirect=["client"], scope="module")


every_client = parametrize(WAYS)
every_client_that_decides = parametrize(one for one in WAYS if CLIENTS[one[0]].decides)
every_client_with_tools = parametrize(one for one in WAYS if CLIENTS[one[0]].own_call)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Toolyard]:
    async with serving_tally(tmp_path_factory.mktemp("matrix")) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asking(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Toolyard]:
    """A server that asks its owner before every call."""
    async with serving_tally(tmp_path_factory.mktemp("asking"), approval_mode="ask") as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def natives(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Toolyard]]:
    """Servers whose provider speaks Responses and Messages."""
    async with (
        serving_tally(tmp_path_factory.mktemp("responses"), protocol="responses") as responses,
        serving_tally(tmp_path_factory.mktemp("messages"), protocol="messages") as messages,
    ):
        yield {"responses": responses, "messages": messages}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    async with starting_client(request.param, tmp_path_factory.mktemp(request.param) / "stderr") as one:
        yield one


def make_case(server: Toolyard, request: pytest.FixtureRequest, *, is_streamed: bool, **more: Any) -> Case:
    name = f"[{request.function.__name__} {request.node.callspec.id} {more.get('fault', '')}]"
    case = server.model.cases[name] = Case(name, is_streamed, **more)
    return case


def faults_of(client: Client) -> Sequence[str]:
    return FAULTS if client.about.protocol == "chat" else FAULTS_OF_OTHERS


@pytest.mark.requirement("clients:matrix")
@every_client
async def test_a_chat_without_a_call_is_the_answer_and_nothing_else(
    server: Toolyard, client: Client, request: pytest.FixtureRequest, is_streamed: bool
) -> None:
    case = make_case(server, request, is_streamed=is_streamed, has_tally=False)
    seen = await client.ask(server, case)
    assert seen.get("text", "").strip() == ANSWER, seen
    assert "Tally" in server.model.offered(case)
    assert server.count_effects(case) == 0


@pytest.mark.requirement("clients:matrix")
@every_client
@pytest.mark.parametrize("times", [0, 1, 2], ids=["never", "once", "twice"])
async def test_a_provider_that_recovers_costs_no_second_effect_and_the_client_gets_its_answer(
    server: Toolyard, client: Client, request: pytest.FixtureRequest, times: int, is_streamed: bool
) -> None:
    for fault in faults_of(client)[: None if times else 1]:
        before = await server.statuses(client.about.path)
        case = make_case(server, request, is_streamed=is_streamed, fault=fault, times=times)
        seen = await client.ask(server, case)
        assert "error" not in seen, (fault, seen)
        assert seen["text"].strip().endswith(ANSWER)
        assert server.count_effects(case) == 1
        assert (server.model.rounds[case.name, 1], server.model.rounds[case.name, LAST]) == (1, times + 1)
        assert (await server.statuses(client.about.path))[len(before) :] == [client.about.status]


@pytest.mark.requirement("clients:matrix")
@every_client
async def test_a_provider_that_fails_for_good_is_told_once_and_asking_again_runs_no_tool(
    server: Toolyard, client: Client, request: pytest.FixtureRequest, is_streamed: bool
) -> None:
    for fault in faults_of(client):
        before = await server.statuses(client.about.path)
        case = make_case(server, request, is_streamed=is_streamed, fault=fault, times=FOREVER)
        seen = await client.ask(server, case)
        assert TOLD in seen.get("message", ""), (fault, seen)
        if not client.about.program:  # those send it again by themselves, and begin a conversation each time
            statuses = (await server.statuses(client.about.path))[len(before) :]
            assert statuses == [200 if is_streamed else 400], "it was sent once"
            assert TOLD in (await client.ask(server, case))["message"]
        assert server.count_effects(case) == 1
        assert server.model.rounds[case.name, 1] == 1


@pytest.mark.requirement("clients:matrix")
@every_client
async def test_a_connection_that_breaks_after_a_tool_has_run_causes_no_second_effect(
    server: Toolyard, client: Client, request: pytest.FixtureRequest, is_streamed: bool
) -> None:
    """The client may tell its user, or send the request again by itself."""
    case = make_case(server, request, is_streamed=is_streamed, fault=LOST, times=1)
    relay = server.model.relay
    before = relay.cuts
    seen = await client.ask(server, case, url=f"http://{relay.host}")
    assert relay.cuts == before + 1, seen
    again = seen if "text" in seen and seen["text"].strip().endswith(ANSWER) else await client.ask(server, case)
    assert again.get("text", "").strip().endswith(ANSWER), (seen, again)
    assert server.count_effects(case) == 1
    assert server.model.rounds[case.name, 1] == 1


@pytest.mark.requirement("clients:waits")
@every_client
@pytest.mark.parametrize("answer", ["allow", "deny"])
async def test_a_call_waits_for_the_owner_while_the_client_waits(
    asking: Toolyard, client: Client, request: pytest.FixtureRequest, answer: str, is_streamed: bool
) -> None:
    case = make_case(asking, request, is_streamed=is_streamed)
    asked = asyncio.create_task(client.ask(asking, case))
    (waiting,) = await wait_for_value(asking.waiting)
    assert asking.count_effects(case) == 0
    body = {"reason": REFUSED} if answer == "deny" else {}
    await asking.request("POST", f"/v1/approvals/{waiting['id']}/{answer}", body)
    seen = await asked
    assert seen.get("text", "").strip().endswith(ANSWER), seen
    assert asking.count_effects(case) == (1 if answer == "allow" else 0)
    assert asking.model.rounds[case.name, 1] == asking.model.rounds[case.name, LAST] == 1
    assert (COUNTED if answer == "allow" else REFUSED) in asking.model.results[case.name][0]


@pytest.mark.requirement("clients:decide")
@every_client_that_decides
@pytest.mark.parametrize("is_allowed", [True, False], ids=["allow", "deny"])
async def test_a_client_that_lists_the_server_is_asked_and_decides(
    asking: Toolyard, client: Client, request: pytest.FixtureRequest, is_allowed: bool, is_streamed: bool
) -> None:
    case = make_case(asking, request, is_streamed=is_streamed, is_allowed=is_allowed)
    seen = await client.ask(asking, case)
    assert seen.get("text", "").strip().endswith(ANSWER), seen
    assert asking.count_effects(case) == is_allowed
    assert asking.model.rounds[case.name, 1] == asking.model.rounds[case.name, LAST] == 1
    assert (COUNTED if is_allowed else "was refused") in asking.model.results[case.name][0]


@pytest.mark.requirement("clients:own-tools")
@every_client_with_tools
async def test_a_tool_of_the_client_works_beside_one_of_the_server_in_one_answer(
    server: Toolyard, client: Client, request: pytest.FixtureRequest, is_streamed: bool
) -> None:
    await call_both(server, client, make_case(server, request, is_streamed=is_streamed, own_call=client.about.own_call))


@pytest.mark.requirement("clients:own-tools")
@every_client_with_tools
async def test_both_tools_work_and_reasoning_is_kept_with_a_provider_of_the_protocol_of_the_client(
    natives: dict[str, Toolyard], client: Client, request: pytest.FixtureRequest, is_streamed: bool
) -> None:
    own = natives[client.about.protocol]
    case = make_case(own, request, is_streamed=is_streamed, own_call=client.about.own_call, reasoning="I count first.")
    await call_both(own, client, case)
    assert json.dumps(own.model.bodies[case.name]).count(SIGNATURE) == client.about.kept_reasoning


async def call_both(server: Toolyard, client: Client, case: Case) -> None:
    seen = await client.ask(server, case)
    assert seen.get("text", "").strip().endswith(ANSWER), seen
    assert case.own_call is not None
    assert {"Tally", case.own_call[0]} <= set(server.model.offered(case))
    counted, recalled = server.model.results[case.name]
    assert COUNTED in counted
    assert RECALLED in recalled
    assert server.count_effects(case) == 1
    assert [server.model.rounds[case.name, number] for number in (1, 2, LAST)] == [1, 1, 1]
