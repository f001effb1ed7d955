"""The steps of a flow, counted: what a person has to do for it, which may not become more."""

from playwright.async_api import Locator, Page


class Steps:
    """Does what a person does on a page, and counts it: a press, a text that is typed, an address that is opened."""

    def __init__(self, page: Page, *, at_most: int) -> None:
        self._page, self._at_most = page, at_most
        self.done: list[str] = []

    async def press(self, locator: Locator) -> None:
        self.done.append(f"press {locator}")
        await locator.click()

    async def fill(self, locator: Locator, text: str) -> None:
        self.done.append(f"fill {locator}")
        await locator.fill(text)

    async def open(self, path: str) -> None:
        """Open a path of the server, as a link in a message does."""
        self.done.append(f"open {path}")
        await self._page.goto(path)

    def check(self) -> None:
        """Complain of a flow that needs more steps than it did."""
        assert len(self.done) <= self._at_most, f"{len(self.done)} steps, at most {self._at_most}: {self.done}"
