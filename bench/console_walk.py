"""A walk through the console: every page, a tool of a catalogue of a thousand, a search, a call and its panels."""

import json

from playwright.async_api import Browser, Route

from tests.console.hosting import Host
from tests.console.visit import Visit, visiting

TOOLS = 1000


async def longest_task_ms(browser: Browser, host: Host) -> float:
    """The processor time of the longest task of the page: for as long it answers nobody, on a machine of its own."""
    async with visiting(browser, host) as visit:
        await browser.start_tracing(page=visit.page, categories=["toplevel"])
        try:
            await _walk(visit)
        finally:
            trace = json.loads(await browser.stop_tracing())["traceEvents"]
    pages = {(one["pid"], one["tid"]) for one in trace if one.get("args", {}).get("name") == "CrRendererMain"}
    tasks = [one for one in trace if (one["pid"], one["tid"]) in pages and one["name"].endswith("RunTask")]
    return max(float(one.get("tdur", 0)) for one in tasks) / 1000


async def _walk(visit: Visit) -> None:
    page = visit.page
    await page.route("**/v1/tool-summaries", _answer_with_many_tools)
    await visit.go("/chat")
    for name in ("Activity", "Tasks", "Schedules", "Approvals", "Settings", "Status", "Tools"):
        await page.get_by_role("navigation").get_by_role("link", name=name).first.click()
        await visit.settle()
    await page.get_by_role("searchbox").press_sequentially("Many 05", delay=50)
    await page.locator(".tools-card a.tools-name").first.click()
    await visit.settle()
    await page.get_by_role("navigation").get_by_role("link", name="Activity").first.click()
    await visit.settle()
    await page.locator("[data-row]").first.click()
    await visit.settle()
    await page.keyboard.press("Escape")


async def _answer_with_many_tools(route: Route) -> None:
    given = await (await route.fetch()).json()
    sample = given["data"][0]
    given["data"] += [
        {
            **sample,
            "name": f"Many{at:04}",
            "display_name": f"Many {at:04}",
            "plugin": "",
            "kind": "mcp",
            "server": "many",
        }
        for at in range(TOOLS)
    ]
    await route.fulfill(json=given)
