"""The automaton of a plugin's child: its states, the events that happen to it, and every allowed transition.

A child is RUNNING from the moment it gets its input. ``child.run_child`` (a call that waits for the answer) and
``async_child.AsyncChild`` (a call that waits for a receipt only) report events; what they do to the process and its
pipes follows from the state that they reach:

    RUNNING    its input is written and its output collected; nothing is decided
    WORKING    it has printed its receipt and works on its task; its stdout is read and discarded
    ANSWERED   it has answered but not exited: whether it may continue is about to be decided
    DRAINING   it has exited: what is left in the pipes is read, processes that it started may still hold them
    DETACHED   it has answered, or exited, and what continues of it may do so; its stdout is read and discarded
    LINGERING  it has answered and has a moment to exit by itself; then ``Children`` stops it
    STOPPING   it gets SIGTERM, then SIGKILL, with everything it started
    RELEASED   the host ends and the child outlives it; its guardian reads the pipes
    ENDED      everything of it is killed, and the pipes are closed

A synchronous call, which waits for the answer:

    RUNNING ── EXITED ──────▶ DRAINING ── MUST_END ──────▶ ENDED
       │                         └─────── MAY_CONTINUE ──▶ DETACHED
       ├────── ANSWERED ────▶ ANSWERED ── MUST_END ──────▶ LINGERING
       │                         └─────── MAY_CONTINUE ──▶ DETACHED
       ├────── OVERFLOWED (also while DRAINING) ─────────▶ ENDED
       └────── STOP (also while DRAINING) ───────────────▶ STOPPING

An asynchronous call, which waits for the receipt:

    RUNNING ── RECEIPT ──▶ WORKING ── EXITED ──▶ DRAINING ── MUST_END ──────▶ ENDED
                                                     └────── MAY_CONTINUE ──▶ DETACHED
    any of these ── STOP ──▶ STOPPING ── MUST_END ──▶ ENDED
    any of these ── RELEASE ──▶ RELEASED

The exit may come before the receipt is read, so a RECEIPT after it changes nothing. STOP may be repeated, and may come
after the end. An event that a state does not know is a bug: ``handle`` raises RuntimeError.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final


class ChildState(Enum):
    RUNNING = auto()
    WORKING = auto()
    ANSWERED = auto()
    DRAINING = auto()
    DETACHED = auto()
    LINGERING = auto()
    STOPPING = auto()
    RELEASED = auto()
    ENDED = auto()


class ChildEvent(Enum):
    RECEIPT = auto()  # its first JSON object with a status was read: the call of an asynchronous plugin is over
    ANSWERED = auto()  # stdout holds an answer, and silence behind it or the limit says that it is complete
    EXITED = auto()  # its process has ended
    OVERFLOWED = auto()  # stdout is over its limit
    MAY_CONTINUE = auto()  # what is alive of it may continue: its owner allows it, and it broke no limit
    MUST_END = auto()  # nothing is alive of it, or nothing may be
    STOP = auto()  # it is to be stopped: by its limit, by its caller, or because its task has ended
    RELEASE = auto()  # the host ends, and the child outlives it


TRANSITIONS: Final[Mapping[ChildState, Mapping[ChildEvent, ChildState]]] = {
    ChildState.RUNNING: {
        ChildEvent.RECEIPT: ChildState.WORKING,
        ChildEvent.ANSWERED: ChildState.ANSWERED,
        ChildEvent.EXITED: ChildState.DRAINING,
        ChildEvent.OVERFLOWED: ChildState.ENDED,
        ChildEvent.STOP: ChildState.STOPPING,
        ChildEvent.RELEASE: ChildState.RELEASED,
    },
    ChildState.WORKING: {
        ChildEvent.EXITED: ChildState.DRAINING,
        ChildEvent.STOP: ChildState.STOPPING,
        ChildEvent.RELEASE: ChildState.RELEASED,
    },
    ChildState.ANSWERED: {
        ChildEvent.MAY_CONTINUE: ChildState.DETACHED,
        ChildEvent.MUST_END: ChildState.LINGERING,
        ChildEvent.STOP: ChildState.STOPPING,
    },
    ChildState.DRAINING: {
        ChildEvent.RECEIPT: ChildState.DRAINING,
        ChildEvent.OVERFLOWED: ChildState.ENDED,
        ChildEvent.MAY_CONTINUE: ChildState.DETACHED,
        ChildEvent.MUST_END: ChildState.ENDED,
        ChildEvent.STOP: ChildState.STOPPING,
        ChildEvent.RELEASE: ChildState.RELEASED,
    },
    ChildState.DETACHED: {
        ChildEvent.RECEIPT: ChildState.DETACHED,
        ChildEvent.STOP: ChildState.STOPPING,
        ChildEvent.RELEASE: ChildState.RELEASED,
    },
    ChildState.LINGERING: {},
    ChildState.STOPPING: {
        ChildEvent.EXITED: ChildState.STOPPING,
        ChildEvent.MAY_CONTINUE: ChildState.STOPPING,
        ChildEvent.MUST_END: ChildState.ENDED,
        ChildEvent.STOP: ChildState.STOPPING,
        ChildEvent.RELEASE: ChildState.STOPPING,
    },
    ChildState.RELEASED: {},
    ChildState.ENDED: {
        ChildEvent.RECEIPT: ChildState.ENDED,
        ChildEvent.STOP: ChildState.ENDED,
        ChildEvent.RELEASE: ChildState.ENDED,
    },
}


class ChildLifecycle:
    """The state of one child, which changes by events only."""

    def __init__(self) -> None:
        self._state = ChildState.RUNNING

    @property
    def state(self) -> ChildState:
        return self._state

    def handle(self, event: ChildEvent) -> ChildState:
        """Return the state after an event. Raises RuntimeError when the state does not know it."""
        after = TRANSITIONS[self._state].get(event)
        if after is None:
            raise RuntimeError(f"a child that is {self._state.name} cannot handle {event.name}")
        self._state = after
        return after
