"""A person signed in at the console, as a browser without JavaScript would be."""

from http.cookiejar import CookieJar
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

ANSWER_SECONDS = 20


class Visitor:
    """Fills in the console's forms over HTTP; an answer of 400 or more is an ``HTTPError``."""

    def __init__(self, url: str, *, user: str, password: str) -> None:
        """Sign in at the console that answers at ``url``."""
        self._url = url
        self._cookies = CookieJar()
        self._opener = build_opener(HTTPCookieProcessor(self._cookies))
        self.look("/login/")
        self.fill("/login/", username=user, password=password)

    def look(self, path: str) -> str:
        """Open a page and return it."""
        with self._opener.open(f"{self._url}{path}", timeout=ANSWER_SECONDS) as answer:
            return str(answer.read().decode())

    def fill(self, path: str, **fields: str) -> str:
        """Send a form; return the page it leads to."""
        sent = urlencode({**fields, "csrfmiddlewaretoken": self._token()}).encode()
        asked = Request(f"{self._url}{path}", sent)  # noqa: S310 - our own console
        with self._opener.open(asked, timeout=ANSWER_SECONDS) as answer:
            return str(answer.read().decode())

    def _token(self) -> str:
        found = [cookie.value for cookie in self._cookies if cookie.name == "csrftoken"]
        return found[0] or "" if found else ""
