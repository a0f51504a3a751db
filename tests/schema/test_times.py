"""Times for time travel."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace

import pytest

from lakekit.errors import InvalidOptionError
from lakekit.schema import to_millis


def session(zone):
    return SimpleNamespace(conf=SimpleNamespace(get=lambda _: zone))


NOON = 1706702400000  # 2024-01-31 12:00:00 UTC


@pytest.mark.parametrize(
    ("text", "zone", "millis"),
    [
        ("2024-01-31 12:00:00", "UTC", NOON),
        ("2024-01-31T12:00", "UTC", NOON),
        ("2024-01-31 12:00:00.123456789", "UTC", NOON + 123),
        ("2024-01-31 12:00:00.5Z", "Asia/Tokyo", NOON + 500),
        ("2024-01-31 13:00:00+01:00", "Asia/Tokyo", NOON),
        ("2024-01-31 13:00:00 +01", "UTC", NOON),
        ("2024-01-31 06:30:00-0530", "UTC", NOON),
        ("2024-01-31 21:00:00", "Asia/Tokyo", NOON),
        ("2024-01-31 13:00:00 Europe/Berlin", "UTC", NOON),
        ("2024-01-31 14:00:00", "+02:00", NOON),
        ("2024-01-31 14:00:00", "GMT+02:00", NOON),
        (" 2024-1-31 ", "UTC", NOON - 12 * 3_600_000),
        ("1969-12-31 23:59:59.999", "UTC", -1),
    ],
)
def test_texts_are_times_in_the_zone_of_the_session(text, zone, millis):
    assert to_millis(session(zone), text) == millis


def test_datetimes_without_a_zone_are_of_the_session():
    assert to_millis(session("Asia/Tokyo"), dt.datetime(2024, 1, 31, 21)) == NOON  # noqa: DTZ001
    assert to_millis(session("Asia/Tokyo"), dt.datetime(2024, 1, 31, 12, tzinfo=dt.timezone.utc)) == NOON


@pytest.mark.parametrize(
    "text", ["yesterday", "2024-13-01", "2024-01-31 25:00", "", "2024-01-31 12:00 Mars/Base", 5]
)
def test_what_is_no_time_is_refused(text):
    with pytest.raises(InvalidOptionError, match="'timestamp' cannot be"):
        to_millis(session("UTC"), text)
