"""The counters' own memory: every request, effect and mail, in an append-only file."""

import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from .behaviour import Behaviour
from .exchange import Answer, Begun, Facts, Request, digest, error

KEY_CHARACTERS_MAX = 255
NAMES_SHOWN_MAX = 20


class Ledger:
    """What a provider with idempotency keys remembers, in the manner of Stripe's.

    A ledger opened on an existing file continues it. Methods may be called from any thread;
    `clock` gives epoch seconds. https://docs.stripe.com/api/idempotent_requests
    """

    def __init__(
        self, store: Path, behaviour: Behaviour, *, seed: int, clock: Callable[[], float]
    ) -> None:
        self.behaviour = behaviour
        self.effects: list[Facts] = []
        self.mails: list[Facts] = []
        self._seed, self._clock, self._lock = seed, clock, threading.Lock()
        self._begun: dict[str, Begun] = {}
        self._requests: Counter[str] = Counter()
        self._statuses: Counter[int] = Counter()
        self._replays = 0
        for line in _whole_lines(store):
            self._take(json.loads(line))
        self._file = store.open("ab")

    def close(self) -> None:
        """Close the file; every line is already on it."""
        self._file.close()

    def begin(self, request: Request) -> Answer | Begun:
        """Start a request, or answer at once: refused, in flight, other parameters, replay."""
        with self._lock:
            begun = Begun(request=request, at=self._clock())
            answer = self._refusal(request) or self._known(begun)
            if answer is not None:
                self._note(begun, answer)
                return answer
            if request.key and self.behaviour.key_check:
                self._begun[request.key] = begun
            return begun

    def finish(self, begun: Begun) -> Answer:
        """Let a request take effect, or fail for good under its key."""
        request, effect = begun.request, None
        with self._lock:
            if request.parameters.get("customer") in self.behaviour.declined_customers:
                answer = error(402, "card_error", "Your card was declined.")
            elif self._drawn("fail_rate", request.key):
                answer = error(500, "api_error", "Something went wrong on our end.")
            else:
                effect = self._effect(request)
                dead_line = self._drawn("time_out_after_accepting", request.key)
                answer = Answer(status=200, body=effect, dead_line=dead_line)
            self._note(begun, answer, effect=effect, remembered=True)
            return answer

    def take_mail(self, mail: Facts) -> bool:
        """Store a mail; False means that its sender shall never hear of it."""
        with self._lock:
            number = len(self.mails) + 1
            self._write({"type": "mail", "n": number, "at": self._clock(), **mail})
            return not self._drawn("time_out_after_accepting", f"mail {number}")

    def done_under(self, key: str) -> Facts:
        """List the effects of a key; while one is in flight nobody can tell yet."""
        with self._lock:
            begun = self._begun.get(key)
            in_flight = begun is not None and begun.answer is None
            data = [effect for effect in self.effects if effect["key"] == key]
            return {"object": "list", "data": data, "in_flight": in_flight}

    def counts(self, *, by_key: bool = False) -> Facts:
        """Count everything; the digests leave out keys, ids and times."""
        with self._lock:
            facts = self._request_counts() | self._effect_counts() | self._mail_counts()
            if by_key:
                effects = Counter(effect["key"] for effect in self.effects)
                facts["by_key"] = {
                    key: {"requests": n, "effects": effects[key]}
                    for key, n in self._requests.items()
                }
            return facts

    def _request_counts(self) -> Facts:
        return {
            "requests": self._requests.total(),
            "by_status": {str(s): n for s, n in sorted(self._statuses.items())},
            "replays": self._replays,
            "without_key": self._requests[""],
            "in_flight": sum(begun.answer is None for begun in self._begun.values()),
        }

    def _effect_counts(self) -> Facts:
        named = [(e["operation"], e["key"]) for e in self.effects if e["operation"]]
        effects = Counter(operation for operation, _ in named)
        keys = Counter(operation for operation, _ in set(named))
        return {
            "effects": len(self.effects),
            "effects_by_path": dict(Counter(effect["path"] for effect in self.effects)),
            "operations": len(effects),
            "repeated_operations": _more_than_one(effects),
            "operations_with_several_keys": _more_than_one(keys),
            "digest": digest(effect["fingerprint"] for effect in self.effects),
        }

    def _mail_counts(self) -> Facts:
        texts = [json.dumps([m["to"], m["subject"], m["body"]]) for m in self.mails]
        ids = Counter(mail["message_id"] for mail in self.mails)
        return {
            "mails": len(self.mails),
            "message_ids": len(ids),
            "repeated_message_ids": _more_than_one(ids),
            "mail_digest": digest(texts),
        }

    def _refusal(self, request: Request) -> Answer | None:
        """Refuse before anything begins: such an answer is not remembered."""
        hit = request.path.startswith(tuple(self.behaviour.outage_paths))
        if (self.behaviour.outage and hit) or self._drawn("unavailable_rate", request.key):
            return error(503, "api_error", "The provider is not available.")
        if self._drawn("error_rate", request.key):
            return error(500, "api_error", "Something went wrong before anything began.")
        if self._drawn("throttle_rate", request.key):
            return error(429, "rate_limit_error", "Too many requests.")
        if len(request.key) > KEY_CHARACTERS_MAX:
            return error(400, "idempotency_error", "The key is too long.")
        return None

    def _known(self, begun: Begun) -> Answer | None:
        known = self._begun.get(begun.request.key) if self.behaviour.key_check else None
        if known is None:
            return None
        if known.answer and begun.at - known.at >= self.behaviour.window_seconds:
            return None
        if known.request.fingerprint != begun.request.fingerprint:
            return error(400, "idempotency_error", "The key was used with other parameters.")
        if known.answer is None:
            return error(409, "idempotency_error", "A request with this key is in flight.")
        return replace(known.answer, replayed=True, dead_line=False)

    def _drawn(self, rate: str, key: str) -> bool:
        """Draw from seed, key and turn: the order among different keys changes nothing."""
        lot = digest([f"{self._seed} {rate} {self._requests[key]} {key}"])
        chance: float = getattr(self.behaviour, rate)
        return int(lot[:12], 16) / 16**12 < chance

    def _effect(self, request: Request) -> Facts:
        number = len(self.effects) + 1
        facts = {"id": f"sink_{number:08d}", "n": number, "at": self._clock()}
        named = {"fingerprint": request.fingerprint, "operation": request.operation}
        return facts | named | asdict(request)

    def _note(
        self,
        begun: Begun,
        answer: Answer,
        *,
        effect: Facts | None = None,
        remembered: bool = False,
    ) -> None:
        facts = {"type": "request", "at": begun.at, "remembered": remembered}
        told = {"request": asdict(begun.request), "answer": asdict(answer), "effect": effect}
        self._write(facts | told)

    def _write(self, line: Facts) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        self._take(line)

    def _take(self, line: Facts) -> None:
        if line["type"] == "mail":
            self.mails.append(line)
            return
        request, answer = Request(**line["request"]), Answer(**line["answer"])
        self._requests[request.key] += 1
        self._statuses[answer.status] += 1
        self._replays += answer.replayed
        if line["effect"] is not None:
            self.effects.append(line["effect"])
        if line["remembered"] and request.key:
            self._begun[request.key] = Begun(request=request, at=line["at"], answer=answer)


def _whole_lines(store: Path) -> list[bytes]:
    """Read what an earlier process wrote; a line torn by its end is cut off."""
    if not store.exists():
        return []
    text = store.read_bytes()
    whole = text.rfind(b"\n") + 1
    os.truncate(store, whole)
    return text[:whole].splitlines()


def _more_than_one(counts: Counter[str]) -> list[str]:
    return sorted(name for name, n in counts.items() if n > 1)[:NAMES_SHOWN_MAX]
