"""Profile files: a traffic profile by id, each of its numbers with a source."""

import json
from typing import ClassVar

from costsvc.db import entries
from costsvc.ingest.entry import Entry, Text
from costsvc.ingest.traffic import TrafficProfile


class ProfileFile(Entry):
    """A file under `profiles/`. Sources cover the fields of `traffic`."""

    identity: ClassVar[frozenset[str]] = Entry.identity | {"description"}

    description: Text
    traffic: TrafficProfile

    def facts(self) -> set[str]:
        """Fields of the traffic that the file states."""
        return set(self.traffic.model_fields_set)

    def fact_sources(self, kind: str) -> tuple[entries.FactSource, ...]:
        """Which source covers which field of the traffic."""
        by_field = {
            field: f"{kind}/{self.id}/{n}"
            for n, source in enumerate(self.sources, start=1)
            for field in source.covers
        }
        return tuple(entries.FactSource(field=field, source_id=by_field[field]) for field in sorted(by_field))

    def record(self) -> entries.ProfileEntry:
        """The profile as stored."""
        return entries.ProfileEntry(
            id=self.id,
            name=self.name,
            description=self.description,
            traffic=traffic_text(self.traffic),
            aliases=self.spellings(),
            fact_sources=self.fact_sources("profiles"),
            notes=self.notes,
        )


def traffic_text(traffic: TrafficProfile) -> str:
    """What a profile states, as canonical JSON."""
    stated = traffic.model_dump(mode="json", exclude_unset=True)
    return json.dumps(stated, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
