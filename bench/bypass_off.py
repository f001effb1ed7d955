"""``toolyard`` with a bypass switched off, or with none: ``python -m bench.bypass_off NAME [OPTION...] COMMAND...``.

The bypasses that work in a process of their own; ``bench.bypasses`` measures them.
"""

import gc
import sys
from collections.abc import Callable
from unittest.mock import patch

NONE, CHAT_ROUTED_FIRST, FREEZE_BEFORE_END = "none", "chat routed first", "freeze before the end"
QUICK_MCP_CALLS = "quick calls over MCP"


def run_toolyard(bypass: str, *words: str) -> None:
    SWITCHES[bypass]()
    sys.argv = ["toolyard", *words]
    from toolyard.cli import main

    main()


def _route_chats_by_fastapi() -> None:
    from toolyard.web import app as web_app

    patch.object(web_app, "route_first", lambda app, *_: app).start()


def _leave_calls_to_sdk() -> None:
    from toolyard.mcp.stdio import QuickCalls

    async def take_nothing(self: QuickCalls, line: bytes) -> bool:
        return False

    patch.object(QuickCalls, "take", take_nothing).start()


def _freeze_nothing() -> None:
    patch.object(gc, "freeze", lambda: None).start()


SWITCHES: dict[str, Callable[[], None]] = {
    NONE: lambda: None,
    CHAT_ROUTED_FIRST: _route_chats_by_fastapi,
    FREEZE_BEFORE_END: _freeze_nothing,
    QUICK_MCP_CALLS: _leave_calls_to_sdk,
}

if __name__ == "__main__":
    run_toolyard(*sys.argv[1:])
