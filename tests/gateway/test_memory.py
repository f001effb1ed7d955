"""Memory of tool rounds: whose, for how long, how much, and when it comes back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeClock, bounded_work
from tests.gateway.test_rounds import native_round
from toolyard.gateway.turns import turn_memory as kept
from toolyard.gateway.turns.turn_memory import (
    DISTINCT,
    KEPT_S,
    MAX_ADDED,
    MAX_TURN,
    FinishedTurn,
    TurnMemory,
    last_question,
)
from toolyard.protocol.requests.scanner import format_request

ANSWER = "> ✓ LS: Listed 2 entries.\n\nThere are two files."
QUESTION = "What is here?"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(clock: FakeClock) -> TurnMemory:
    return TurnMemory(clock.monotonic, lambda text: text.replace("sk-secret", "[masked]"))


def turn(answer: str = ANSWER, rounds: Any = None, question: str = QUESTION, **more: Any) -> FinishedTurn:
    rounds = [native_round(path=".")] if rounds is None else rounds
    return FinishedTurn(question=question, answer=answer, rounds=rounds, last_words="There are two files.", **more)


def conversation(answer: str = ANSWER, question: str = QUESTION) -> list[Any]:
    return [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": question},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": "And now?"},
    ]


@pytest.mark.requirement("memory:rounds")
@pytest.mark.parametrize(
    "sent",
    [
        ANSWER,
        f"\n{ANSWER}  \n",
        ANSWER.replace("\n\n", "\r\n"),
        f"<think>\nHm.\n</think>\n{ANSWER}",
        [{"type": "text", "text": ANSWER}],
    ],
)
def test_the_rounds_and_the_models_own_words_take_the_place_of_the_answer(memory: TurnMemory, sent: Any) -> None:
    memory.remember("key:me", turn(model="p/m"))
    recalled = memory.recall("key:me", conversation(sent), model="p/m")
    call = {"id": "c1", "type": "function", "function": {"name": "LS", "arguments": '{"path": "."}'}}
    assert recalled.messages == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "I look.", "tool_calls": [call], "reasoning_content": "Hm."},
        {"role": "tool", "tool_call_id": "c1", "content": "2 files"},
        {"role": "assistant", "content": "There are two files."},
        {"role": "user", "content": "And now?"},
    ]
    assert recalled.calls == {("c1", "LS")}


@pytest.mark.requirement("memory:reasoning")
def test_another_model_gets_the_rounds_without_the_reasoning_of_the_first(memory: TurnMemory) -> None:
    memory.remember("key:me", turn(model="p/m"))
    _, _, asked, *_ = memory.recall("key:me", conversation(), model="p/other").messages
    assert isinstance(asked, dict)
    assert asked.keys() == {"role", "content", "tool_calls"}


@pytest.mark.requirement("memory:rounds")
def test_what_is_not_exactly_that_answer_of_that_key_is_left_alone(memory: TurnMemory) -> None:
    memory.remember("key:me", turn())
    others: list[tuple[str, Any]] = [
        ("key:you", conversation()),
        ("key:me", conversation(ANSWER + "!")),
        ("key:me", conversation("")),
        ("key:me", [{"role": "user", "content": ANSWER}, "odd", {"role": "assistant"}]),
    ]
    for caller, messages in others:
        assert memory.recall(caller, messages).messages is messages


@pytest.mark.requirement("memory:rounds")
def test_thinking_is_not_part_of_an_answer_because_clients_leave_it_out(memory: TurnMemory) -> None:
    seen = f"<think>What?</think>{ANSWER}<THINKING>Where?</THINKING>"
    rounds = [native_round(path=".")]
    words = "\n<think>Where?</think>\nThere are `<think></think>` tags."
    memory.remember("key:me", FinishedTurn(question=QUESTION, answer=seen, rounds=rounds, last_words=words))
    made: Any = memory.recall("key:me", conversation(ANSWER)).messages
    assert made[4]["content"] == "There are `<think></think>` tags."
    with bounded_work():
        memory.recall("key:me", conversation("<think>" * 300_000 + "</think" * 100_000))
        memory.remember("key:me", turn("<think>" * 300_000))


@pytest.mark.requirement("memory:rounds")
def test_a_short_answer_counts_only_behind_the_same_question(memory: TurnMemory) -> None:
    memory.remember("key:me", turn("Done."))
    memory.remember("key:me", turn(long := "word " * (DISTINCT // 5 + 1)))
    other = conversation("Done.", "Delete it.")
    assert memory.recall("key:me", other).messages is other
    assert len(memory.recall("key:me", conversation("Done.")).messages) == 6
    assert len(memory.recall("key:me", conversation(long, "changed by the client")).messages) == 6


@pytest.mark.requirement("memory:rounds")
def test_two_turns_with_the_same_words_are_told_apart_by_their_questions(memory: TurnMemory) -> None:
    for number in (1, 2):
        memory.remember("key:me", turn("Done.", [native_round(f"c{number}")], f"Do {number}."))
    messages = [*conversation("Done.", "Do 1."), *conversation("Done.", "Do 2.")]
    made = memory.recall("key:me", messages).messages
    assert [m["tool_call_id"] for m in made if isinstance(m, dict) and m.get("role") == "tool"] == ["c1", "c2"]
    again = [*conversation("Done.", "Do 2."), *conversation("Done.", "Do 2.")]
    made = memory.recall("key:me", again).messages
    assert [m["tool_call_id"] for m in made if isinstance(m, dict) and m.get("role") == "tool"] == ["c2"]  # the newest


@pytest.mark.requirement("memory:rounds")
def test_a_client_that_carries_the_calls_itself_gets_nothing_added(memory: TurnMemory) -> None:
    memory.remember("key:me", turn())
    carried = [*conversation()[:2], *native_round("c1", path="."), *conversation()[2:]]
    assert memory.recall("key:me", carried).messages is carried


@pytest.mark.requirement("memory:rounds")
def test_a_call_of_the_clients_own_tool_at_the_end_of_the_turn_stays_with_its_message(memory: TurnMemory) -> None:
    memory.remember("key:me", turn())
    theirs = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]
    messages = conversation()
    messages[2]["tool_calls"] = theirs
    made = memory.recall("key:me", messages).messages
    assert made[4] == {"role": "assistant", "content": "There are two files.", "tool_calls": theirs}


@pytest.mark.requirement("memory:rounds")
def test_a_turn_without_rounds_without_text_or_with_too_much_of_it_is_not_kept(memory: TurnMemory) -> None:
    endless = FinishedTurn(question="", answer="x", rounds=[native_round()], last_words="x" * (MAX_TURN + 1))
    for one in (
        turn(rounds=[]),
        turn(" \n"),
        turn("<think>Hm.</think>"),
        endless,
        turn(rounds=[[{"role": "assistant", "content": "\ud800"}]]),
    ):
        memory.remember("key:me", one)
    assert (len(memory), memory.size) == (0, 0)


@pytest.mark.requirement("memory:rounds")
def test_the_number_of_a_request_block_is_that_of_the_request_at_hand(memory: TurnMemory) -> None:
    block = format_request("LS", {"path": "."}, nonce="1111")
    memory.remember("key:me", turn(rounds=[[{"role": "assistant", "content": block}]], nonce="1111"))
    for nonce in ("2222", None):
        made: Any = memory.recall("key:me", conversation(), nonce).messages
        assert made[2]["content"] == format_request("LS", {"path": "."}, nonce=nonce)


@pytest.mark.requirement("memory:bounded", "s:S-91")
def test_secrets_are_masked_before_anything_is_kept(memory: TurnMemory) -> None:
    memory.remember("key:me", turn(rounds=[native_round(result="the key is sk-secret")]))
    assert "the key is [masked]" in json.dumps(memory.recall("key:me", conversation()).messages)


@pytest.mark.requirement("memory:bounded")
def test_a_day_after_its_last_use_a_turn_is_forgotten(memory: TurnMemory, clock: FakeClock) -> None:
    memory.remember("key:me", turn())
    for _ in range(3):
        clock.advance(KEPT_S - 1)
        assert len(memory.recall("key:me", conversation()).messages) == 6
    clock.advance(KEPT_S)
    messages = conversation()
    assert memory.recall("key:me", messages).messages is messages
    assert (len(memory), memory.size) == (0, 0)


@pytest.mark.requirement("memory:bounded")
def test_those_not_used_for_longest_go_first(
    memory: TurnMemory, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MAX_TURNS", 3)
    for number in range(3):
        memory.remember("key:me", turn(f"Answer {number}."))
        clock.advance(1)
    memory.recall("key:me", conversation("Answer 0."))
    memory.remember("key:me", turn("Answer 3."))
    left = [n for n in range(4) if len(memory.recall("key:me", conversation(f"Answer {n}.")).messages) == 6]
    assert left == [0, 2, 3]
    monkeypatch.setattr(kept, "MAX_TOTAL", memory.size - 1)
    memory.remember("key:me", turn("Answer 3."))
    assert len(memory) == 2


@pytest.mark.requirement("memory:bounded")
def test_a_request_grows_by_a_bound_and_the_newest_answers_come_first(memory: TurnMemory) -> None:
    messages: list[Any] = []
    for number in range(10):
        long = [native_round(f"c{number}", "z" * (MAX_TURN - 1000))]
        memory.remember("key:me", turn(f"Answer {number}.", long))
        messages += conversation(f"Answer {number}.")
    made = memory.recall("key:me", messages)
    assert len(json.dumps(made.messages)) - len(json.dumps(messages)) <= MAX_ADDED
    assert made.calls == {(f"c{number}", "LS") for number in range(2, 10)}


@pytest.mark.requirement("memory:bounded")
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(0, 30_000)), max_size=30))
def test_its_size_is_that_of_what_it_holds(turns: list[tuple[str, str, int]]) -> None:
    memory = TurnMemory(FakeClock().monotonic, str)
    for caller, answer, size in turns:
        memory.remember(caller, turn(answer, [native_round(result="r" * size)]))
    assert memory.size == sum(len(one.content) for one in memory._turns.values())
    assert len(memory) == len({(caller, answer) for caller, answer, _ in turns})


@pytest.mark.requirement("memory:rounds")
def test_the_last_question_is_the_persons_last_message() -> None:
    parts = [{"type": "text", "text": "B"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    messages: Any = [{"role": "user", "content": "A"}, {"role": "user", "content": parts}, {"role": "assistant"}]
    assert (last_question(messages), last_question([])) == ("B", "")
