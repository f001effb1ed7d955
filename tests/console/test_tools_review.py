"""What the owner sees of a plugin before it runs, and of one that runs: command line, changes, settings, logs."""

import asyncio
import hashlib
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Error, Locator, Response, expect

from tests.console.hosting import START_S, Host, hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.schemas import ENDINGS, MANIFEST, acts, leaving, manifest, plugin, zipped
from tests.console.visit import PHONE, Visit, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")
COMMAND = (
    "python act.py --first 'two words' " + " ".join(f"--option-{number}=value" for number in range(40)) + " --last"
)
BINARY = b"\x7fELF\x00"
CANARY = "sk-canary-0d4e8b17"
SETTINGS = {
    "API_KEY": {"type": "string", "description": "The key of the service.", "required": True},
    "RETRIES": {"type": "integer", "default": 3},
    "CAREFUL": {"type": "boolean", "default": False},
    "REGION": "string",
}
HIDDEN = "Reads\u200b a \u202efile\u202c."


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def owned(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    """A server with plugins of an owner: two with faults, one with settings, one that is loud, one to test."""
    folder = tmp_path_factory.mktemp("owned")
    torn, odd = (folder / "home" / "plugins" / name for name in ("Torn", "Odd"))
    torn.mkdir(parents=True)
    (torn / MANIFEST).write_text('{\n  "name": "Torn",\n  "version" "1"\n}\n')
    odd.mkdir()
    (odd / MANIFEST).write_text(json.dumps(manifest("Odd", shell="perhaps", risk="huge"), indent=2))
    secretive = plugin(folder / "plugins", "Secretive", configSchema=SETTINGS)
    (secretive / "config.env").write_text(f"# mine\nAPI_KEY={CANARY}\nREGION=eu\n")
    loud = plugin(folder / "plugins", "Loud", script=ENDINGS, parameters=acts("noise"), said=HIDDEN)
    (loud / "README.md").write_text("# Loud\n\nIt *speaks*.\n")
    (loud / "CHANGELOG.md").write_text("# Changes\n\n- 1.0: it speaks\n")
    plugin(folder / "home" / "plugins", "Kept", script=ENDINGS, parameters=acts("success", "error"))
    async with hosting(folder, "--plugins", str(folder / "plugins")) as host:
        yield host


async def run(visit: Visit) -> None:
    await visit.page.get_by_role("button", name="Run", exact=True).click()


async def read_files(dialog: Locator) -> None:
    """Open a text with a hidden character, and a binary file."""
    await dialog.get_by_role("button", name="act.py").click()
    await expect(dialog.get_by_role("region", name="Text of the file")).to_contain_text("1open(")
    await expect(dialog).to_contain_text("⟦U+202E⟧")
    await dialog.get_by_role("button", name="blob.so").click()
    await expect(dialog).to_contain_text(hashlib.sha256(BINARY).hexdigest())
    await expect(dialog).to_contain_text("cannot be shown as text")


async def read_changes(trust: Locator) -> None:
    """Look at what has changed in two files: it is open, and first."""
    await expect(trust.locator(".tools-file[aria-expanded=true]")).to_have_count(2)  # and nobody opened them
    await expect(trust.locator(".patch", has_text="--changed")).to_have_count(1)
    await expect(trust.locator(".patch", has_text="# more")).to_have_count(1)
    files, facts = trust.locator(".tools-review-files"), trust.locator("dl.facts")
    assert await files.evaluate("(one, other) => one.compareDocumentPosition(other) & 4", await facts.element_handle())
    await trust.get_by_role("button", name=MANIFEST).click()
    await trust.get_by_role("button", name="Whole file").click()
    await expect(trust.get_by_role("region", name="Text of the file")).to_be_visible()


@pytest.mark.requirement("console:tools:review", "review:files", "review:difference", "review:reach")
async def test_nothing_of_a_new_plugin_runs_before_it_is_allowed_and_a_changed_one_shows_what_changed(
    browser: Browser, tmp_path: Path
) -> None:
    mark = tmp_path / "home" / "plugins" / "Newcomer" / "mark"
    own = plugin(
        tmp_path / "home" / "plugins", "Newcomer", script=leaving(mark), entryPoint={"command": COMMAND}, warmStart=True
    )
    (own / "act.py").write_text((own / "act.py").read_text().lstrip() + "# \u202e\n")
    (own / "blob.so").write_bytes(BINARY)
    async with hosting(tmp_path) as host, visiting(browser, host) as visit:
        await visit.go("/tools?state=attention")
        card = visit.page.locator(".tools-attention", has_text="Newcomer")
        await expect(card).to_contain_text("needs review")
        await expect(card).to_contain_text(COMMAND)
        assert await layout_faults(visit.page) == []
        await card.get_by_role("link", name="Review and allow").click()
        trust = visit.page.get_by_role("region", name="What it may run")
        await expect(trust.locator("pre").first).to_have_text(COMMAND)
        await trust.get_by_role("button", name="Review and allow").click()
        dialog = visit.page.get_by_role("dialog")
        await expect(dialog.locator("pre").first).to_have_text(COMMAND)
        await expect(dialog).to_contain_text("PATH")
        await expect(dialog).to_contain_text(str(own))
        await expect(dialog.locator(".tools-reach")).to_contain_text("environment variables")
        await read_files(dialog)
        assert await access_faults(visit.page) == []
        assert await layout_faults(visit.page) == []
        await dialog.get_by_role("button", name="Cancel").click()
        assert not mark.exists()
        assert (await state_of(host, "Newcomer")) == "needs_review"
        await trust.get_by_role("button", name="Review and allow").click()
        await dialog.get_by_role("button", name="Allow", exact=True).click()
        await expect(visit.page.locator(".tools-head")).to_contain_text("ready")
        await visit.page.get_by_role("tab", name="Try it").click()
        await run(visit)
        await expect(visit.page.get_by_role("region", name="Output").locator(".chip").first).to_have_text("success")
        assert mark.exists()

        mark.unlink()
        (own / MANIFEST).write_text((own / MANIFEST).read_text().replace("--last", "--changed"))
        (own / "act.py").write_text((own / "act.py").read_text() + "# more\n")
        await visit.page.locator(".tools-head summary").click()
        await visit.page.get_by_role("button", name="Reload").click()
        await expect(visit.page.locator(".tools-head")).to_contain_text("changed")
        await visit.page.get_by_role("tab", name="Manifest").click()
        await expect(trust).to_contain_text("2 changed since it was allowed")
        await read_changes(trust)
        await expect(trust).to_contain_text("has changed since it was allowed")
        assert not mark.exists()
        assert visit.wrong() == []


STARTS = """
import json, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True,
                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(json.dumps({"status": "success", "result": "started"}))
"""


@pytest.mark.requirement("console:tools:review", "plugin:detached", "plugin:same-name")
async def test_an_owners_plugin_hides_another_of_its_name_and_works_on_as_a_task(
    browser: Browser, tmp_path: Path
) -> None:
    own = plugin(tmp_path / "home" / "plugins", "Twice", script=STARTS)
    other = plugin(tmp_path / "project" / "plugins", "Twice")
    async with hosting(tmp_path) as host, visiting(browser, host) as visit:
        await visit.go("/tools?state=attention")
        card = visit.page.locator(".tools-attention", has_text="Twice")
        await expect(card).to_have_count(1)
        await card.get_by_role("link", name="Review and allow").click()
        trust = visit.page.get_by_role("region", name="What it may run")
        await expect(trust).to_contain_text("remaining processes are stopped")
        await trust.get_by_role("button", name="Review and allow").click()
        dialog = visit.page.get_by_role("dialog")
        await expect(dialog).to_contain_text(str(own))
        await dialog.get_by_role("switch", name="Allow background work after the answer").click()
        assert await access_faults(visit.page) == []
        await dialog.get_by_role("button", name="Allow", exact=True).click()
        await expect(trust).to_contain_text("may continue in the background for up to 30 min, as a task")
        await visit.go("/tools/Twice")
        await expect(visit.page.locator(".notice", has_text="Used instead of")).to_contain_text(str(other))
        assert await layout_faults(visit.page) == []
        await visit.go(f"/tools/Twice?folder={other}")
        await expect(visit.page.locator(".tools-head")).to_contain_text("overridden")
        called = await host.call("Twice")
        await visit.go(f"/tasks?task={called['context']['background']['task']}")
        await visit.page.get_by_role("button", name="Cancel", exact=True).first.click()
        await expect(visit.page.locator("main .rec-table")).to_contain_text("cancelled")
        assert visit.wrong() == []


async def state_of(host: Host, name: str) -> str:
    rows = (await host.api("GET", "/v1/plugins"))["data"]
    return str(next(row["state"] for row in rows if row["name"] == name))


@pytest.mark.requirement("console:tools:review")
async def test_a_zip_is_shown_whole_and_runs_nothing_before_it_is_allowed(browser: Browser, fresh: Host) -> None:
    mark = fresh.home / "plugins" / "Parcel" / "mark"
    zip_ = zipped("Parcel", script=leaving(mark), entryPoint={"command": "python act.py --last"}, warmStart=True)
    async with visiting(browser, fresh, size=PHONE) as visit:
        await visit.go("/tools")
        dialog = visit.page.get_by_role("dialog")
        await visit.page.get_by_role("button", name="Install").click()
        for answer in ("Choose another", "Allow and install"):
            await dialog.locator("input[type=file]").set_input_files(
                {"name": "parcel.zip", "mimeType": "application/zip", "buffer": zip_}
            )
            await expect(dialog).to_contain_text("Nothing has run yet")
            await expect(dialog.get_by_label("Command line")).to_have_text("python act.py --last")
            await expect(dialog).to_contain_text("act.py")
            await expect(dialog).to_contain_text(MANIFEST)
            await dialog.get_by_role("button", name="act.py").click()
            await expect(dialog.get_by_role("region", name="Text of the file")).to_be_visible()
            await dialog.get_by_label("Access").select_option("strict")
            await expect(dialog).to_contain_text("has no network")
            assert await layout_faults(visit.page, phone=True) == []
            assert not mark.exists()
            assert not (fresh.home / "plugins" / "Parcel").exists()
            await dialog.get_by_role("button", name=answer).click()
        await expect(dialog).to_have_count(0)
        review = (await fresh.api("GET", "/v1/plugins/Parcel"))["review"]
        assert review["access"] == "strict"
        allowed = {"fingerprint": review["fingerprint"], "access": "declared"}  # it leaves a mark in its own folder
        await fresh.api("POST", "/v1/plugins/Parcel/allow", allowed)
        await visit.page.get_by_role("link", name="Parcel").click()
        await run(visit)
        await expect(visit.page.get_by_role("region", name="Output")).to_contain_text("It came.")
        assert mark.exists()
        head = visit.page.locator(".tools-head")
        for name, state in (("Disable", "disabled"), ("Enable", "ready")):
            await head.locator("summary").click()
            await head.get_by_role("button", name=name).click()
            await expect(head.locator(".chip")).to_have_text(state)
        await head.locator("summary").click()
        await visit.page.get_by_role("button", name="Remove").click()
        await dialog.get_by_role("button", name="Remove").click()
        await visit.page.wait_for_url("**/tools")
        await expect(visit.page.get_by_role("link", name="Parcel")).to_have_count(0)
        assert visit.wrong() == []


@pytest.mark.requirement("console:tools:review")
async def test_a_zip_that_cannot_be_installed_says_why(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled) as visit:
        visit.allowed += ["400", "422"]
        await visit.go("/tools")
        await visit.page.get_by_role("button", name="Install").click()
        dialog = visit.page.get_by_role("dialog")
        for data in (b"this is no archive", zipped("Bad", script="", pluginType="sorcery")):
            await dialog.locator("input[type=file]").set_input_files(
                {"name": "bad.zip", "mimeType": "application/zip", "buffer": data}
            )
            await expect(dialog).to_contain_text("cannot be installed")
            await expect(dialog.get_by_role("button", name="Allow and install", disabled=False)).to_have_count(0)
        await expect(dialog).to_contain_text("sorcery")
        assert visit.wrong() == []


@pytest.mark.requirement("console:tools:review")
async def test_a_broken_manifest_shows_line_and_column_of_each_fault(browser: Browser, owned: Host) -> None:
    async with visiting(browser, owned) as visit:
        await visit.go("/tools")
        card = visit.page.locator(".tools-attention", has_text="Torn")
        await expect(card).to_contain_text(f"{MANIFEST}:3:13")
        await card.get_by_role("link", name="See the problem").click()
        line = visit.page.locator(".tools-line.bad")
        await expect(line).to_have_count(1)
        await expect(line).to_contain_text('"version" "1"')
        await expect(line).to_contain_text("line 3:13")
        await visit.page.get_by_role("link", name="All tools").click()
        await visit.page.locator(".tools-attention", has_text="Odd").get_by_role("link", name="See the problem").click()
        await expect(line).to_have_count(2)
        for words in ('"perhaps"', '"huge"'):
            await expect(line.filter(has_text=words)).to_contain_text("Fix:")
        assert await access_faults(visit.page) == []
        assert visit.wrong() == []


@pytest.mark.requirement("console:tools", "console:tools:review")
async def test_a_plugin_that_is_off_says_why_and_what_it_does_and_is_enabled_on_its_page(
    browser: Browser, fresh: Host
) -> None:
    async with visiting(browser, fresh) as visit:
        page = visit.page
        await visit.go("/tools?q=Shell")
        card = page.locator(".tools-card", has_text="Shell")
        await expect(card).not_to_contain_text("toolyard plugin enable")
        await card.get_by_role("link").first.click()
        await expect(page.get_by_role("note")).to_contain_text("It is off until you enable it.")
        await expect(page.get_by_role("tab", name="Description")).to_have_attribute("aria-selected", "true")
        await expect(page.locator(".tools-about")).to_contain_text("command")
        assert await access_faults(page) == []
        assert await layout_faults(page) == []
        await page.get_by_role("button", name="Enable").click()
        await expect(page.locator(".tools-head")).not_to_contain_text("disabled")
        assert await state_of(fresh, "Shell") != "disabled"
        assert visit.wrong() == []


async def texts_of(came: list[Response]) -> list[str]:
    """What these responses said; they are taken off the list."""
    found = []
    while came:
        with suppress(Error):  # it has no body
            found.append(await came.pop().text())
    return found


@pytest.mark.requirement("console:tools:review")
async def test_settings_show_their_source_and_no_secret_ever_reaches_the_browser(browser: Browser, owned: Host) -> None:
    file = owned.home.parent / "plugins" / "Secretive" / "config.env"
    async with visiting(browser, owned) as visit:
        bodies: list[str] = []
        came: list[Response] = []
        visit.page.on("response", lambda one: came.append(one))  # noqa: PLW0108 it takes no built-in
        for tab in ("manifest", "description", "logs", "docs", "config"):
            await visit.go(f"/tools/Secretive?tab={tab}")
            bodies += await texts_of(came)
        secret = visit.page.get_by_label("API_KEY")
        await expect(secret).to_have_attribute("type", "password")
        await expect(secret).to_have_value("")
        await expect(secret).to_have_attribute("placeholder", re.compile("set, changed .+"))
        rows = visit.page.locator(".tools-setting")
        for key, source in (
            ("API_KEY", "plugin"),
            ("REGION", "plugin"),
            ("RETRIES", "default"),
            ("CAREFUL", "default"),
        ):
            await expect(rows.filter(has_text=key).locator(".chip")).to_have_text(source)
        save = visit.page.get_by_role("button", name="Save")
        await visit.page.get_by_label("RETRIES").fill("many")
        await expect(rows.get_by_role("alert")).to_have_text("Enter a number.")
        await expect(save).to_be_disabled()
        await visit.page.get_by_label("RETRIES").fill("5")
        await visit.page.get_by_text("CAREFUL").click()
        await rows.filter(has_text="REGION").get_by_role("button", name="Remove from file").click()
        await save.click()
        await expect(visit.page.get_by_role("note")).to_contain_text("Saved.")
        await expect(rows.filter(has_text="RETRIES").locator(".chip")).to_have_text("plugin")
        bodies += await texts_of(came)
        assert file.read_text().splitlines()[:2] == ["# mine", f"API_KEY={CANARY}"]
        assert {"RETRIES=5", "CAREFUL=true"} <= set(file.read_text().splitlines())
        assert "REGION" not in file.read_text()
        await visit.go("/tools/Secretive")
        await run(visit)
        await visit.page.get_by_role("tab", name="Process").click()
        await expect(visit.page.get_by_role("region", name="Output")).to_contain_text("API_KEY")
        assert CANARY not in await visit.page.content()
        bodies += await texts_of(came)
        assert any('"API_KEY"' in body for body in bodies)
        assert not any(CANARY in body for body in bodies)
        assert visit.wrong() == []


@pytest.mark.requirement("console:tools:review")
async def test_the_log_shows_stderr_and_marks_noise_and_the_description_hides_no_character(
    browser: Browser, owned: Host, tmp_path: Path
) -> None:
    async with visiting(browser, owned) as visit:
        await visit.go("/tools/Loud?tab=logs")
        await expect(visit.page.get_by_role("heading", name="No output yet")).to_be_visible()
        await owned.call("Loud", act="noise")
        log = visit.page.get_by_role("log")
        await expect(log.locator(".stderr")).to_contain_text("a word on stderr")
        await expect(log.locator(".noise")).to_contain_text("this line is no answer")
        await expect(log.locator(".noise b")).to_have_text("this line violates the protocol")
        await visit.page.get_by_label("Search log").fill("STDERR")
        await expect(log.locator("> div")).to_have_count(1)
        await visit.page.reload()
        await expect(log.locator("> div")).to_have_count(1)
        async with visit.page.expect_download() as saved:
            await visit.page.get_by_role("button", name="Download").click()
        await (await saved.value).save_as(tmp_path / "log")
        assert "this line is no answer" in (tmp_path / "log").read_text()
        await visit.page.get_by_role("tab", name="Description").click()
        await expect(visit.page.get_by_role("note")).to_contain_text("hidden characters")
        await visit.page.get_by_role("tab", name="Manifest").click()
        await expect(visit.page.get_by_role("region", name="Manifest with problems")).to_contain_text(
            "Reads⟦U+200B⟧ a ⟦U+202E⟧file⟦U+202C⟧."
        )
        await visit.page.get_by_role("tab", name="Docs").click()
        await expect(visit.page.locator(".rendered em")).to_have_text("speaks")
        await visit.page.get_by_role("tab", name="CHANGELOG.md").click()
        await expect(visit.page.locator(".rendered li")).to_have_text("1.0: it speaks")
        assert visit.wrong() == []


@pytest.mark.requirement("plugin:cli:test:saved", "console:tools:try")
async def test_a_run_is_saved_as_a_test_of_its_plugin_which_the_command_line_runs(
    browser: Browser, owned: Host, tmp_path: Path
) -> None:
    review = (await owned.api("GET", "/v1/plugins/Kept"))["review"]
    await owned.api("POST", "/v1/plugins/Kept/allow", {"fingerprint": review["fingerprint"]})
    async with visiting(browser, owned) as visit:
        page, dialog = visit.page, visit.page.get_by_role("dialog", name="Save as test")
        for act, words in (("success", "the answer to success"), ("error", "")):
            await visit.go("/tools/Kept")
            await page.get_by_role("combobox", name="act").select_option(act)
            await run(visit)
            await page.get_by_role("button", name="Save as test").click()
            await dialog.get_by_label("Name").fill(f"it ends in {act}")
            await dialog.get_by_label("The answer must contain").fill(words)
            assert [*await access_faults(page), *await layout_faults(page)] == []
            await dialog.get_by_role("button", name="Save", exact=True).click()
            await expect(dialog).to_have_count(0)
        assert visit.wrong() == []
        await page.get_by_role("button", name="Save as test").click()
        await dialog.get_by_label("The answer must contain").fill("")
        await dialog.get_by_role("button", name="Save", exact=True).click()
        await expect(dialog.get_by_role("alert")).to_contain_text("has this test already: 'it ends in error'")
        visit.allowed += ["400"]
        assert visit.wrong() == []
    tested = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "toolyard", "plugin", "test", str(owned.home / "plugins" / "Kept")),
        *("--home", str(tmp_path / "home"), "--project", str(owned.project)),
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(START_S):
        out, _ = await tested.communicate()
    assert out.decode().split("\n")[-4:-1] == [
        "✓ it ends in success",
        "✓ it ends in error",
        "2 passed, 0 skipped, 0 failed",
    ]
