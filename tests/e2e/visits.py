"""One operator's browser, which keeps every complaint of the pages it opens."""

from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page

PASSWORD = "correct horse battery"
SHOTS = Path(__file__).resolve().parents[2] / "shots"


class Visit:
    """A browser context with its page; ``complaints`` collects errors, warnings and dialogs."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.context = context
        self.page: Page = context.new_page()
        self.base = base
        self.complaints: list[str] = []
        self.listen(self.page)

    def listen(self, page: Page) -> None:
        page.on("console", lambda message: self._heard(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._asked)

    def open(self, path: str) -> Page:
        self.page.goto(self.base + path)
        return self.page

    def sign_in(self, name: str) -> None:
        self.open("/login/")
        self.page.get_by_label("User name").fill(name)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()

    def _heard(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.complaints.append(text)

    def _asked(self, dialog: Any) -> None:
        self.complaints.append(dialog.message)
        dialog.dismiss()
