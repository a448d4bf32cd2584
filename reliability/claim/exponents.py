"""How many decimals a provider gives a currency, which is not always what ISO 4217 says."""

from collections.abc import Mapping
from types import MappingProxyType

EXPONENT_USUAL = 2

# ISO 4217 list one, column "minor unit", where it is not 2.
ISO: Mapping[str, int] = {
    **dict.fromkeys(
        [
            "BIF",
            "CLP",
            "DJF",
            "GNF",
            "ISK",
            "JPY",
            "KMF",
            "KRW",
            "PYG",
            "RWF",
            "UGX",
            "UYI",
            "VND",
            "VUV",
            "XAF",
            "XOF",
            "XPF",
        ],
        0,
    ),
    **dict.fromkeys(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"], 3),
    **dict.fromkeys(["CLF", "UYW"], 4),
}

TABLES: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "iso": ISO,
        # docs.stripe.com/currencies, "Zero-decimal currencies" and "Special cases": MGA has
        # none; ISK and UGX are sent with two that are always 00.
        "stripe": {**ISO, "ISK": 2, "MGA": 0, "UGX": 2},
        # docs.adyen.com/development-resources/currency-codes, "differs from standard".
        "adyen": {**ISO, "CLP": 2, "CVE": 0, "IDR": 0, "ISK": 2},
        # developer.paypal.com/docs/api/reference/currency-codes, note 1.
        "paypal": {**ISO, "HUF": 0, "TWD": 0},
    }
)


def exponent(currency: str, table: str) -> int:
    """Return the decimals of an upper-case currency code in a provider's table.

    A code in none of the lists has two; whether it exists is not judged here. The sources of
    the four tables stand beside them.
    """
    return TABLES[table].get(currency, EXPONENT_USUAL)
