"""Count the numbers of a running console: `python -m tests.console.crawl_live URL USER PASSWORD`."""

import sys
from http.cookiejar import CookieJar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

from tests.console.crawl import Crawled, Crawler

ANSWER_SECONDS = 60


def signed_in(url: str, user: str, password: str) -> OpenerDirector:
    """Sign in as a browser does; return what keeps the session."""
    cookies = CookieJar()
    browser = build_opener(HTTPCookieProcessor(cookies))
    browser.open(f"{url}/login/", timeout=ANSWER_SECONDS).close()
    [token] = [cookie.value for cookie in cookies if cookie.name == "csrftoken"]
    form = {"username": user, "password": password, "csrfmiddlewaretoken": token}
    browser.open(f"{url}/login/", urlencode(form).encode(), timeout=ANSWER_SECONDS).close()
    return browser


def crawl_live(url: str, user: str, password: str) -> Crawled:
    """Walk from the overview; what moves between two looks is looked at again."""
    browser = signed_in(url, user, password)

    def get(path: str) -> tuple[int, str, str]:
        try:
            with browser.open(
                url + path.replace(" ", "%20"), timeout=ANSWER_SECONDS
            ) as answer:
                content = answer.read().decode("utf-8", "replace")
                return answer.status, answer.headers.get("Content-Type", ""), content
        except HTTPError as error:
            with error:
                return error.code, "", ""

    return Crawler(get, faces_max=1).walk(["/"])


def main() -> int:
    """Print what disagrees; return 1 if anything does."""
    found = crawl_live(*sys.argv[1:4])
    told = f"{len(found.pages)} pages, {found.numbers} numbers, {len(found.wrong)} wrong"
    sys.stdout.write("\n".join([told, *found.wrong, ""]))
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
