"""Stands in for PayPal's certificate server in the tests' web program: nothing is fetched."""

import base64
import math
import os

from django.apps import AppConfig

VARIABLE = "TEST_CERTIFICATE"
"""``url pem``, the certificate in base64."""


class KnownCertificate(AppConfig):
    name = "tests.database"
    label = "live"

    def ready(self) -> None:
        from reliability.claim import certificates  # noqa: PLC0415 - needs the models

        url, _, text = os.environ.get(VARIABLE, "").partition(" ")
        kept = certificates._Kept(base64.b64decode(text), math.inf)
        certificates._kept.update({url: kept} if url else {})
