"""The SMTP door: takes every mail and keeps what is needed to tell a repeat."""

import socketserver
from collections.abc import Callable
from email import message_from_bytes, policy
from email.message import EmailMessage

from .exchange import Facts
from .ledger import Ledger

MAIL_BYTES_MAX = 1024 * 1024
LINE_BYTES_MAX = 1000  # RFC 5321 section 4.5.3.1.6
RECIPIENTS_MAX = 100  # RFC 5321 section 4.5.3.1.8
IDLE_SECONDS_MAX = 120


class MailServer(socketserver.ThreadingTCPServer):
    """Listen on loopback only, one thread a connection."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, port: int, ledger: Ledger) -> None:
        self.ledger = ledger
        super().__init__(("127.0.0.1", port), MailDoor)


class MailDoor(socketserver.StreamRequestHandler):
    """One SMTP conversation (RFC 5321), without extensions."""

    server: MailServer
    timeout = IDLE_SECONDS_MAX

    def handle(self) -> None:
        """Talk until the client quits, hangs up or sends a line that is too long."""
        self.sender, self.recipients = "", list[str]()
        self._say("220 sink ready")
        while line := self.rfile.readline(LINE_BYTES_MAX):
            text = line.decode("utf-8", "replace").strip()
            verb, _, rest = text.partition(" ")
            reply = self._answer(verb.upper(), rest)
            if reply is None:
                return
            self._say(reply)
            if reply.startswith("221"):
                return

    def _answer(self, verb: str, rest: str) -> str | None:
        verbs: dict[str, Callable[[str], str | None]] = {
            "HELO": self._reset,
            "EHLO": self._reset,
            "RSET": self._reset,
            "MAIL": self._from,
            "RCPT": self._recipient,
            "DATA": self._mail,
            "NOOP": lambda _: "250 OK",
            "QUIT": lambda _: "221 Bye",
        }
        act = verbs.get(verb)
        return act(rest) if act else "502 Command not implemented"

    def _reset(self, _rest: str) -> str:
        self.sender, self.recipients = "", []
        return "250 sink"

    def _from(self, rest: str) -> str:
        self.sender = _address(rest)
        return "250 OK"

    def _recipient(self, rest: str) -> str:
        if self.server.ledger.behaviour.mail_outage:
            return "451 Try again later"
        if len(self.recipients) >= RECIPIENTS_MAX:
            return "452 Too many recipients"
        self.recipients.append(_address(rest))
        return "250 OK"

    def _mail(self, _rest: str) -> str | None:
        """Read one mail; None hangs up without an answer although it was taken."""
        if not self.recipients:
            return "503 Need RCPT first"
        self._say("354 End with a dot on a line of its own")
        raw = self._data()
        if raw is None:
            return None
        if len(raw) > MAIL_BYTES_MAX:
            return "552 Too large"
        facts = {"sender": self.sender, "recipients": self.recipients, **read_mail(raw)}
        self.sender, self.recipients = "", []
        return "250 Taken" if self.server.ledger.take_mail(facts) else None

    def _data(self) -> bytes | None:
        """Read up to the dot; None where the client hung up before it: no mail then."""
        raw = bytearray()
        while line := self.rfile.readline(MAIL_BYTES_MAX):
            if line in {b".\r\n", b".\n"}:
                return bytes(raw)
            if len(raw) <= MAIL_BYTES_MAX:
                raw += line[1:] if line.startswith(b".") else line
        return None

    def _say(self, text: str) -> None:
        self.wfile.write(text.encode() + b"\r\n")


def read_mail(raw: bytes) -> Facts:
    """Read Message-ID, subject, addressee, X- headers and text; bytes that are no text stay raw."""
    mail = message_from_bytes(raw, policy=policy.default)
    return {
        "message_id": str(mail.get("Message-ID", "")),
        "subject": str(mail.get("Subject", "")),
        "to": str(mail.get("To", "")),
        "headers": {n: str(v) for n, v in mail.items() if n.lower().startswith("x-")},
        "body": _text(mail) or raw.decode("utf-8", "replace"),
    }


def _text(mail: EmailMessage) -> str:
    part = mail.get_body(preferencelist=("plain", "html"))
    try:
        text = str(part.get_content()) if part is not None else ""
        return text.replace("\r\n", "\n")
    except (LookupError, ValueError):  # an unknown charset or encoding
        return ""


def _address(rest: str) -> str:
    return rest.partition(":")[2].strip().partition(">")[0].lstrip("<")
