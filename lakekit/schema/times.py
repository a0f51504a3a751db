"""Times that users name, for time travel."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from lakekit.errors import InvalidOptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOMENT = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?)?"
    r"\s*(Z|UTC|[+-]\d{1,2}(?::?\d{2})?|[A-Za-z]+/[A-Za-z_/]+)?\Z"
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2}):?(\d{2})?\Z")
_ALLOWED = "a time such as '2024-01-31 12:00:00' or '2024-01-31T12:00:00.5+01:00', or a datetime"


def to_millis(spark: SparkSession, moment: dt.datetime | str) -> int:
    """Returns a time in ms since 1970-01-01 UTC.

    Args:
        spark: the session, whose time zone holds for naive datetimes and for texts without an offset.
        moment: a datetime, or text as Spark writes timestamps; a date alone is its midnight.

    Raises:
        InvalidOptionError: if it is no time.
    """
    moment = _parsed(moment) if isinstance(moment, str) else moment
    if not isinstance(moment, dt.datetime):
        raise InvalidOptionError.bad_value("timestamp", moment, _ALLOWED)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone(spark.conf.get("spark.sql.session.timeZone") or "UTC"))
    since = moment - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    return since // dt.timedelta(milliseconds=1)


def zone(name: str) -> dt.tzinfo:
    """Returns a time zone by the names that Spark has for it: a region, or an offset such as ``+01:00``."""
    match = _OFFSET.match(name)
    if match:
        offset = dt.timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        return dt.timezone(-offset if match[1] == "-" else offset)
    return dt.timezone.utc if name in ("Z", "UTC", "GMT") else ZoneInfo(name)


def _parsed(text: str) -> dt.datetime:
    match = _MOMENT.match(text.strip())
    if match is None:
        raise InvalidOptionError.bad_value("timestamp", text, _ALLOWED)
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    micros = int((match[7] or "0").ljust(6, "0")[:6])
    try:
        tz = zone(match[8]) if match[8] else None
        return dt.datetime(year, month, day, hour, minute, second, micros, tzinfo=tz)
    except (ValueError, KeyError, OSError):
        raise InvalidOptionError.bad_value("timestamp", text, _ALLOWED) from None
