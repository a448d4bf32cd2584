"""Start the independent counters as a process of their own, and ask them what they counted."""

import json
import subprocess
import sys
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("sink.py")
ANSWER_SECONDS = 10
STOP_SECONDS = 5


class Sink:
    """The fake provider and the SMTP sink; they outlive a kill of anything of ours but us."""

    def __init__(
        self, folder: Path, *, seed: int = 0, latency_ms: float = 0, key_check: bool = True
    ) -> None:
        """Start it, what an earlier one counted there forgotten, and wait until it listens."""
        options = [f"--folder={folder}", f"--seed={seed}", f"--latency-ms={latency_ms}"]
        options += ["--follow-parent", *([] if key_check else ["--no-key-check"])]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "sink.jsonl").unlink(missing_ok=True)
        with (folder / "sink.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, str(SCRIPT), *options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        ports = json.loads(self._process.stdout.readline())
        self._http_port, self._smtp_port = int(ports["http_port"]), int(ports["smtp_port"])

    @property
    def url(self) -> str:
        """Return where the fake provider answers, and lists what it counted."""
        return f"http://127.0.0.1:{self._http_port}"

    @property
    def environment(self) -> dict[str, str]:
        """Return what processes need to know to have their effects here."""
        return {
            "RELIABILITY_SINK": self.url,
            "EMAIL_URL": f"smtp://127.0.0.1:{self._smtp_port}",
        }

    def stop(self) -> None:
        """End it; what it counted stays in its folder."""
        self._process.terminate()
        self._process.wait(STOP_SECONDS)
        if self._process.stdout:
            self._process.stdout.close()

    def control(self, **wishes: Any) -> None:
        """Change how it behaves: fields of counters/behaviour.py."""
        self._ask("POST", "/control", wishes)

    def counts(self, *, by_key: bool = False) -> Any:
        """Return its figures, those of each key too where asked."""
        return json.loads(self._ask("GET", f"/counts{'?by_key=1' if by_key else ''}"))

    def mails(self) -> list[Any]:
        """Return every mail it took."""
        return [json.loads(line) for line in self._ask("GET", "/mails").splitlines()]

    def effects_under(self, key: str) -> int | None:
        """Count the effects of one key; `None` while a request with it is under way."""
        found = json.loads(self._ask("GET", f"/v1/effects?idempotency_key={key}"))
        return None if found["in_flight"] else len(found["data"])

    def _ask(self, method: str, path: str, facts: Mapping[str, Any] | None = None) -> bytes:
        connection = HTTPConnection("127.0.0.1", self._http_port, timeout=ANSWER_SECONDS)
        try:
            body = None if facts is None else json.dumps(facts)
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status >= 400:  # noqa: PLR2004 - an error, says HTTP
            raise ValueError(f"the sink answered {response.status} to {path}: {content!r}")
        return content
