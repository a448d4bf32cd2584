"""Signs what we send on, as the Standard Webhooks specification says."""

import base64
import hashlib
import hmac
import secrets

SECRET_BYTES = 32


def new_secret() -> str:
    """Make a secret in the form the specification gives it: ``whsec_`` and base64."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}"


def signed_headers(
    secret: str, *, message_id: str, seconds: int, body: bytes
) -> dict[str, str]:
    """Return the three headers over ``id.timestamp.body``; ``seconds`` since the epoch."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = b"%b.%d.%b" % (message_id.encode(), seconds, body)
    mac = hmac.new(key, content, hashlib.sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{base64.b64encode(mac).decode()}",
    }
