"""Indexes by which every list is read in its own order, whatever it is narrowed to."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

OPEN = models.Q(("status", "open"))
NEWEST = ["-buried_at", "-id"]


def letters(name: str, *fields: str, condition: models.Q = OPEN) -> AddIndexConcurrently:
    return AddIndexConcurrently(
        model_name="deadletter",
        index=models.Index(
            fields=["tenant", *fields], name=name, condition=condition
        ),
    )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("reliability", "0049_alert_channels")]

    operations = [
        # A million rows take a while; every other session keeps its limits.
        migrations.RunSQL(
            "SET statement_timeout = '1h'; SET lock_timeout = 0",
            "SET statement_timeout = '1h'; SET lock_timeout = 0",
        ),
        RemoveIndexConcurrently(model_name="deadletter", name="letters_open_by_cause"),
        letters("letters_open_by_cause", "fingerprint", *NEWEST),
        letters("letters_open_of_a_kind", "kind", *NEWEST),
        letters("letters_open_of_an_error", "error_type", *NEWEST),
        letters("letters_open_by_outcome", "outcome", *NEWEST),
        letters(
            "letters_open_again",
            *NEWEST,
            condition=models.Q(("round__gt", 1), ("status", "open")),
        ),
        letters(
            "letters_open_by_amount",
            "currency",
            "amount_minor",
            condition=models.Q(("currency__isnull", False), ("status", "open")),
        ),
        letters("letters_closed_newest", "status", *NEWEST, condition=~OPEN),
        AddIndexConcurrently(
            model_name="job",
            index=models.Index(fields=["tenant", "kind", "-id"], name="jobs_of_a_kind"),
        ),
        AddIndexConcurrently(
            model_name="receipt",
            index=models.Index(
                fields=["tenant", "verdict", "-id"],
                name="receipts_of_repeats",
                condition=~models.Q(("verdict", "accepted")),
            ),
        ),
        AddIndexConcurrently(
            model_name="receipt",
            index=models.Index(
                fields=["tenant", "-id"],
                name="receipts_suspected",
                condition=models.Q(("suspected_replay", True)),
            ),
        ),
        migrations.RunSQL(
            "RESET statement_timeout; RESET lock_timeout",
            "RESET statement_timeout; RESET lock_timeout",
        ),
    ]
