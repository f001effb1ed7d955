"""The automaton of a plugin's child: each event leads from each state to another one, or is refused."""

from collections import deque
from itertools import product

import pytest

from toolyard.plugins.process.child import TRANSITIONS, ChildEvent, ChildLifecycle, ChildState

RULES = """
state      RECEIPT   ANSWERED  EXITED    OVERFLOWED  MAY_CONTINUE  MUST_END   STOP      RELEASE
RUNNING    WORKING   ANSWERED  DRAINING  ENDED       -             -          STOPPING  RELEASED
WORKING    -         -         DRAINING  -           -             -          STOPPING  RELEASED
ANSWERED   -         -         -         -           DETACHED      LINGERING  STOPPING  -
DRAINING   DRAINING  -         -         ENDED       DETACHED      ENDED      STOPPING  RELEASED
DETACHED   DETACHED  -         -         -           -             -          STOPPING  RELEASED
LINGERING  -         -         -         -           -             -          -         -
STOPPING   -         -         STOPPING  -           STOPPING      ENDED      STOPPING  STOPPING
RELEASED   -         -         -         -           -             -          -         -
ENDED      ENDED     -         -         -           -             -          ENDED     ENDED
"""
EVENTS, *ROWS = (line.split()[1:] for line in RULES.strip().splitlines())
STATES = [line.split()[0] for line in RULES.strip().splitlines()[1:]]
EXPECTED = {
    (ChildState[state], ChildEvent[event]): None if after == "-" else ChildState[after]
    for state, row in zip(STATES, ROWS, strict=True)
    for event, after in zip(EVENTS, row, strict=True)
}


def lead_to(state: ChildState) -> ChildLifecycle:
    """Return a lifecycle in this state, brought there by the fewest events."""
    pending: deque[tuple[ChildState, list[ChildEvent]]] = deque([(ChildState.RUNNING, [])])
    seen = {ChildState.RUNNING}
    while pending:
        at, events = pending.popleft()
        if at is state:
            lifecycle = ChildLifecycle()
            for event in events:
                lifecycle.handle(event)
            return lifecycle
        for event, after in TRANSITIONS[at].items():
            if after not in seen:
                seen.add(after)
                pending.append((after, [*events, event]))
    raise AssertionError(f"{state} cannot be reached")


@pytest.mark.requirement("plugin:lifecycle")
@pytest.mark.parametrize(("state", "event"), [*product(ChildState, ChildEvent)], ids=lambda one: one.name)
def test_each_event_leads_from_each_state_to_another_or_is_refused(state: ChildState, event: ChildEvent) -> None:
    lifecycle, after = lead_to(state), EXPECTED[state, event]
    assert lifecycle.state is state
    if after is None:
        with pytest.raises(RuntimeError, match=f"{state.name} cannot handle {event.name}"):
            lifecycle.handle(event)
        assert lifecycle.state is state
    else:
        assert lifecycle.handle(event) is after
        assert lifecycle.state is after


@pytest.mark.requirement("plugin:lifecycle")
@pytest.mark.parametrize(
    ("events", "end"),
    [
        ("EXITED MUST_END", "ENDED"),
        ("EXITED MAY_CONTINUE", "DETACHED"),
        ("EXITED OVERFLOWED", "ENDED"),
        ("OVERFLOWED", "ENDED"),
        ("ANSWERED MUST_END", "LINGERING"),
        ("ANSWERED MAY_CONTINUE", "DETACHED"),
        ("STOP", "STOPPING"),
        ("EXITED STOP", "STOPPING"),
        ("RECEIPT EXITED MUST_END STOP", "ENDED"),
        ("EXITED RECEIPT MUST_END", "ENDED"),
        ("EXITED MUST_END RECEIPT", "ENDED"),
        ("RECEIPT STOP STOP EXITED MUST_END", "ENDED"),
        ("RECEIPT EXITED MAY_CONTINUE STOP", "STOPPING"),
        ("RECEIPT RELEASE", "RELEASED"),
    ],
)
def test_the_lives_of_children_end_where_they_should(events: str, end: str) -> None:
    lifecycle = ChildLifecycle()
    for event in events.split():
        lifecycle.handle(ChildEvent[event])
    assert lifecycle.state is ChildState[end]
