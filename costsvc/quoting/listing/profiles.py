"""Traffic profiles and where each of their numbers was read."""

import json
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from costsvc.db.entries import ProfileEntry
from costsvc.db.snapshot import Catalog
from costsvc.quoting.listing.common import SourceRow, facts, mentions
from costsvc.quoting.listing.parts import Ordered, part
from costsvc.quoting.load import of_profile, read_profile
from costsvc.quoting.request import Text


class ProfileFilter(Ordered):
    """Which traffic profiles."""

    q: Text | None = Field(None, description="Only profiles whose id, name or alias contains this.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRow:
    """A traffic profile in a list: means of its lengths, whatever form they were given in. [token]"""

    id: str
    name: str
    description: str
    input_tokens: float
    output_tokens: float
    requests_per_session: float
    rps: float | None
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDetail(ProfileRow):
    """A profile with all it states and its sources. `traffic` can be sent as the profile of a quote."""

    input_cv: float
    output_cv: float
    length_correlation: float
    notes: str | None
    traffic: dict[str, Any]
    sources: tuple[SourceRow, ...]


def list_profiles(catalog: Catalog, wanted: ProfileFilter) -> list[ProfileRow]:
    """Profiles, by id."""
    rows = (
        ProfileRow(**_row(entry))
        for _, entry in sorted(catalog.profiles.items())
        if mentions(wanted.q, (entry.id, entry.name, *entry.aliases))
    )
    return part(rows, wanted, ProfileRow)


def show_profile(catalog: Catalog, id: str) -> ProfileDetail:
    """One profile by id, alias or name."""
    entry = catalog.profile(id)
    traffic, _ = of_profile(read_profile(entry.traffic))
    return ProfileDetail(
        **_row(entry),
        input_cv=traffic.input_cv,
        output_cv=traffic.output_cv,
        length_correlation=traffic.length_correlation,
        notes=entry.notes,
        traffic=json.loads(entry.traffic),
        sources=facts(catalog, entry.fact_sources),
    )


def _row(entry: ProfileEntry) -> dict[str, Any]:
    profile = read_profile(entry.traffic)
    traffic, _ = of_profile(profile)
    return {
        "id": entry.id,
        "name": entry.name,
        "description": entry.description,
        "input_tokens": traffic.input_tokens,
        "output_tokens": traffic.output_tokens,
        "requests_per_session": profile.calls,
        "rps": profile.rps,
        "aliases": entry.aliases,
    }
