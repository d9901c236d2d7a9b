"""What a feed found, in the words of the catalog's files as far as the feed knows them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

Market: TypeAlias = Literal["on-demand", "spot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedOffer:
    """An instance and its price. `gpu_spellings` name the card, the surest first. [USD/h of the instance]"""

    provider: str
    gpu_spellings: tuple[str, ...]
    instance_type: str
    gpus_per_instance: int
    region: str
    market: Market
    usd_per_instance_hour: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTokens:
    """Token prices of a model at a seller; what is not published is None. [USD per 1,000,000 tokens]"""

    provider: str
    provider_model_id: str
    input_usd_per_mtok: Decimal | None
    cached_input_usd_per_mtok: Decimal | None
    output_usd_per_mtok: Decimal | None
    context_limit_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """All of it, and its source as `sources.yaml` would list it."""

    source_id: str
    source: Mapping[str, str]
    offers: tuple[PublishedOffer, ...] = ()
    tokens: tuple[PublishedTokens, ...] = ()


def known_amount(amount: Decimal | None) -> Decimal | None:
    """A price, None where there is none: lists print 0 for what is free, unknown or withdrawn."""
    return amount if amount is not None and amount > 0 else None


def distinct(spellings: Iterable[str]) -> tuple[str, ...]:
    """Spellings in order, each once, blanks dropped."""
    return tuple(dict.fromkeys(text for text in spellings if text))
