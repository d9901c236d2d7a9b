"""Exact conversions only. A factor that somebody measured or chose does not belong here."""

from typing import Final

KILO: Final = 1e3
MEGA: Final = 1e6
GIGA: Final = 1e9
TERA: Final = 1e12
MIB: Final = 2**20
GIB: Final = 2**30
MS_PER_S: Final = 1e3
SECONDS_PER_HOUR: Final = 3600.0
HOURS_PER_DAY: Final = 24.0
HOURS_PER_MONTH: Final = 730.0
"""A year of 8,760 hours over twelve months, as cloud price lists count it."""
HOURS_PER_YEAR: Final = 8760.0
TOKENS_PER_MTOK: Final = 1_000_000
