"""Lists a GitHub webhook's deliveries, which GitHub keeps for 3 days, with what they carried."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

from reliability.claim.backlog import Recorded
from reliability.models import Source
from reliability.reconcile.providers import asking
from reliability.reconcile.providers.provided import CannotFetch

PAGE = 100
DELIVERIES_MAX = 4_000
"""Each costs a request of its own; GitHub takes 5,000 an hour."""
HOOK = re.compile(r"(repos/[\w.-]+/[\w.-]+|orgs/[\w.-]+)/hooks/[0-9]+")
BUSY = frozenset({403, 429})


def events(source: Source, since: datetime, until: datetime) -> Iterator[Recorded]:
    """Yield each delivery of a span once, newest first, through the package PyGithub.

    Needs the source's API credential (a token that may read the hook), its option ``hook``
    (``repos/acme/shop/hooks/123`` or ``orgs/acme/hooks/123``) and the extra ``github``. A
    redelivery carries the id of the first one and is left out. Raises ``CannotFetch``.
    """
    github = asking.package("github", extra="github")
    path = _path(source)
    requester = _client(github, source).requester
    seen: set[str] = set()
    with _in_words(github):
        for one in _listed(github, requester, f"{path}?per_page={PAGE}"):
            if one.delivered_at is not None and one.delivered_at < since:
                return
            if one.guid in seen or (one.delivered_at and one.delivered_at >= until):
                continue
            if len(seen) == DELIVERIES_MAX:
                raise CannotFetch(
                    f"GitHub lists more than {DELIVERIES_MAX:,} deliveries: ask for fewer days"
                )
            seen.add(one.guid)
            _, found = requester.requestJsonAndCheck("GET", f"{path}/{one.id}")
            yield _recorded(found)


def _listed(github: ModuleType, requester: Any, path: str) -> Any:
    return github.PaginatedList.PaginatedList(
        github.HookDelivery.HookDeliverySummary, requester, path, None
    )


def _recorded(found: dict[str, Any]) -> Recorded:
    """Return the delivery as JSON, whatever form the hook sends."""
    headers = {
        "X-GitHub-Delivery": str(found["guid"]),
        "X-GitHub-Event": str(found["event"]),
        "Content-Type": "application/json",
    }
    payload = (found.get("request") or {}).get("payload")
    return Recorded(json.dumps(payload, ensure_ascii=False).encode(), headers)


@contextmanager
def _in_words(github: ModuleType) -> Iterator[None]:
    try:
        yield
    except github.GithubException as error:
        if isinstance(error, github.RateLimitExceededException) or _is_busy(error):
            raise asking.rate_limited("GitHub", _until(error)) from None
        said = error.data.get("message") if isinstance(error.data, dict) else None
        raise CannotFetch(f"GitHub answered {error.status}: {said or 'no reason'}") from None
    except OSError as error:
        raise asking.no_answer("GitHub", error) from None


def _is_busy(error: Any) -> bool:
    return error.status in BUSY and "retry-after" in (error.headers or {})


def _until(error: Any) -> str:
    """Say when GitHub takes requests again, from the headers it answered with."""
    headers = error.headers or {}
    if (reset := headers.get("x-ratelimit-reset", "")).isdigit():
        return f"after {datetime.fromtimestamp(int(reset), UTC):%H:%M} UTC"
    if (wait := headers.get("retry-after", "")).isdigit():
        return f"in {wait} seconds"
    return "in a few minutes"


def _path(source: Source) -> str:
    hook = source.options.get("hook", "")
    if not isinstance(hook, str) or not HOOK.fullmatch(hook):
        raise CannotFetch(
            f"{source.slug} has no option hook=repos/OWNER/NAME/hooks/NUMBER that says which "
            "webhook's deliveries to list"
        )
    return f"/{hook}/deliveries"


def _client(github: ModuleType, source: Source) -> Any:
    token, base = asking.credential_of(source), asking.own_address(source)
    return github.Github(
        auth=github.Auth.Token(token),
        base_url=base or github.Consts.DEFAULT_BASE_URL,
        timeout=max(1, int(asking.seconds_max())),
        retry=None,
        seconds_between_requests=None,
    )
