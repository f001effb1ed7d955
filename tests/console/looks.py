"""What a page must be, whatever it shows: it fits, nothing is cut or covered, everybody can use it.

Each check returns the faults that it has found, as sentences.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from playwright.async_api import Page

from tests.waiting import wait_for_value

_SETTLED_S = 30.0


async def _lasting(look: Callable[[], Awaitable[list[str]]]) -> list[str]:
    """The faults that stay: what is still being laid out may look wrong for a moment."""
    found: list[str] = []

    async def is_sound() -> bool:
        nonlocal found
        found = await look()
        return not found

    with suppress(TimeoutError):
        await wait_for_value(is_sound, within_s=_SETTLED_S)
    return found


async def layout_faults(page: Page, *, phone: bool = False) -> list[str]:
    async def look() -> list[str]:
        return cast("list[str]", await page.evaluate(_script("layout.js"), phone))

    return await _lasting(look)


@cache
def _script(name: str) -> str:
    return (Path(__file__).parent / name).read_text()


@cache
def _axe() -> str:
    """The rules, from the package that brings them; it is a file, and nothing of it is imported."""
    found = find_spec("axe_playwright_python")
    assert found is not None
    assert found.origin is not None
    return (Path(found.origin).parent / "axe.min.js").read_text()


async def access_faults(page: Page) -> list[str]:
    """What axe finds."""
    await page.evaluate(f"() => {{ if (!window.axe) {{ {_axe()} }} }}")

    async def look() -> list[str]:
        found: dict[str, Any] = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{rule['id']} ({rule['impact']}): {node['html'][:160]} — {' '.join(node['failureSummary'].split())[:240]}"
            for rule in found["violations"]
            for node in rule["nodes"][:5]
        ]

    return await _lasting(look)


async def own_texts(page: Page) -> list[str]:
    """Every text and name that the console itself says. What it was given (data, code, times) is not looked at."""
    return cast("list[str]", await page.evaluate(_script("texts.js")))
