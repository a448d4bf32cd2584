"""Who of a tenant is told: the addresses its enabled rules name."""

from __future__ import annotations

from reliability.models import AlertRule, Tenant


def addresses(tenant: Tenant) -> list[str]:
    """Return the addresses that enabled rules of a tenant tell, each once."""
    told = AlertRule.objects.filter(tenant=tenant, enabled=True).order_by("pk")
    found = (email for emails in told.values_list("emails", flat=True) for email in emails)
    return list(dict.fromkeys(found))
