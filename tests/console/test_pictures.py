"""Pages look as they looked when somebody last agreed: pictures of an empty server, without what changes by itself.

Fonts and browsers differ a little from machine to machine, so this is for the soak; what must hold everywhere is in
``test_shell``. ``TOOLYARD_NEW_PICTURES=1`` keeps what is seen now: look at it before you commit it.
"""

import base64
import os
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.console.hosting import hosting
from tests.console.visit import DESKTOP, PHONE, visiting

KEPT = Path(__file__).parent / "pictures"
NEW = "TOOLYARD_NEW_PICTURES" in os.environ
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
PAGES = (
    *("/chat", "/tools", "/tools/Edit", "/tools/SciCalculator?tab=config", "/activity", "/tasks", "/schedule"),
    *(
        "/approvals",
        "/approvals?tab=rules",
        "/settings",
        "/settings?tab=keys",
        "/settings?tab=backup",
        "/settings?tab=looks",
        "/status",
        "/welcome",
        "/providers",
    ),
)
LOOKS = {"desktop-light-en": DESKTOP, "desktop-dark-zh": DESKTOP, "phone-light-zh": PHONE, "phone-dark-en": PHONE}
DIFFERENT = 0.002
# Numbers and dates of this very moment.
VOLATILE = "time, .tabular, .status-value, .sch-strip, .dot"
# By the object model: the policy of the page lets no foreign style in.
HIDE = f"() => {{ for (const one of document.querySelectorAll('{VOLATILE}')) one.style.visibility = 'hidden'; }}"
pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(not SOAK and not NEW, reason="pictures depend on fonts and browser: compared in the soak"),
]


@pytest.mark.requirement("console:layout")
@pytest.mark.parametrize("look", LOOKS)
async def test_pages_look_as_they_did(browser: Browser, tmp_path: Path, look: str) -> None:
    _, theme, lang = look.split("-")
    script = (Path(__file__).parent / "pictures.js").read_text()
    different: dict[str, object] = {}
    async with hosting(tmp_path) as host, visiting(browser, host, size=LOOKS[look], theme=theme, lang=lang) as visit:
        for path in PAGES:
            await visit.go(path)
            await visit.page.evaluate(HIDE)
            seen = await visit.page.screenshot(animations="disabled", caret="hide")
            kept = KEPT / f"{path.strip('/').translate(str.maketrans('/?=', '___'))}-{look}.png"
            if NEW:
                kept.parent.mkdir(exist_ok=True)
                kept.write_bytes(seen)
                continue
            pair = [base64.b64encode(one).decode() for one in (kept.read_bytes(), seen)]
            share = await visit.page.evaluate(script, pair)
            if not isinstance(share, float | int) or share > DIFFERENT:
                different[kept.name] = share
    assert different == {}
