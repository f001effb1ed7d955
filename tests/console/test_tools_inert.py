"""Plugins whose every word attacks: in names, descriptions, docs, manifests, logs and results they stay words."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.console.hosting import Host, hosting
from tests.console.schemas import MANIFEST, manifest, plugin
from tests.console.visit import Visit, visiting
from tests.render.attacks import ATTACKS

pytestmark = pytest.mark.asyncio(loop_scope="session")
_WRITABLE = tuple(one.text for one in ATTACKS if "\ud800" not in one.text)  # half a sign is in no file
SAMPLE = (_WRITABLE[0], *_WRITABLE[4::11])
ALL = "\n\n".join(SAMPLE)
SCRIPT = f"""
import json, sys
texts, act = json.loads({json.dumps(json.dumps(SAMPLE))}), json.loads(sys.stdin.buffer.read() or b"{{}}").get("act")
sys.stdout.reconfigure(encoding="utf-8")
for text in texts:
    print(text, file=sys.stderr)
    print(text)
all = "\\n\\n".join(texts)
good = {{"status": "success", "result": {{"message": all, "content": all, "texts": texts}}}}
print(json.dumps({{"status": "error", "error": all}} if act == "error" else good))
"""


def hostile(folder: Path) -> None:
    """A plugin with each text for its name and words, another with it as a fault, and one that says all of them."""
    for number, text in enumerate(SAMPLE):
        plugin(folder, f"Named{number:02}", displayName=text, description=text, version=text, said=text)
        broken = folder / f"Broken{number:02}"
        broken.mkdir()
        (broken / MANIFEST).write_text(json.dumps(manifest(broken.name, displayName=text, pluginType=text), indent=2))
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "act": {"type": "string", "description": ALL, "default": SAMPLE[1]},
            "one": {"type": "string", "enum": list(SAMPLE)},
        },
    }
    settings = {"REGION": {"type": "string", "description": ALL, "default": SAMPLE[1]}}
    loud = plugin(folder, "Loud", script=SCRIPT, parameters=parameters, said=ALL, configSchema=settings)
    for name in ("README.md", "CHANGELOG.md"):
        (loud / name).write_text(ALL)


async def faults_of(visit: Visit) -> list[str]:
    return [*await visit.page.evaluate((Path(__file__).parent / "inert.js").read_text()), *visit.wrong()]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def attacked(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    folder = tmp_path_factory.mktemp("attacked")
    hostile(folder / "plugins")
    async with hosting(folder, "--plugins", str(folder / "plugins")) as host:
        yield host


@pytest.mark.requirement("console:inert", "console:tools", "console:tools:review")
async def test_hostile_names_words_docs_and_faults_of_plugins_stay_text(browser: Browser, attacked: Host) -> None:
    async with visiting(browser, attacked) as visit:
        main = visit.page.locator("main")
        await visit.go("/tools")
        for text in SAMPLE[:3]:
            await expect(main).to_contain_text(text)
        await expect(visit.page.locator(".tools-attention")).to_have_count(len(SAMPLE))
        assert await faults_of(visit) == []
        for path in ("Named00", "Named01", "Named00?tab=description", "Named01?tab=manifest"):
            await visit.go(f"/tools/{path}")
            await expect(main).to_contain_text(SAMPLE[int(path[6])])
            assert await faults_of(visit) == []
        await visit.go("/tools/Broken01?tab=manifest")
        await expect(visit.page.locator(".tools-line.bad")).to_contain_text(f"cannot be '{SAMPLE[1]}'")
        assert await faults_of(visit) == []
        for doc in ("README.md", "CHANGELOG.md"):
            await visit.go(f"/tools/Loud?tab=docs&doc={doc}")
            await expect(visit.page.locator(".rendered")).to_contain_text("alert(1)")
            assert await faults_of(visit) == []


@pytest.mark.requirement("console:inert", "console:tools:try")
async def test_what_a_hostile_plugin_says_stays_text(browser: Browser, attacked: Host) -> None:
    async with visiting(browser, attacked) as visit:
        await visit.go("/tools/Loud")
        shown = visit.page.get_by_role("region", name="Output")
        for act, chip in (("say", "success"), ("error", "error")):
            await visit.page.get_by_role("textbox", name="act").fill(act)
            await visit.page.get_by_role("button", name="Run", exact=True).click()
            await expect(shown.locator(".chip").first).to_have_text(chip)
            for tab in ("Raw JSON", "Process", "Result"):
                await shown.get_by_role("tab", name=tab).click()
                await expect(shown).to_contain_text("<script>alert(1)</script>")
                assert await faults_of(visit) == []
        await visit.page.get_by_role("textbox", name="act").fill(ALL)
        await visit.page.get_by_role("button", name="Run", exact=True).click()
        await expect(visit.page.locator(".tools-past").first).to_contain_text("act=<script>")
        assert await faults_of(visit) == []
        await visit.go("/tools/Loud?tab=logs")
        await expect(visit.page.locator(".tools-log .stderr").first).to_contain_text("<script>alert(1)</script>")
        await expect(visit.page.locator(".tools-log .noise").first).to_contain_text("<script>alert(1)</script>")
        await expect(visit.page.locator(".tools-log")).to_contain_text("⟦U+001B⟧" if "\x1b" in ALL else "alert(1)")
        assert await faults_of(visit) == []
        await visit.go("/tools/Loud?tab=config")
        await expect(visit.page.locator(".tools-setting")).to_contain_text("<script>alert(1)</script>")
        assert [fault for fault in await faults_of(visit) if not fault.startswith("active node: <form>")] == []
