"""Words of the daily compare: a verdict as a badge, a cause as a sentence."""

from django import template
from django.utils.safestring import SafeString

from reliability.console import parts
from reliability.console.compared import CAUSES, WORDS, ours_of, why
from reliability.models import Discrepancy

register = template.Library()


@register.simple_tag
def verdict_badge(one: Discrepancy) -> SafeString:
    return parts.badge(one.family, WORDS[one.verdict].lower())


@register.filter
def verdict_words(verdict: str) -> str:
    return WORDS.get(verdict, verdict)


@register.filter
def cause_in_words(cause: str) -> str:
    return CAUSES.get(cause, cause)


@register.simple_tag
def our_amount(one: Discrepancy) -> str:
    """Print what took effect here, in our own currency and decimals."""
    return ours_of(one)


@register.simple_tag
def cause_words(one: Discrepancy) -> str:
    return why(one)
