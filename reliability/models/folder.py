"""Where a source's statements are dropped, what was seen there, and what is being read."""

from __future__ import annotations

from django.db import models

from reliability.models import columns


class StatementFolder(models.Model):
    """A place at the provider or on a disk that is looked into, and never changed."""

    tenant = columns.tenant()
    source = models.OneToOneField(
        "reliability.Source", on_delete=models.CASCADE, related_name="statement_folder"
    )
    url = models.TextField()
    """Without a user or password: those come from the deployment's settings."""
    pattern = models.TextField()
    """A glob over file names, in which ``{day}`` stands for the statement's local day."""
    created_at = models.DateTimeField()
    created_by = models.TextField()
    looked_at = models.DateTimeField(null=True)
    failing_since = models.DateTimeField(null=True)
    why = models.TextField(default="", blank=True)
    """Why the newest look failed; empty: it did not."""

    def __str__(self) -> str:
        return self.url


class FolderFile(models.Model):
    """One file of a folder as it stood when it was last looked at."""

    tenant = columns.tenant(db_constraint=False, db_index=False)
    folder = models.ForeignKey(
        StatementFolder, on_delete=models.CASCADE, related_name="files", db_index=False
    )
    name = columns.key_text()
    size_bytes = models.BigIntegerField()
    modified = models.TextField()
    """As the place tells it; only compared."""
    since = models.DateTimeField()
    """Since when size and time of change are these."""
    taken_at = models.DateTimeField(null=True)
    """When it was taken as it stands; ``None``: it waits for a look that finds it unchanged."""
    artefact = models.ForeignKey(
        "reliability.Artefact", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    refused = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["folder", "name"], name="one_row_per_folder_file"),
        ]

    def __str__(self) -> str:
        return self.name


class Reading(models.Model):
    """How far the import of one artefact is; written beside its transaction, gone when it ends."""

    tenant = columns.tenant(db_constraint=False, db_index=False)
    artefact_id = models.BigIntegerField(unique=True)
    name = models.TextField()
    lines = models.BigIntegerField(default=0)
    started_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}: {self.lines}"
