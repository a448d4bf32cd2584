"""Words of the daily compare: a verdict as a badge, a cause as a sentence."""

from django import template
from django.utils.safestring import SafeString

from reliability.console import parts
from reliability.console.compared import CAUSES, WORDS
from reliability.models import Discrepancy

register = template.Library()


@register.simple_tag
def verdict_badge(one: Discrepancy) -> SafeString:
    return parts.badge(one.family, WORDS[one.verdict].lower())


@register.filter
def verdict_words(verdict: str) -> str:
    return WORDS.get(verdict, verdict)


@register.simple_tag
def cause_words(one: Discrepancy) -> str:
    """Say why, as far as the compare can: by cause, or by how far the figures are apart."""
    if words := CAUSES.get(one.cause, one.cause):
        return words
    if one.verdict == "unexpected":
        return "Its grace is over and no line of theirs speaks of it"
    if one.family == Discrepancy.Family.DUPLICATE:
        return "The same reference is listed before"
    if one.verdict == "amount_mismatch" and None not in (one.their_minor, one.our_minor):
        off = (one.our_minor or 0) - (one.their_minor or 0)
        apart = parts.money(abs(off), one.currency, one.exponent)
        return f"Ours is {apart} {'higher' if off > 0 else 'lower'}"
    return "–"
