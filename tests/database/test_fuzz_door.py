"""Whatever is sent to the door, it answers with one of its own statuses and logs no error.

`python benchmarks/fuzz_door.py` runs this with 100 000 cases.
"""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings

from reliability.claim.presets import PRESETS
from reliability.models import Source
from tests.database import fuzz, senders
from tests.database.live import Web, status

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(0)]

CASES = int(os.environ.get("FUZZ_CASES", "2000"))
# The table of answers, and what the server itself says to broken HTTP.
ANSWERS = {200, 202, 401, 404, 405, 411, 413, 415, 498} | {400, 417, 431, 501}


@pytest.fixture
def sources() -> dict[str, Source]:
    return {name: source(name) for name in PRESETS}


def source(preset: str) -> Source:
    roots = {"roots": senders.authority().root.decode()} if preset == "paypal" else {}
    return senders.source(preset, options=dict(PRESETS[preset].options) | roots)


@settings(
    max_examples=CASES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=fuzz.CASES)
def test_any_request_gets_an_answer_of_the_table(
    web: Web, sources: dict[str, Source], case: fuzz.Case
) -> None:
    answer = web.send(fuzz.request(case, sources[case.scheme].endpoint_token), seconds=15)
    assert status(answer) in ANSWERS, answer[:200]
    if case.is_genuine:
        assert status(answer) == PRESETS[case.scheme].acknowledgement.status, answer[:200]


@pytest.mark.parametrize("scheme", sorted(PRESETS))
def test_the_fuzzed_signatures_are_such_as_the_door_takes_in(scheme: str, web: Web) -> None:
    item = {"pspReference": "P1", "eventCode": "CAPTURE", "success": "true"}
    event = {"id": "e_1", "resource_type": "payments", "action": "confirmed"}
    plain = json.dumps({"id": "e_1", "type": "a.b", "event_type": "a.b"}).encode()
    bodies = {"adyen": senders.adyen(item), "gocardless": senders.gocardless(event)}
    case = fuzz.Case(
        scheme, bodies.get(scheme, plain), signed=True, bent=None, headers={},
        method="POST", path="/hooks/{}/",
    )  # fmt: skip
    at = source(scheme)
    answer = web.send(fuzz.request(case, at.endpoint_token))
    assert status(answer) == PRESETS[scheme].acknowledgement.status


def test_the_server_lives_and_logged_no_error_meanwhile(web: Web) -> None:
    body = b'{"id":"evt_last"}'
    path = f"/hooks/{source('stripe').endpoint_token}/"
    assert web.post(path, body, {**senders.sign("stripe", body)}) == 200
    web.assert_quiet()
    # As many processes as it began with: none had to be started again.
    assert web.log.read_text().count("Booting worker") == 2
