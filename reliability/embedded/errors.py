"""What can go wrong with the embedded servers, each told in one line."""

from reliability.errors import ReliabilityError


class EmbeddedUnavailable(ReliabilityError):
    """The embedded servers cannot run here; the message is one line naming the remedy."""


class AlreadyRunning(ReliabilityError):
    """Another process holds this data folder; `url` is where its console answers, if known."""

    def __init__(self, url: str | None) -> None:
        super().__init__(
            f"Already running at {url}" if url else "Already starting in another process."
        )
        self.url = url
