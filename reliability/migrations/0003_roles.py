"""Ship the roles as groups; permissions follow in post_migrate, when they exist."""

from django.db import migrations


def create_roles(apps, schema_editor):
    group = apps.get_model("auth", "Group")
    for name in ("viewer", "operator", "approver", "admin"):
        group.objects.get_or_create(name=f"reliability {name}")


class Migration(migrations.Migration):
    dependencies = [
        ("reliability", "0002_guards"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [migrations.RunPython(create_roles, migrations.RunPython.noop)]
