"""Who sells: one name for each seller, and the spellings under which price lists know it."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from costsvc.ingest.entry import Slug, Strict, Text, mistake


class ProviderFields(Strict):
    """A seller of GPU hours, of tokens, or of both."""

    id: Slug
    name: Text
    spellings: list[Text] = Field(default_factory=list)


class ProvidersFile(Strict):
    """`providers.yaml`."""

    providers: Annotated[list[ProviderFields], Field(min_length=1)]

    @model_validator(mode="after")
    def a_spelling_means_one_provider(self) -> Self:
        owner: dict[str, str] = {}
        for n, one in enumerate(self.providers):
            for spelling in {text.casefold() for text in (one.id, one.name, *one.spellings)}:
                if owner.setdefault(spelling, one.id) != one.id:
                    complaint = f"'{spelling}' means both {owner[spelling]} and {one.id}"
                    raise mistake(complaint, "providers", n)
        return self

    def names(self) -> dict[str, str]:
        """Names by id."""
        return {one.id: one.name for one in self.providers}
