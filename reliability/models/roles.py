"""The shipped roles: four groups, each with the permissions its people need."""

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db.models import Q

VIEW = (
    "view_deadletter", "view_job", "view_report", "view_alert", "view_source", "view_auditentry",
)  # fmt: skip
OPERATE = (
    "requeue_deadletter", "discard_deadletter", "recover_discrepancy", "upload_statement",
    "view_payload", "pause_work", "add_silence", "send_test",
)  # fmt: skip
APPROVE = ("sign_report", "approve_redrive")
ADMINISTER = (
    "add_source", "change_source", "add_membership", "change_membership", "delete_membership",
    "change_alertrule", "view_apitoken", "add_apitoken", "delete_apitoken",
)  # fmt: skip

ROLES: dict[str, tuple[str, ...]] = {
    "viewer": VIEW,
    "operator": VIEW + OPERATE,
    "approver": VIEW + OPERATE + APPROVE,
    "admin": VIEW + OPERATE + APPROVE + ADMINISTER,
}


def group_name(role: str) -> str:
    """Return the Django group that carries a role."""
    return f"reliability {role}"


def grant(**_: Any) -> None:
    """Give each shipped group its permissions. Runs after every migrate; adds, never takes away."""
    for role, codenames in ROLES.items():
        group, _created = Group.objects.get_or_create(name=group_name(role))
        group.permissions.add(
            *Permission.objects.filter(
                Q(content_type__app_label="reliability", codename__in=codenames)
            )
        )
