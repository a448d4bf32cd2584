"""Fifty deliveries of one event at once, from two processes, against the real web server."""

import json
import subprocess
import sys

import pytest

from reliability.models import Delivery, Job, Operation, ProcessedKey, Receipt
from tests.database import senders
from tests.database.live import Web

pytestmark = pytest.mark.django_db(transaction=True)

EACH = 25
BODY = json.dumps(
    {
        "id": "evt_crowd",
        "type": "charge.succeeded",
        "data": {"object": {"id": "ch_crowd", "amount": 1000, "currency": "eur",
                            "captured": True}},
    }
).encode()  # fmt: skip

# A process of its own: threads that wait for each other, then post the same bytes at once.
SENDER = """
import json, sys, threading, urllib.request
url, headers, body, each = json.loads(sys.argv[1])
start, answers = threading.Barrier(each), []
def post():
    request = urllib.request.Request(url, body.encode(), headers)
    start.wait()
    with urllib.request.urlopen(request, timeout=30) as answer:
        answers.append((answer.status, json.loads(answer.read())["status"]))
threads = [threading.Thread(target=post) for _ in range(each)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(answers))
"""


def test_fifty_deliveries_at_once_from_two_processes_are_one_claim_and_one_job(
    web: Web,
) -> None:
    source = senders.source("stripe")
    url = f"http://127.0.0.1:{web.port}/hooks/{source.endpoint_token}/"
    asked = json.dumps([url, senders.sign("stripe", BODY), BODY.decode(), EACH])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SENDER, asked], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    answers = [answer for each in processes for answer in json.loads(each.communicate()[0])]
    assert sorted(answers) == [[200, "accepted"]] + [[200, "duplicate"]] * 49
    assert (ProcessedKey.objects.count(), Operation.objects.count()) == (1, 1)
    assert (Job.objects.count(), Delivery.objects.count()) == (1, 50)
    assert Receipt.objects.filter(verdict="duplicate").count() == 49
    web.assert_quiet()
