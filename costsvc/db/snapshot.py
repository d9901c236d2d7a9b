"""The catalog in memory, at one revision: immutable, so that a request reads one consistent state.

No SQL and no session here: quotes are answered from this alone.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from copy import copy
from dataclasses import replace
from datetime import date
from functools import lru_cache, partial
from hashlib import blake2b
from typing import TypeVar

from costsvc.db.entries import (
    ApiPrice,
    CatalogContent,
    DatedPrice,
    DtypeEntry,
    FxRate,
    GpuEntry,
    Market,
    ModelEntry,
    Offer,
    PrivatePrices,
    ProfileEntry,
    Source,
    StackEntry,
    WeightPlanEntry,
)
from costsvc.db.fx_rates import by_currency, rate_in_force
from costsvc.db.judgements import Judgements
from costsvc.db.names import Index, normalised
from costsvc.db.prices import ReferencePrice, api_prices_on, price_in_force, reference_price
from costsvc.engine.specs import WeightPlan
from costsvc.errors import NoPriceInForce

Key = TypeVar("Key")
Item = TypeVar("Item")

_KEPT_PRICES = 4096
_VENDOR = re.compile(r"^\s*(?:nvidia|amd|intel|google|aws)[\s_-]+", re.IGNORECASE)


class Catalog:
    """One revision of the catalog, indexed for questions.

    `revision` is None for content that never was in a database, such as the files that ship with the code.
    `content_hash` says in brief what it holds, where the database said so.
    `private` is what the owner negotiated through whose eyes this is seen; None where it is what everybody sees.
    """

    def __init__(
        self, content: CatalogContent, revision: int | None, content_hash: str | None = None
    ) -> None:
        self.content = content
        self.revision = revision
        self.content_hash = content_hash
        self.private: PrivatePrices | None = None
        self._fingerprint: str | None = None
        self._negotiated: Mapping[str, tuple[Offer, ...]] = {}
        self._models = Index(
            "model",
            ((entry.id, _spellings(entry), entry) for entry in content.models),
            shortened=_without_organisation,
            listed_at="/models",
        )
        self._gpus = Index(
            "gpu",
            ((e.id, (*e.aliases, e.name), e) for e in content.gpus),
            shortened=_without_vendor,
            listed_at="/gpus",
        )
        self._stacks = Index("stack", ((e.id, (*e.aliases, e.name), e) for e in content.stacks))
        self._dtypes = Index("dtype", ((e.spec.id, e.aliases, e) for e in content.dtypes))
        self._plans = Index("weights", ((e.id, e.aliases, e) for e in content.weight_plans))
        self._profiles = Index(
            "profile", ((e.id, (*e.aliases, e.name), e) for e in content.profiles), listed_at="/profiles"
        )
        self.judgements = Judgements(content.judgements)
        # These and reference prices hold for good, because nothing here changes. Their caches refer to the prices and
        # not to the catalog, which goes when nobody uses it, without a collection of cycles.
        api_prices = _grouped((price.model_id, price) for price in content.api_prices)
        self._api_prices_on = lru_cache(maxsize=_KEPT_PRICES)(partial(_api_prices_on, api_prices))
        self._fx_rates = by_currency(content.fx_rates)
        # What sellers call models and instances; made when a name is first asked for that is none of ours.
        self._sold_models: Mapping[str, Set[str]] | None = None
        self._index_offers()

    def _index_offers(self) -> None:
        content = self.content
        self._sources = Index("source", ((e.id, (), e) for e in content.sources))
        self._providers = Index(
            "provider",
            ((name, (), name) for name in sorted({offer.provider for offer in content.offers})),
            listed_at="/prices",
        )
        self._instances: Mapping[str, Set[str]] | None = None
        self._offers = _grouped((offer.gpu_id, offer) for offer in content.offers)
        # Made when one is first asked for: quotes need none.
        self._offer_index: Index[Offer] | None = None
        # Offers of a popular card number hundreds.
        computed = partial(_reference_price, self._offers, self._negotiated)
        self._reference_price = lru_cache(maxsize=_KEPT_PRICES)(computed)

    def followed_by(
        self, content: CatalogContent, revision: int, content_hash: str | None = None
    ) -> "Catalog":
        """A later revision; where only offers and sources differ, what is known of the rest is shared."""
        if replace(self.content, offers=content.offers, sources=content.sources) != content:
            return Catalog(content, revision, content_hash)
        later = copy(self)
        later.content, later.revision, later.content_hash = content, revision, content_hash
        later._fingerprint = None
        later._index_offers()
        return later

    def seen_with(self, prices: PrivatePrices) -> "Catalog":
        """The same catalog with what an owner negotiated; everything else is shared, not copied."""
        view = copy(self)
        own = [one.offer for one in prices.offers]
        sources = {source.id: source for one in prices.offers for source in one.sources}
        view.content = replace(
            self.content,
            offers=tuple(sorted((*self.content.offers, *own), key=lambda offer: offer.id)),
            sources=(*self.content.sources, *sources.values()),
        )
        view.private = prices
        view._negotiated = _grouped((offer.gpu_id, offer) for offer in own)
        view._fingerprint = _digest((self.fingerprint, prices.owner, prices.revision, prices.offers))
        view._index_offers()
        return view

    @property
    def fingerprint(self) -> str:
        """What the catalog holds, in brief: two databases may each have a revision 1."""
        if self._fingerprint is None:
            self._fingerprint = _digest((self.revision, self.content_hash or self.content))
        return self._fingerprint

    @property
    def private_revision(self) -> int | None:
        """Revision of the owner's negotiated prices; None where there are none in this catalog."""
        return None if self.private is None else self.private.revision

    def is_private(self, offer: Offer) -> bool:
        """Whether an offer is the owner's alone."""
        return offer in self._negotiated.get(offer.gpu_id, ())

    @property
    def models(self) -> Mapping[str, ModelEntry]:
        """Models by id."""
        return self._models.entries

    @property
    def gpus(self) -> Mapping[str, GpuEntry]:
        """Accelerators by id."""
        return self._gpus.entries

    @property
    def stacks(self) -> Mapping[str, StackEntry]:
        """Serving stacks by id."""
        return self._stacks.entries

    @property
    def dtypes(self) -> Mapping[str, DtypeEntry]:
        """Storage types by id."""
        return self._dtypes.entries

    @property
    def weight_plans(self) -> Mapping[str, WeightPlanEntry]:
        """Weight plans by id."""
        return self._plans.entries

    @property
    def profiles(self) -> Mapping[str, ProfileEntry]:
        """Traffic profiles by id."""
        return self._profiles.entries

    @property
    def currencies(self) -> tuple[str, ...]:
        """Codes of the currencies with rates, in order."""
        return tuple(sorted(self._fx_rates))

    @property
    def sources(self) -> Mapping[str, Source]:
        """Sources by id."""
        return self._sources.entries

    @property
    def providers(self) -> tuple[str, ...]:
        """Names of everybody who offers a GPU."""
        return tuple(self._providers.entries)

    def model(self, text: str) -> ModelEntry:
        """A model by id, alias, name or Hugging Face id, with or without its organisation, or as a seller calls it."""
        return self._models.find(text, self._models_as_sold)

    def models_meant(self, text: str) -> Set[str]:
        """Ids of the models that a spelling may mean: for many spellings, most of which mean none."""
        return self._models.meanings(text)

    def gpus_meant(self, text: str) -> Set[str]:
        """The same of accelerators."""
        return self._gpus.meanings(text)

    def gpu(self, text: str) -> GpuEntry:
        """An accelerator by id, alias or name, with or without its vendor, or by an instance that has it."""
        return self._gpus.find(text, self._gpus_of_instances)

    def _models_as_sold(self) -> Mapping[str, Set[str]]:
        if self._sold_models is None:
            self._sold_models = _ids_by_spelling(
                (price.provider_model_id, price.model_id) for price in self.content.api_prices
            )
        return self._sold_models

    def _gpus_of_instances(self) -> Mapping[str, Set[str]]:
        if self._instances is None:
            self._instances = _ids_by_spelling(
                (offer.instance_type, offer.gpu_id) for offer in self.content.offers
            )
        return self._instances

    def stack(self, text: str) -> StackEntry:
        """A serving stack by id, alias or name."""
        return self._stacks.find(text)

    def dtype(self, text: str) -> DtypeEntry:
        """A storage type by id or alias."""
        return self._dtypes.find(text)

    def weight_plan(self, text: str) -> WeightPlanEntry:
        """A weight plan by id or alias."""
        return self._plans.find(text)

    def weight_plan_spec(self, text: str) -> WeightPlan:
        """The same with its dtypes looked up, as the engine takes it."""
        plan = self.weight_plan(text)
        return WeightPlan(
            id=plan.id,
            attention=self.dtype(plan.attention).spec,
            ffn=self.dtype(plan.ffn).spec,
            experts=self.dtype(plan.experts).spec,
            embedding=self.dtype(plan.embedding).spec,
            other=self.dtype(plan.other).spec,
        )

    def profile(self, text: str) -> ProfileEntry:
        """A traffic profile by id, alias or name."""
        return self._profiles.find(text)

    def source(self, id: str) -> Source:
        """A source by id."""
        return self._sources.find(id)

    def find_offer(self, id: str) -> Offer:
        """An offer by id.

        Raises
        ------
        NotInCatalog
            The nearest ids are named.
        """
        if self._offer_index is None:
            self._offer_index = Index(
                "offer", ((one.id, (), one) for one in self.content.offers), listed_at="/prices"
            )
        return self._offer_index.find(id)

    def offers(self, gpu_id: str, market: Market | None = None) -> tuple[Offer, ...]:
        """Offers of an accelerator, those without a vote in reference prices included."""
        found = self._offers.get(gpu_id, ())
        return found if market is None else tuple(offer for offer in found if offer.market == market)

    def price_in_force(self, offer: Offer, day: date) -> DatedPrice | None:
        """The last price not after the day; None before the first one and after the offer ended."""
        return price_in_force(offer, day)

    def reference_price(
        self,
        gpu_id: str,
        as_of: date,
        market: Market = "on-demand",
        provider: str | None = None,
        region: str | None = None,
    ) -> ReferencePrice:
        """What an hour of a GPU costs on a day: the median of the providers' medians, or one provider's.

        Where the owner negotiated a price of that kind, it is that price alone.

        Raises
        ------
        NotInCatalog
            No offer of any GPU is from that provider.
        NoPriceInForce
            No offer of that kind counts on that day; what there is instead is named.
        """
        seller = None if provider is None else self._providers.find(provider)
        return self._reference_price(gpu_id, as_of, market, seller, region)

    def fx_rate(self, currency: str, day: date, *, holds_days: int) -> FxRate:
        """The rate of a currency on a day: the last one not after it, and not older than it holds.

        Raises
        ------
        NoRateInForce
            There is none; the currencies and days that have one are named.
        """
        return rate_in_force(self._fx_rates, currency, day, holds_days)

    def api_prices(self, model_id: str, as_of: date) -> tuple[ApiPrice, ...]:
        """Published token prices of a model: of each provider the newest observation not after the day."""
        return self._api_prices_on(model_id, as_of)


def _api_prices_on(
    prices: Mapping[str | None, tuple[ApiPrice, ...]], model_id: str, as_of: date
) -> tuple[ApiPrice, ...]:
    return api_prices_on(prices.get(model_id, ()), as_of)


def _reference_price(
    offers: Mapping[str, tuple[Offer, ...]],
    negotiated: Mapping[str, tuple[Offer, ...]],
    gpu_id: str,
    as_of: date,
    market: Market,
    provider: str | None,
    region: str | None,
) -> ReferencePrice:
    """What the owner negotiated, where it is of that kind, and else the reference price of all offers."""

    def of(some: Sequence[Offer], *, negotiated: bool) -> ReferencePrice:
        return reference_price(
            some,
            gpu_id=gpu_id,
            as_of=as_of,
            market=market,
            provider=provider,
            region=region,
            negotiated=negotiated,
        )

    if own := negotiated.get(gpu_id):
        with suppress(NoPriceInForce):
            return of(own, negotiated=True)
    return of(offers.get(gpu_id, ()), negotiated=False)


def _digest(seen: object) -> str:
    return blake2b(repr(seen).encode(), digest_size=12).hexdigest()


def _spellings(model: ModelEntry) -> tuple[str, ...]:
    return (*model.aliases, model.name, *((model.hf_id,) if model.hf_id else ()))


def _without_organisation(hf_id: str) -> str:
    return hf_id.rpartition("/")[2]


def _without_vendor(gpu: str) -> str:
    return _VENDOR.sub("", gpu)


def _ids_by_spelling(pairs: Iterable[tuple[str | None, str | None]]) -> Mapping[str, Set[str]]:
    """Of pairs of a spelling and an id, either of which may be missing. Spellings may stand in a million offers."""
    found: dict[str, set[str]] = {}
    for text, id in dict.fromkeys(pairs):
        if text is not None and id is not None:
            found.setdefault(normalised(text), set()).add(id)
    return found


def _grouped(pairs: Iterable[tuple[Key, Item]]) -> Mapping[Key, tuple[Item, ...]]:
    groups: dict[Key, list[Item]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return {key: tuple(items) for key, items in groups.items()}
