"""Durations, sizes and money as people write them, and as records keep them.

People write `30s`, `64MiB`, `0.35`; records keep integers of milliseconds, bytes and millionths
of the fleet's currency. No floats on the way: `0.1` is exactly one hundred thousand of them.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

from hostler.base.errors import Rejected

_DURATION_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION_PART = re.compile(r"([0-9]{1,15})(ms|s|m|h|d)")
_SIZE_UNITS_BYTES = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_SIZE = re.compile(r"([0-9]{1,15}) *((?:[KMGT]i?)?B)?")

SIZE_BYTES_MAX = 2**60
"""An exbibyte: more than anybody has, and a record's number holds it."""

MONEY_MICROUSD_MAX = 10**15
"""A thousand million dollars."""

DURATION_MS_MAX = 366 * 86_400_000
"""A year and a day: nobody means a longer one, and a missing unit is caught by it."""

MACHINE_TIME_MS_MAX = 1_000_000 * DURATION_MS_MAX
"""A million machines for a year."""

_CURRENCY = re.compile(r"(.*\S) *\b([A-Z]{3})")
"""An amount with its currency (ISO 4217)."""


def duration_ms(text: str) -> int:
    """Parse `1h30m`, `15s`, `250ms` into milliseconds.

    Raises:
        Rejected: Not a duration, no unit, or longer than a year.
    """
    total = _time_ms(text)
    if total > DURATION_MS_MAX:
        raise Rejected("bad_duration", "a duration is a year at most", value=text)
    return total


def machine_time_ms(text: str) -> int:
    """Parse the time of many machines together, such as `20000h`, into milliseconds.

    Raises:
        Rejected: Not a duration, no unit, or longer than a million machines run in a year.
    """
    total = _time_ms(text)
    if total > MACHINE_TIME_MS_MAX:
        raise Rejected("bad_duration", "a time of machines is 366000000d at most", value=text)
    return total


def _time_ms(text: str) -> int:
    parts = _DURATION_PART.findall(text.strip())
    if not parts or "".join(count + unit for count, unit in parts) != text.strip():
        raise Rejected(
            "bad_duration", "a duration looks like 250ms, 30s, 5m, 1h30m or 2d", value=text
        )
    return sum(int(count) * _DURATION_UNITS_MS[unit] for count, unit in parts)


def format_duration(ms: int) -> str:
    """Write milliseconds as people read them: `1h30m`, `2m5s`, `850ms`."""
    if ms < 0:
        return "-" + format_duration(-ms)
    if ms < 1_000:
        return f"{ms}ms"
    told: list[str] = []
    rest = ms // 1_000
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, seconds)
        if count:
            told.append(f"{count}{unit}")
    return "".join(told[:2])


def format_instant(at_ms: int) -> str:
    """Write a time, in milliseconds since 1970, as people read it: `2026-12-01 20:00:00 UTC`."""
    return datetime.fromtimestamp(at_ms // 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def time_of_day_ms(text: str) -> int:
    """Parse `09:00`, `24:00` into milliseconds since midnight.

    Raises:
        Rejected: No such time.
    """
    found = re.fullmatch(r"(?:([01][0-9]|2[0-3]):([0-5][0-9]))|24:00", text.strip())
    if found is None:
        raise Rejected(
            "bad_time", 'a time looks like "09:00", up to "24:00", in quotes', value=text
        )
    return 86_400_000 if found[1] is None else (int(found[1]) * 60 + int(found[2])) * 60_000


def format_time_of_day(ms: int) -> str:
    """Write milliseconds since midnight as people read them: `09:00`."""
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}"


def local_time_ms(text: str) -> int:
    """Parse `2026-12-01T20:00`, a wall clock's reading, into milliseconds since its 1970-01-01.

    Raises:
        Rejected: No such date or time.
    """
    found = re.fullmatch(r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})", text.strip())
    try:
        day = None if found is None else date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        day = None
    if found is None or day is None or int(found[4]) > 23 or int(found[5]) > 59:
        raise Rejected(
            "bad_time", 'a date and time looks like "2026-12-01T20:00", in quotes', value=text
        )
    days = day.toordinal() - date(1970, 1, 1).toordinal()
    return ((days * 24 + int(found[4])) * 60 + int(found[5])) * 60_000


def size_bytes(text: str) -> int:
    """Parse `64MiB`, `2GB`, `512` into bytes.

    Raises:
        Rejected: Not a size, or larger than an exbibyte.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise Rejected("bad_size", "a size looks like 512, 64MiB or 2GB", value=text)
    count_bytes = int(found[1]) * _SIZE_UNITS_BYTES[found[2] or "B"]
    if count_bytes > SIZE_BYTES_MAX:
        raise Rejected("bad_size", "a size is an exbibyte at most", value=text)
    return count_bytes


def format_size(count_bytes: int) -> str:
    """Write bytes as people read them: `1.5GiB`."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        size = _SIZE_UNITS_BYTES[unit]
        if count_bytes >= size:
            tenths = count_bytes * 10 // size
            whole, part = divmod(tenths, 10)
            return f"{whole}.{part}{unit}" if part else f"{whole}{unit}"
    return f"{count_bytes}B"


def money_microusd(text: str) -> int:
    """Parse an amount such as `0.35` or `0.35 EUR` into millionths, whatever its currency.

    Raises:
        Rejected: Not an amount, negative, or finer than a millionth.
    """
    told = _CURRENCY.fullmatch(text.strip())
    try:
        amount = Decimal(text if told is None else told[1]) * 1_000_000
    except InvalidOperation as error:
        raise Rejected("bad_money", "an amount looks like 0.35", value=text) from error
    if not amount.is_finite() or amount < 0 or amount != amount.to_integral_value():
        raise Rejected("bad_money", "an amount is positive, to a millionth at most", value=text)
    if amount > MONEY_MICROUSD_MAX:
        raise Rejected("bad_money", "an amount is a thousand million at most", value=text)
    return int(amount)


def currency_of_money(text: str) -> str:
    """Return the currency that an amount names, or nothing."""
    told = _CURRENCY.fullmatch(text.strip())
    return "" if told is None else told[2]


def format_money(micros: int, currency: str) -> str:
    """Write millionths as people read money: two decimals, or as many as it takes: `0.35 USD`."""
    sign = "-" if micros < 0 else ""
    whole, part = divmod(abs(micros), 1_000_000)
    decimals = f"{part:06d}".rstrip("0").ljust(2, "0")
    return f"{sign}{whole}.{decimals} {currency}"


_CORES = re.compile(r"([0-9]{1,9})m|([0-9]{1,9}(?:\.[0-9]{1,3})?)")


def cores_milli(text: str) -> int:
    """Parse an amount of CPU such as `2`, `0.5` or `500m` into thousandths of a core.

    Raises:
        Rejected: Not an amount, or finer than a thousandth.
    """
    found = _CORES.fullmatch(text.strip())
    if found is None:
        raise Rejected("bad_cores", "an amount of CPU looks like 2, 0.5 or 500m", value=text)
    return int(found[1]) if found[1] else int(Decimal(found[2]) * 1_000)
