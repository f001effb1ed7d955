"""The patch view: hunks exactly as structuredPatch has them, on every screen."""

import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.console.hosting import Host, hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import call, seed
from tests.console.visit import PHONE, Visit, visiting

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.requirement("console:activity:patch")]
SHOWN = (Path(__file__).parent / "patch.js").read_text()
NO_NEWLINE = "\\ No newline at end of file"
ROWS = ".patch-lines tbody tr:not([aria-hidden])"
FEW = f"() => document.querySelectorAll('{ROWS}').length < 400"
LONG = 5000
WIDE = "wide " * 400 + "x" * 2000
CRLF = {
    "oldStart": 7,
    "oldLines": 2,
    "newStart": 7,
    "newLines": 2,
    "lines": [" same\r", "-old\r", "+new", NO_NEWLINE],
}


def _vectors() -> list[list[dict[str, Any]]]:
    """Hunks of the reference implementation, of texts that hold nothing a page would have to make visible."""
    cases = json.loads((Path(__file__).parents[1] / "vectors/structured_patch.json").read_text("utf-8"))
    found: dict[str, list[dict[str, Any]]] = {}
    for _, _, _, hunks in cases:
        lines = [line.removesuffix("\r") for hunk in hunks for line in hunk["lines"]]
        if hunks and len(lines) < 80 and all(line.isprintable() or line.strip("\t ") == "" for line in lines):
            found.setdefault(json.dumps(hunks), hunks)
    return list(found.values())


VECTORS = _vectors()[::2]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def patched(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    """Three calls: all vectors at once; odd files; one with thousands of lines."""
    place = tmp_path_factory.mktemp("patched")
    vectors = [{"path": f"{at}.txt", "structured_patch": hunks} for at, hunks in enumerate(VECTORS)]
    wide = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-short", f"+{WIDE}"]}
    odd = [
        {"path": "crlf.txt", "operation": "update", "structured_patch": [CRLF]},
        {"path": "wide.txt", "operation": "update", "structured_patch": [wide]},
        {"path": "picture.png", "operation": "create", "binary": True, "structured_patch": []},
        {"path": "same.txt", "operation": "move", "from": "before.txt", "structured_patch": []},
    ]
    lines = [f"+line {number}" for number in range(1, LONG + 1)]
    long = {"oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": LONG, "lines": lines}
    contents: list[dict[str, Any]] = [
        {"files": vectors},
        {"files": odd},
        {"path": "long.txt", "structured_patch": [long]},
    ]
    calls = (record for number, data in enumerate(contents, 1) for record in call(number, data))
    await seed(place / "home", calls)
    async with hosting(place) as host:
        yield host


async def opened(visit: Visit, number: int) -> None:
    await visit.go(f"/activity?call=call_{number:032x}&part=patch")
    await expect(visit.page.locator(".patch-file").first).to_be_visible()


def numbered(hunk: dict[str, Any]) -> Iterable[tuple[int | None, int | None, str, str]]:
    """The lines of a hunk with their numbers; what has no newline at its end says so."""
    old, new = hunk["oldStart"], hunk["newStart"]
    lines = hunk["lines"]
    for at, line in enumerate(lines):
        if line == NO_NEWLINE:
            continue
        sign, text = line[0], line[1:]
        if sign == " ":
            text = text.removesuffix("\r")  # line ends are told where they change
        end = "\n\\" if lines[at + 1 : at + 2] == [NO_NEWLINE] else ""
        yield (None if sign == "+" else old, None if sign == "-" else new, sign, text + end)
        old += sign != "+"
        new += sign != "-"


def head(hunk: dict[str, Any]) -> str:
    return f"@@ -{hunk['oldStart']},{hunk['oldLines']} +{hunk['newStart']},{hunk['newLines']} @@"


def counts(hunks: list[dict[str, Any]]) -> tuple[int, int]:
    lines = [line for hunk in hunks for line in hunk["lines"]]
    return sum(line[0] == "+" for line in lines), sum(line[0] == "-" for line in lines)


async def test_hunks_stand_line_by_line_with_their_numbers_signs_and_counts(browser: Browser, patched: Host) -> None:
    assert len(VECTORS) > 100
    async with visiting(browser, patched) as visit:
        await opened(visit, 1)
        await expect(visit.page.locator(".patch-file")).to_have_count(len(VECTORS))
        files = await visit.page.evaluate(SHOWN)
        assert len(files) == len(VECTORS)
        for file, hunks in zip(files, VECTORS, strict=True):
            assert [one["head"] for one in file["hunks"]] == [head(one) for one in hunks]
            assert [one["lines"] for one in file["hunks"]] == [[list(line) for line in numbered(one)] for one in hunks]
            assert (file["added"], file["removed"]) == counts(hunks)
        await visit.page.get_by_role("button", name="Split").click()
        await expect(visit.page.locator(".patch-split")).to_have_count(len(VECTORS))
        for file, hunks in zip(await visit.page.evaluate(SHOWN), VECTORS, strict=True):
            for shown, hunk in zip(file["hunks"], hunks, strict=True):
                lines = list(numbered(hunk))
                left = [[old, sign, text] for old, _, sign, text in lines if sign != "+"]
                right = [[new, sign, text] for _, new, sign, text in lines if sign != "-"]
                assert [one[1:] for one in shown["lines"] if one[0] == "left"] == left
                assert [one[1:] for one in shown["lines"] if one[0] == "right"] == right
        assert visit.wrong() == []


async def test_line_ends_wide_lines_and_files_without_text_are_told(browser: Browser, patched: Host) -> None:
    async with visiting(browser, patched) as visit:
        await opened(visit, 2)
        crlf, wide, binary, same = (visit.page.locator(".patch-file").nth(at) for at in range(4))
        await expect(crlf.locator("summary")).to_contain_text("CRLF")
        await expect(crlf.locator(".patch-cr")).to_have_count(1)  # the line that loses it
        await expect(crlf.locator(".patch-endless")).to_have_text("\\ No newline at end of file")
        await visit.page.get_by_role("button", name="Whitespace").click()
        await expect(crlf.locator(".patch-cr")).to_have_count(2)
        await expect(wide).to_contain_text(f"{'wide·' * 400}{'x' * 2000}")
        await visit.page.get_by_role("button", name="Whitespace").click()
        await expect(binary).to_contain_text("Binary file")
        await expect(same).to_contain_text("from before.txt")
        for name in ("Split", "Unified"):
            choice = visit.page.get_by_role("button", name=name)
            await choice.click()
            await expect(choice).to_have_attribute("aria-pressed", "true")
            await expect(visit.page.locator(".patch-split")).to_have_count(2 if name == "Split" else 0)
            assert await layout_faults(visit.page) == []
            assert await wide.evaluate("file => file.scrollWidth <= file.clientWidth + 1")
            assert await access_faults(visit.page) == []
        assert visit.wrong() == []


async def test_a_diff_of_thousands_of_lines_keeps_the_page_small_and_shows_every_line(
    browser: Browser, patched: Host
) -> None:
    async with visiting(browser, patched) as visit:
        await opened(visit, 3)
        rows, body = visit.page.locator(ROWS), visit.page.locator("dialog .body")
        await expect(rows.nth(1)).to_contain_text("line 1")
        await expect(visit.page.locator(".patch-counts").first).to_contain_text(f"{LONG}")
        for share, line in ((0.5, f"line {LONG // 2}"), (1, f"line {LONG}")):
            await body.evaluate("(body, share) => { body.scrollTop = body.scrollHeight * share }", share)
            await expect(visit.page.get_by_role("cell", name=line, exact=True)).to_be_in_viewport()
            await visit.page.wait_for_function(FEW)  # what left goes
        assert visit.wrong() == []


@pytest.mark.requirement("console:layout", "console:accessible")
async def test_a_phone_reads_one_column_whatever_a_desktop_has_chosen(browser: Browser, patched: Host) -> None:
    async with visiting(browser, patched, size=PHONE, theme="dark") as visit:
        await visit.context.add_init_script("localStorage.setItem('toolyard.patch', 'split')")
        await opened(visit, 2)
        await expect(visit.page.locator(".patch-split")).to_have_count(0)
        await expect(visit.page.get_by_role("button", name="Split")).to_have_count(0)
        assert await layout_faults(visit.page, phone=True) == []
        assert await access_faults(visit.page) == []
        assert visit.wrong() == []
