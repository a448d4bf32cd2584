"""What a viewer may not see in a payload, an error or a file: found by shape and by name. Pure."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

EMAIL = re.compile(r"[A-Za-z0-9._%+'-]{1,64}@[A-Za-z0-9.-]{1,253}\.[A-Za-z]{2,24}")
CARD = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?!\d)")
IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}")
TOKEN = re.compile(
    r"(?:\b(?:sk|rk|pk)_(?:live|test)_|\bwhsec_|\bgh[pousr]_|\bxox[abprs]-|\bAKIA|\bBearer )"
    r"[A-Za-z0-9+/=._~-]{8,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
)
IBAN_MIN = 15

SECRET_ENDINGS = (
    "password", "passwd", "secret", "token", "apikey", "authorization", "cvc", "cvv", "privatekey",
)  # fmt: skip
PERSONAL_ENDINGS = {
    "email": "e-mail", "emailaddress": "e-mail", "phone": "phone", "phonenumber": "phone",
    "mobile": "phone", "firstname": "name", "lastname": "name", "fullname": "name",
    "givenname": "name", "familyname": "name", "surname": "name", "holdername": "name",
    "iban": "account", "accountnumber": "account", "routingnumber": "account",
    "cardnumber": "card", "ipaddress": "address", "postalcode": "address", "postcode": "address",
    "zipcode": "address", "dateofbirth": "birth", "birthdate": "birth", "taxid": "tax number",
}  # fmt: skip
PERSONAL_NAMES = {
    "name": "name", "holder": "name", "line1": "address", "line2": "address", "street": "address",
    "city": "address", "zip": "address", "dob": "birth", "ssn": "tax number", "ip": "address",
    "fingerprint": "card", "pin": "secret", "signature": "secret",
    "auth": "secret",
}  # fmt: skip


@dataclass(frozen=True)
class Piece:
    """A stretch of text; ``hidden`` names what stood there, empty where it is shown."""

    text: str
    hidden: str = ""


def pieces(text: str) -> Iterator[Piece]:
    """Cut a text at everything shaped like a card number, an IBAN, an e-mail or a token."""
    end = 0
    for start, stop, what in sorted(_shapes(text)):
        if start < end:
            continue
        if start > end:
            yield Piece(text[end:start])
        yield Piece("", what)
        end = stop
    if end < len(text):
        yield Piece(text[end:])


def hide(text: str) -> str:
    """Return the text with ``[redacted: …]`` in place of what ``pieces`` found."""
    return "".join(
        f"[redacted: {piece.hidden}]" if piece.hidden else piece.text for piece in pieces(text)
    )


def hidden_by_name(name: str) -> str:
    """Say what a field of this name holds that viewers may not see; empty for nothing."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    if plain in PERSONAL_NAMES:
        return PERSONAL_NAMES[plain]
    if plain.endswith(SECRET_ENDINGS):
        return "secret"
    return next((what for end, what in PERSONAL_ENDINGS.items() if plain.endswith(end)), "")


def _shapes(text: str) -> Iterator[tuple[int, int, str]]:
    for pattern, what, holds in _SHAPES:
        for match in pattern.finditer(text):
            if length := holds(match[0]):
                yield match.start(), match.start() + length, what


def _luhn(text: str) -> int:
    """Check the last digit as ISO/IEC 7812-1 annex B does; return the length to hide."""
    digits = [int(c) for c in text if c.isdigit()]
    doubled = [d * 2 - 9 * (d > 4) for d in digits[-2::-2]]  # noqa: PLR2004 - the rule's own
    return len(text) if (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 else 0


def _mod97(text: str) -> int:
    """Check as ISO 13616 does, dropping words that happened to follow; 0 where none holds."""
    for end in range(len(text), IBAN_MIN - 1, -1):
        plain = text[:end].replace(" ", "")
        turned = plain[4:] + plain[:4]
        if len(plain) >= IBAN_MIN and int("".join(str(int(c, 36)) for c in turned)) % 97 == 1:
            return len(text[:end].rstrip())
    return 0


_SHAPES: tuple[tuple[re.Pattern[str], str, Callable[[str], int]], ...] = (
    (TOKEN, "token", len),
    (EMAIL, "e-mail", len),
    (IBAN, "account", _mod97),
    (CARD, "card", _luhn),
)
