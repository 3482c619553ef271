"""The date here and now, in UTC, by which waivers end."""

from __future__ import annotations

from datetime import UTC, date, datetime


def utc_today() -> date:
    """Return today's date."""
    return datetime.now(UTC).date()
