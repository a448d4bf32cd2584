"""The effect of every contender as a model, for those who bring it about by the ORM."""

from django.db import models


class Effect(models.Model):
    """One effect; the database stamps it."""

    key = models.TextField(primary_key=True)

    class Meta:
        app_label = "peers"
        managed = False
        db_table = "effect"
