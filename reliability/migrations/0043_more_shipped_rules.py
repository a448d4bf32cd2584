"""Give each tenant the rules shipped since: ageing ready jobs, a silent beat, an old snapshot."""

from django.db import migrations

RULES = (
    ("oldest ready job", "Due jobs are not started", 600, 120),
    ("beat silent", "Beat is silent", 360, 180),
    ("old snapshot", "An old snapshot is held", 60, 30),
)


def ship(apps, schema_editor):
    """Tell whoever the tenant's rule on the sweep tells."""
    rules = apps.get_model("reliability", "AlertRule").objects.using(schema_editor.connection.alias)
    for known in list(rules.filter(measure="sweep late", source=None)):
        for measure, name, high, low in RULES:
            if not rules.filter(tenant_id=known.tenant_id, measure=measure).exists():
                rules.create(
                    tenant_id=known.tenant_id, measure=measure, name=name, high=high, low=low,
                    hold_seconds=0, emails=known.emails, owner=known.owner, enabled=known.enabled,
                )


class Migration(migrations.Migration):
    dependencies = [("reliability", "0042_silences_and_mornings")]

    operations = [migrations.RunPython(ship, migrations.RunPython.noop)]
