"""The independent counters behave like a provider with idempotency keys, and count truly."""

import ast
import contextlib
import http.client
import json
import smtplib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Protocol

import pytest

from reliability.proof.counters.behaviour import Behaviour, changed
from reliability.proof.counters.exchange import Answer, Begun, Request, read_parameters
from reliability.proof.counters.ledger import Ledger
from reliability.proof.counters.mail import read_mail

PROOF = Path(__file__).parents[2] / "reliability" / "proof"
NOON = 1_792_411_200.0


@dataclass
class Clock:
    now: float = NOON

    def __call__(self) -> float:
        return self.now


@dataclass
class Provider:
    """A ledger with a clock the test owns."""

    store: Path
    behaviour: Behaviour = field(default_factory=Behaviour)
    seed: int = 7

    def __post_init__(self) -> None:
        self.clock = Clock()
        self.ledger = Ledger(self.store, self.behaviour, seed=self.seed, clock=self.clock)

    def begin(self, key: str = "k1", /, **parameters: object) -> Answer | Begun:
        return self.ledger.begin(
            Request(path="/v1/charges", key=key, parameters=parameters or {"amount": "1250"})
        )

    def post(self, key: str = "k1", /, **parameters: object) -> Answer:
        begun = self.begin(key, **parameters)
        return begun if isinstance(begun, Answer) else self.ledger.finish(begun)

    def behave(self, **wishes: object) -> None:
        self.ledger.behaviour = changed(self.ledger.behaviour, wishes)

    def count(self, name: str) -> Any:
        return self.ledger.counts()[name]


class Open(Protocol):
    def __call__(
        self, name: str = "sink", behaviour: Behaviour | None = None, seed: int = 7
    ) -> Provider: ...


@pytest.fixture
def open_ledger(tmp_path: Path) -> Iterator[Open]:
    opened: list[Provider] = []

    def begin(
        name: str = "sink", behaviour: Behaviour | None = None, seed: int = 7
    ) -> Provider:
        opened.append(Provider(tmp_path / f"{name}.jsonl", behaviour or Behaviour(), seed))
        return opened[-1]

    yield begin
    for provider in opened:
        provider.ledger.close()


@pytest.fixture
def provider(open_ledger: Open) -> Provider:
    return open_ledger()


def test_a_repeat_under_one_key_replays_the_answer_and_has_no_second_effect(
    provider: Provider,
) -> None:
    first, second = provider.post(), provider.post()
    assert (first.status, first.replayed) == (200, False)
    assert (second.status, second.replayed) == (200, True)
    assert second.body == first.body
    assert provider.count("requests") == 2
    assert provider.count("effects") == 1
    assert provider.count("replays") == 1


def test_a_stored_error_is_replayed_too(provider: Provider) -> None:
    provider.behave(fail_rate=1.0)
    assert provider.post().status == 500
    provider.behave(fail_rate=0.0)
    assert provider.post().status == 500
    assert provider.count("effects") == 0
    assert provider.post("k2").status == 200


def test_a_declined_customer_stays_declined_under_its_key(provider: Provider) -> None:
    provider.behave(declined_customers=["cus_bad"])
    assert provider.post("k1", customer="cus_bad").status == 402
    assert provider.post("k2", customer="cus_good").status == 200
    provider.behave(declined_customers=[])
    assert provider.post("k1", customer="cus_bad").status == 402


def test_the_second_request_is_told_409_while_the_first_is_in_flight(
    provider: Provider,
) -> None:
    begun = provider.begin()
    assert isinstance(begun, Begun)
    assert provider.count("in_flight") == 1
    assert provider.ledger.done_under("k1")["in_flight"] is True
    assert provider.post().status == 409
    provider.ledger.finish(begun)
    assert provider.post().status == 200
    assert provider.count("effects") == 1


def test_other_parameters_under_one_key_are_refused_with_400(provider: Provider) -> None:
    provider.post("k1", amount="1250", currency="eur")
    assert provider.post("k1", currency="eur", amount="1250").status == 200
    assert provider.post("k1", amount="1251", currency="eur").status == 400
    other_path = Request(path="/v1/refunds", key="k1", parameters={"amount": "1250"})
    refused = provider.ledger.begin(other_path)
    assert isinstance(refused, Answer)
    assert refused.status == 400
    assert provider.count("effects") == 1


def test_a_key_is_forgotten_when_its_window_has_passed_and_not_before(
    provider: Provider,
) -> None:
    provider.behave(window_seconds=3600.0)
    provider.post()
    provider.clock.now = NOON + 3599
    assert provider.post().replayed is True
    provider.clock.now = NOON + 3600
    assert provider.post().replayed is False
    assert provider.count("effects") == 2


def test_a_request_in_flight_is_not_forgotten_by_the_window(provider: Provider) -> None:
    provider.behave(window_seconds=1.0)
    provider.begin()
    provider.clock.now = NOON + 60
    assert provider.post().status == 409


def test_an_outage_hits_its_paths_only_and_is_not_remembered(provider: Provider) -> None:
    provider.behave(outage=True, outage_paths=["/v1/couriers"])
    assert provider.post().status == 200
    provider.behave(outage_paths=["/v1/ch"])
    assert provider.post("k2").status == 503
    provider.behave(outage=False)
    assert provider.post("k2").status == 200


@pytest.mark.parametrize(
    ("rate", "status"),
    [("throttle_rate", 429), ("unavailable_rate", 503), ("error_rate", 500)],
)
def test_a_refusal_before_anything_began_is_not_remembered(
    provider: Provider, rate: str, status: int
) -> None:
    provider.behave(**{rate: 1.0})
    assert provider.post().status == status
    provider.behave(**{rate: 0.0})
    assert provider.post().status == 200
    assert provider.count("by_status") == {"200": 1, str(status): 1}


def test_a_time_out_after_accepting_counts_and_its_repeat_is_answered(
    provider: Provider,
) -> None:
    provider.behave(time_out_after_accepting=1.0)
    assert provider.post().dead_line is True
    again = provider.post()
    assert (again.dead_line, again.replayed) == (False, True)
    assert provider.count("effects") == 1


def test_without_the_key_check_every_request_is_an_effect(open_ledger: Open) -> None:
    provider = open_ledger(behaviour=Behaviour(key_check=False))
    for _ in range(3):
        assert provider.post("k1", operation="ch_1").status == 200
    assert provider.count("effects") == 3
    assert provider.count("operations") == 1
    assert provider.count("repeated_operations") == ["ch_1"]


def test_a_request_without_a_key_is_an_effect_each_time(provider: Provider) -> None:
    provider.post("")
    provider.post("")
    assert provider.count("effects") == 2
    assert provider.count("without_key") == 2


def test_an_operation_done_under_two_keys_is_named(provider: Provider) -> None:
    provider.post("k1", operation="ch_1")
    provider.post("k2", metadata={"operation": "ch_1"})
    provider.post("k3", **{"metadata[operation]": "ch_2"})
    assert provider.count("operations") == 2
    assert provider.count("operations_with_several_keys") == ["ch_1"]
    assert provider.ledger.counts(by_key=True)["by_key"] == {
        "k1": {"requests": 1, "effects": 1},
        "k2": {"requests": 1, "effects": 1},
        "k3": {"requests": 1, "effects": 1},
    }


def test_digests_agree_for_the_same_effects_under_other_keys_and_in_another_order(
    open_ledger: Open,
) -> None:
    one, two = open_ledger("one"), open_ledger("two")
    one.post("a", operation="ch_1")
    one.post("b", operation="ch_2")
    two.post("c", operation="ch_2")
    assert one.count("digest") != two.count("digest")
    two.post("d", operation="ch_1")
    assert one.count("digest") == two.count("digest")
    two.post("e", operation="ch_1")
    assert one.count("digest") != two.count("digest")


def test_the_drawn_faults_are_the_same_in_whatever_order_the_keys_come(
    open_ledger: Open,
) -> None:
    keys = [f"k{n}" for n in range(200)]
    one, two, other = (
        open_ledger(name, Behaviour(fail_rate=0.5), seed)
        for name, seed in (("one", 1), ("two", 1), ("other", 2))
    )
    forward = {key: one.post(key).status for key in keys}
    backward = {key: two.post(key).status for key in reversed(keys)}
    assert forward == backward
    assert 60 < sum(status == 500 for status in forward.values()) < 140
    assert forward != {key: other.post(key).status for key in keys}


def test_a_restarted_counter_continues_its_file_and_cuts_a_torn_line(
    provider: Provider, open_ledger: Open
) -> None:
    provider.post("k1")
    provider.begin("never finished")
    with provider.store.open("a") as store:
        store.write('{"type": "request", "at')
    again = open_ledger()
    assert again.post("k1").replayed is True
    assert again.post("never finished").replayed is False
    assert open_ledger().count("requests") == 3
    assert open_ledger().count("effects") == 2


def test_a_control_that_does_not_exist_or_fit_is_refused() -> None:
    for wishes in (
        {"outtage": True},
        {"outage": 1},
        {"fail_rate": True},
        {"fail_rate": -0.1},
        {"fail_rate": "0.1"},
        {"outage_paths": "/v1"},
    ):
        with pytest.raises(ValueError, match="no such control or value"):
            changed(Behaviour(), wishes)


def test_form_and_json_bodies_are_read_and_others_refused() -> None:
    assert read_parameters(b"amount=5&currency=eur", "application/x-www-form-urlencoded") == {
        "amount": "5",
        "currency": "eur",
    }
    assert read_parameters(b'{"amount": 5}', "application/json") == {"amount": 5}
    for body in (b"[1]", b"{", b"\xff"):
        with pytest.raises(ValueError, match=r".+"):
            read_parameters(body, "application/json")


def test_a_mail_in_an_unknown_charset_is_kept_as_it_came() -> None:
    raw = b"Subject: x\r\nX-Key: k\r\nContent-Type: text/plain; charset=klingon\r\n\r\nqapla'\r\n"
    mail = read_mail(raw)
    assert mail["headers"] == {"X-Key": "k"}
    assert "qapla'" in mail["body"]


@dataclass(frozen=True)
class Process:
    http_port: int
    smtp_port: int
    pid: int

    def ask(
        self, method: str, path: str, body: object = None, key: str = ""
    ) -> tuple[int, Any, http.client.HTTPResponse]:
        line = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=20)
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        line.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = line.getresponse()
        text = response.read().decode()
        line.close()
        lines = [json.loads(part) for part in text.splitlines()]
        return response.status, lines if path in {"/effects", "/mails"} else lines[0], response

    def announce(self, length: int) -> int:
        """Say how long a body will be, send none of it, and return the answer's status."""
        line = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=20)
        with contextlib.closing(line):
            line.putrequest("POST", "/v1/charges")
            line.putheader("Content-Length", str(length))
            line.endheaders()
            return line.getresponse().status

    def control(self, **wishes: object) -> None:
        assert self.ask("POST", "/control", wishes)[0] == 200


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def begin(*options: str) -> Process:
        command = [sys.executable, str(PROOF / "sink.py"), "--folder", str(tmp_path), *options]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(child)
        assert child.stdout is not None
        facts = json.loads(child.stdout.readline())
        return Process(facts["http_port"], facts["smtp_port"], facts["pid"])

    yield begin
    for child in started:
        child.terminate()
        assert child.wait(10) == 0
        assert child.stdout is not None
        child.stdout.close()


def test_the_process_answers_replays_and_lists_over_http(start: Start) -> None:
    sink = start()
    charge = {"amount": 1250, "currency": "eur", "operation": "ch_1"}
    status, first, response = sink.ask("POST", "/v1/charges", charge, "k1")
    assert (status, response.getheader("Idempotent-Replayed")) == (200, None)
    status, again, response = sink.ask("POST", "/v1/charges", charge, "k1")
    assert (status, response.getheader("Idempotent-Replayed")) == (200, "true")
    assert again == first
    assert sink.ask("POST", "/v1/charges", charge | {"amount": 1}, "k1")[0] == 400
    assert sink.ask("GET", "/effects")[1] == [first]
    assert sink.ask("GET", "/v1/charges?idempotency_key=k1")[1]["data"] == [first]
    assert sink.ask("GET", "/v1/charges?idempotency_key=k2")[1]["data"] == []
    counts = sink.ask("GET", "/counts?by_key=1")[1]
    assert (counts["requests"], counts["effects"]) == (3, 1)
    assert counts["by_key"] == {"k1": {"requests": 3, "effects": 1}}


def test_many_callers_at_once_under_one_key_get_one_effect(start: Start) -> None:
    sink = start("--latency-ms", "150")
    statuses: list[int] = []
    callers = [
        threading.Thread(
            target=lambda: statuses.append(sink.ask("POST", "/v1/charges", {"a": 1}, "k")[0])
        )
        for _ in range(20)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert set(statuses) == {200, 409}
    assert sink.ask("GET", "/counts")[1]["effects"] == 1


def test_the_control_run_counts_every_request(start: Start) -> None:
    sink = start("--no-key-check")
    for _ in range(3):
        sink.ask("POST", "/v1/charges", {"operation": "ch_1"}, "k1")
    assert sink.ask("GET", "/counts")[1]["effects"] == 3


def test_a_dead_line_after_accepting_leaves_the_caller_without_an_answer(
    start: Start,
) -> None:
    sink = start()
    sink.control(time_out_after_accepting=1.0)
    with pytest.raises(http.client.RemoteDisconnected):
        sink.ask("POST", "/v1/charges", {"operation": "ch_1"}, "k1")
    assert sink.ask("POST", "/v1/charges", {"operation": "ch_1"}, "k1")[0] == 200
    assert sink.ask("GET", "/counts")[1]["effects"] == 1


def test_what_is_no_request_gets_a_plain_refusal(start: Start) -> None:
    sink = start()
    assert sink.ask("POST", "/control", {"outtage": True})[0] == 400
    assert sink.ask("POST", "/v1/charges", [1], "k")[0] == 400
    assert sink.ask("POST", "/charges", {}, "k")[0] == 404
    assert sink.ask("GET", "/nowhere")[0] == 404
    assert sink.announce(1024 * 1024 + 1) == 413
    assert sink.ask("GET", "/counts")[1]["requests"] == 0


def _mail(number: int) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"] = "billing@acme.example", "ines@customer.example"
    mail["Subject"], mail["Message-ID"] = (
        f"Receipt {number} – paid",
        f"<r{number}@acme.example>",
    )
    mail["X-Idempotency-Key"] = f"key-{number}"
    mail.set_content(".a line that begins with a dot\nThank you, Inès.\n")
    return mail


def test_a_mail_over_smtp_is_counted_and_kept_with_its_marks(start: Start) -> None:
    sink = start()
    with smtplib.SMTP("127.0.0.1", sink.smtp_port, timeout=10) as client:
        client.send_message(_mail(1))
        client.send_message(_mail(2))
        client.send_message(_mail(2))
    mail = sink.ask("GET", "/mails")[1][0]
    assert mail["message_id"] == "<r1@acme.example>"
    assert mail["subject"] == "Receipt 1 – paid"
    assert mail["to"] == "ines@customer.example"
    assert mail["recipients"] == ["ines@customer.example"]
    assert mail["headers"] == {"X-Idempotency-Key": "key-1"}
    assert mail["body"] == ".a line that begins with a dot\nThank you, Inès.\n"
    counts = sink.ask("GET", "/counts")[1]
    assert (counts["mails"], counts["message_ids"]) == (3, 2)
    assert counts["repeated_message_ids"] == ["<r2@acme.example>"]


def test_a_mail_outage_is_a_temporary_refusal_and_a_dead_line_keeps_the_mail(
    start: Start,
) -> None:
    sink = start()
    sink.control(mail_outage=True)
    with (
        smtplib.SMTP("127.0.0.1", sink.smtp_port, timeout=10) as client,
        pytest.raises(smtplib.SMTPRecipientsRefused, match="451"),
    ):
        client.send_message(_mail(1))
    sink.control(mail_outage=False, time_out_after_accepting=1.0)
    with (
        pytest.raises(smtplib.SMTPServerDisconnected),
        smtplib.SMTP("127.0.0.1", sink.smtp_port, timeout=10) as client,
    ):
        client.send_message(_mail(1))
    assert sink.ask("GET", "/counts")[1]["mails"] == 1


def test_the_counters_import_the_standard_library_and_each_other_only() -> None:
    for source in [PROOF / "sink.py", *(PROOF / "counters").glob("*.py")]:
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            else:
                continue
            for name in names:
                assert name.partition(".")[0] in sys.stdlib_module_names, (source, name)
