"""The console's tags: thin names over ``parts``; none of them asks the database."""

from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from reliability.console import parts, redact
from reliability.console.lists.dead_letters import came_back, headline
from reliability.console.views.alerts import in_words

register = template.Library()

register.simple_tag(parts.badge)
register.simple_tag(came_back)
register.simple_tag(headline)
register.simple_tag(in_words, name="measured")
register.simple_tag(parts.icon)
register.simple_tag(parts.money)
register.simple_tag(parts.strata)
register.filter("hide", redact.hide)
register.filter("number", parts.number)
register.filter("span", parts.span)


@register.simple_tag(takes_context=True)
def ago(context: dict[str, Any], at: datetime | None, zone: str = "UTC") -> SafeString:
    return parts.when(at, parts.ago(at, context["now"]), zone)


@register.simple_tag(takes_context=True)
def at(context: dict[str, Any], moment: datetime | None, zone: str = "UTC") -> SafeString:
    """Show a clock time, with its date where that is not today's."""
    words = parts.clock(moment, context["now"]) if moment else ""
    return parts.when(moment, words, zone)


@register.filter
def plural(count: Any, words: str) -> str:
    """Write a count with its noun: ``{{ n|plural:"letter,letters" }}``."""
    one, many = words.split(",")
    exactly_one = getattr(count, "number", count) == 1 and not getattr(count, "more", False)
    return f"{parts.number(count)} {one if exactly_one else many}"


@register.simple_tag
def rows(count: Any, of: str = "") -> SafeString:
    """Mark a link with how many rows lie behind it; write it inside its opening tag.

    ``of`` names the column or the word of a row that is added up, where a row stands for more
    than itself. The fragment of the link's address names the part of its page that has the rows.
    """
    counted = (
        f"{getattr(count, 'number', count)}{'+' if getattr(count, 'more', False) else ''}"
    )
    if of:
        return format_html('data-rows="{}" data-of="{}"', counted, of)
    return format_html('data-rows="{}"', counted)


@register.filter
def seconds(length: Any) -> str:
    """Write a duration, or a number of seconds, in whole seconds or more."""
    whole = int(getattr(length, "total_seconds", lambda: length)())
    return parts.span(timedelta(seconds=whole))


@register.filter
def tone(level: str) -> str:
    """Return the state whose tone a message of this level speaks in."""
    return {"success": "good", "warning": "warn", "error": "bad"}.get(level, "info")


@register.filter
def toned(state: str) -> str:
    """Return the state whose tone this one is drawn in."""
    return parts.TONES.get(state, state)


@register.simple_tag
def state_icon(state: str) -> SafeString:
    return parts.icon(parts.ICONS.get(state, "dot"))


@register.simple_tag
def layer(number: int) -> SafeString:
    """Sign something with the layer that did it."""
    word = {1: "Claim", 2: "Sweep", 3: "Compare"}[number]
    return format_html('<span class="lay">{}{}</span>', parts.strata(number), word)
