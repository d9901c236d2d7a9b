"""Traffic profiles that arrive by a call, kept beside those of the files."""

from dataclasses import replace
from hashlib import blake2b
from typing import Final

from pydantic import Field

from costsvc.db.entries import CatalogContent, FactSource, ProfileEntry, Source
from costsvc.db.names import normalised
from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest
from costsvc.ingest.entry import Slug, SourceFields, Strict, Text
from costsvc.ingest.profiles import traffic_text
from costsvc.ingest.traffic import TrafficProfile
from costsvc.quoting.load import of_profile

# Sources of what was posted are known by this beginning, so that loading the files anew keeps it.
POSTED_SOURCE: Final = "posted/profiles/"


class PostedProfile(Strict):
    """A new traffic profile; one source stands for all its numbers."""

    id: Slug
    name: Text
    description: Text
    traffic: TrafficProfile
    source: SourceFields
    aliases: list[Text] = Field(default_factory=list)


def with_profile(catalog: Catalog, posted: PostedProfile) -> CatalogContent:
    """The catalog with a new profile.

    Raises
    ------
    InvalidRequest
        A profile goes by one of its names already, or its history is longer than its prompt.
    """
    of_profile(posted.traffic)
    taken = {
        normalised(spelling): entry.id
        for entry in catalog.profiles.values()
        for spelling in (entry.id, entry.name, *entry.aliases)
    }
    for spelling in (posted.id, posted.name, *posted.aliases):
        if owner := taken.get(normalised(spelling)):
            raise InvalidRequest(
                f"'{spelling}' already means the profile '{owner}'. A profile never changes, so that past "
                f"quotes stay true: choose another name.",
                field="id",
            )
    source = _source(posted)
    content = catalog.content
    profiles = sorted((*content.profiles, _entry(posted, source)), key=lambda entry: entry.id)
    others = (one for one in content.sources if one.id != source.id)
    sources = sorted((*others, source), key=lambda one: one.id)
    return replace(content, profiles=tuple(profiles), sources=tuple(sources))


def keeping_posted_profiles(files: CatalogContent, stored: CatalogContent) -> CatalogContent:
    """What the files say, with the posted profiles whose names the files do not use meanwhile."""
    taken = {
        normalised(spelling)
        for entry in files.profiles
        for spelling in (entry.id, entry.name, *entry.aliases)
    }
    kept = [
        entry
        for entry in stored.profiles
        if any(fact.source_id.startswith(POSTED_SOURCE) for fact in entry.fact_sources)
        and not any(normalised(one) in taken for one in (entry.id, entry.name, *entry.aliases))
    ]
    named = {fact.source_id for entry in kept for fact in entry.fact_sources}
    sources = [source for source in stored.sources if source.id in named]
    return replace(
        files,
        profiles=tuple(sorted((*files.profiles, *kept), key=lambda entry: entry.id)),
        sources=tuple(sorted((*files.sources, *sources), key=lambda source: source.id)),
    )


def _entry(posted: PostedProfile, source: Source) -> ProfileEntry:
    return ProfileEntry(
        id=posted.id,
        name=posted.name,
        description=posted.description,
        traffic=traffic_text(posted.traffic),
        aliases=tuple(posted.aliases),
        fact_sources=tuple(
            FactSource(field=field, source_id=source.id) for field in sorted(posted.traffic.model_fields_set)
        ),
    )


def _source(posted: PostedProfile) -> Source:
    digest = blake2b(posted.source.model_dump_json().encode(), digest_size=8).hexdigest()
    return posted.source.record(f"{POSTED_SOURCE}{posted.id}/{digest}")
