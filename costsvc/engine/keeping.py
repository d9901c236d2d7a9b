"""Keeping a conversation's context between its requests: in memory, in a slower tier, or computed again."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """A way to have a token again: what it costs at its next use, and while it waits. [USD], [USD/s]"""

    name: str
    once_usd: float
    rent_usd_per_s: float

    def usd_after(self, time_s: float) -> float:
        """What it has cost when the token is used again. [USD]"""
        return self.once_usd + self.rent_usd_per_s * time_s


def cheapest_keeping(ways: Sequence[Keeping]) -> list[tuple[str, float, float | None]]:
    """The cheapest way for each time until the next use: its name, from when and until when; None is forever.

    The lower envelope of straight lines: from each crossing the next way is the one that is met first among
    those with a lower rent. All costs are per token, so the crossings hold for a context of any length.

    Examples
    --------
    >>> hold = Keeping(name="hold", once_usd=0.0, rent_usd_per_s=2.0)
    >>> again = Keeping(name="recompute", once_usd=600.0, rent_usd_per_s=0.0)
    >>> cheapest_keeping([hold, again])
    [('hold', 0.0, 300.0), ('recompute', 300.0, None)]
    """
    here = min(ways, key=lambda way: (way.once_usd, way.rent_usd_per_s))
    start_s, pieces = 0.0, list[tuple[str, float, float | None]]()
    while True:
        slower = [way for way in ways if way.rent_usd_per_s < here.rent_usd_per_s]
        if not slower:
            return [*pieces, (here.name, start_s, None)]
        at = {way.name: _crossing_s(here, way) for way in slower}
        following = min(slower, key=lambda way: (at[way.name], way.rent_usd_per_s))
        if at[following.name] > start_s:
            pieces.append((here.name, start_s, at[following.name]))
        start_s, here = max(start_s, at[following.name]), following


def _crossing_s(steep: Keeping, flat: Keeping) -> float:
    return (flat.once_usd - steep.once_usd) / (steep.rent_usd_per_s - flat.rent_usd_per_s)
