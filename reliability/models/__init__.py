"""Every table of the product, one file per noun. One app, one migration history."""

from reliability.models.channel import AlertChannel, AlertDelivery
from reliability.models.claim import Body, Delivery, Operation, ProcessedKey, Receipt, Refusal
from reliability.models.destination import ApiToken, Destination, DestinationAnswer
from reliability.models.discrepancy import Discrepancy, IgnoreRule
from reliability.models.effect import Effect
from reliability.models.folder import FolderFile, Reading, StatementFolder
from reliability.models.hold import KindPause
from reliability.models.notice import Notice
from reliability.models.provisional import ProvisionalCheck
from reliability.models.redrive import BodyEdit, LetterGroup, Redrive, RedriveMember
from reliability.models.saved_view import SavedView
from reliability.models.silence import Silence
from reliability.models.source import ApiCredential, Membership, Source, SourceSecret, Tenant
from reliability.models.statement import (
    Artefact,
    ArtefactPart,
    Report,
    Statement,
    StatementLine,
    Verdict,
)  # fmt: skip
from reliability.models.stretch import Stretch
from reliability.models.watch import Alert, AlertRule, AuditEntry, Run
from reliability.models.work import Attempt, DeadLetter, Job

__all__ = [
    "Alert",
    "AlertChannel",
    "AlertDelivery",
    "AlertRule",
    "ApiCredential",
    "ApiToken",
    "Artefact",
    "ArtefactPart",
    "Attempt",
    "AuditEntry",
    "Body",
    "BodyEdit",
    "DeadLetter",
    "Delivery",
    "Destination",
    "DestinationAnswer",
    "Discrepancy",
    "Effect",
    "FolderFile",
    "IgnoreRule",
    "Job",
    "KindPause",
    "LetterGroup",
    "Membership",
    "Notice",
    "Operation",
    "ProcessedKey",
    "ProvisionalCheck",
    "Reading",
    "Receipt",
    "Redrive",
    "RedriveMember",
    "Refusal",
    "Report",
    "Run",
    "SavedView",
    "Silence",
    "Source",
    "SourceSecret",
    "Statement",
    "StatementFolder",
    "StatementLine",
    "Stretch",
    "Tenant",
    "Verdict",
]
