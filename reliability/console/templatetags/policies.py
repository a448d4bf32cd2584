"""Tags of the pages that speak of times to come: policies, limits, health."""

from django import template

from reliability.work.limits import in_words

register = template.Library()

register.filter("lasting", in_words)
