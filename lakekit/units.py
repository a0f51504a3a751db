"""Numbers of things, sizes and times, as people say them."""

from __future__ import annotations

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def counted(count: int, what: str) -> str:
    """Says a number of things: ``1 row``, ``2,000 rows``."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def duration(seconds: float) -> str:
    """Says a time: ``42 ms``, ``1.3 s``, ``2 min 5 s``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def format_bytes(size: int) -> str:
    """Returns a size with three digits and a unit of powers of 1000."""
    amount, unit = float(size), 0
    while amount >= 999.5 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    digits = 0 if unit == 0 or amount >= 99.95 else 1 if amount >= 9.995 else 2
    return f"{amount:.{digits}f} {_UNITS[unit]}"
