"""The one way out: every request to an address somebody gave us passes its checks."""

from reliability.outbound.client import Answer, Request, check, check_host, check_own, send
from reliability.outbound.guard import Guard, guard

__all__ = ["Answer", "Guard", "Request", "check", "check_host", "check_own", "guard", "send"]
