"""How the story's mails are named, for those who send them and those who count them."""

from reliability.handlers import DownstreamKey

FOLLOW_UP = "story.follow_up"
"""The kind of job by which a local event's handler owes somebody a mail."""
STORY_HEADER = "X-Story"
"""Marks the story's mails: alerts go to the same sink."""


def message_id(key: DownstreamKey) -> str:
    """Return the Message-ID of the one mail of the job with this downstream key."""
    return f"<{key('mail')}@story.example.com>"
