"""How many decimals each provider gives each currency; a currency not listed is refused."""

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType

from reliability.errors import ReliabilityError


class UnknownCurrency(ReliabilityError):
    """The provider's table does not list this currency, so its minor unit is not known."""


_NO_DECIMALS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_TWO_DECIMALS = """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD
    CAD CDF CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD
    GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD
    MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP
    PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS
    TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VES WST XCD XCG YER ZAR ZMW ZWG
"""
_THREE_DECIMALS = "BHD IQD JOD KWD LYD OMR TND"

#: ISO 4217:2015, list one (current currencies), column "minor unit".
ISO_4217: Mapping[str, int] = {
    **dict.fromkeys(_NO_DECIMALS.split(), 0),
    **dict.fromkeys(_TWO_DECIMALS.split(), 2),
    **dict.fromkeys(_THREE_DECIMALS.split(), 3),
    "CLF": 4,
}

#: docs.stripe.com/currencies, "Zero-decimal currencies" and "Special cases": MGA has none,
#: ISK and UGX are written with two. The CSV reports print major units of the same amounts.
STRIPE: Mapping[str, int] = {**ISO_4217, "ISK": 2, "MGA": 0, "UGX": 2}

#: docs.adyen.com/development-resources/currency-codes, rows "differs from standard", and CNH.
ADYEN: Mapping[str, int] = {**ISO_4217, "CLP": 2, "CNH": 2, "CVE": 0, "IDR": 0, "ISK": 2}

#: developer.gocardless.com/api-reference, "currency": eight, each with two decimals.
GOCARDLESS: Mapping[str, int] = dict.fromkeys(
    ("AUD", "CAD", "DKK", "EUR", "GBP", "NZD", "SEK", "USD"), 2
)


#: developer.paypal.com/docs/api/reference/currency-codes, note 1.
PAYPAL: Mapping[str, int] = {**ISO_4217, "HUF": 0, "TWD": 0}

TABLES: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {"iso": ISO_4217, "stripe": STRIPE, "adyen": ADYEN, "paypal": PAYPAL}
)
"""The tables that an operation rule names."""


def exponent_of(currency: str, table: Mapping[str, int]) -> int:
    """Look up how many decimals ``currency`` (ISO code, upper case) has in ``table``.

    Raises :class:`UnknownCurrency` instead of assuming two.
    """
    try:
        return table[currency]
    except KeyError:
        raise UnknownCurrency(f"currency {currency!r} is not in the exponent table") from None


def money(amount_minor: int, currency: str, exponent: int) -> str:
    """Write a minor amount for people: ``EUR -1,234.50``, ``JPY 500``."""
    sign, digits = (
        ("-" if amount_minor < 0 else ""),
        str(abs(amount_minor)).zfill(exponent + 1),
    )
    whole = f"{int(digits[: len(digits) - exponent]):,}"
    part = f".{digits[-exponent:]}" if exponent else ""
    return f"{currency} {sign}{whole}{part}"


def major(amount_minor: int | None, exponent: int | None, decimal: str = ".") -> str:
    """Write a minor amount as a bare number for machines: ``-1234.50``; nothing for none."""
    if amount_minor is None:
        return ""
    return f"{Decimal(amount_minor).scaleb(-(exponent or 0)):f}".replace(".", decimal)
