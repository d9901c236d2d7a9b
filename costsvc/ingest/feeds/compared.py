"""A feed against the curated catalog: what to add to which file, for a person to judge.

Nothing is written to the catalog: a proposal is text in the form of its files.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final, Literal

from costsvc.db.entries import ApiPrice, Offer
from costsvc.db.names import normalised
from costsvc.db.prices import api_prices_on, price_in_force
from costsvc.db.snapshot import Catalog
from costsvc.ingest.feeds.published import Published, PublishedOffer, PublishedTokens
from costsvc.ingest.providers import ProvidersFile

# Lists round differently; the catalog's prices have at least as many digits. [USD]
_SAME_USD: Final = Decimal("0.00005")
_PRICES: Final = ("input_usd_per_mtok", "cached_input_usd_per_mtok", "output_usd_per_mtok")
_WHOLE_INSTANCE: Final = "whole-instance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One line to add: `before` is what the catalog says, None where it says nothing."""

    kind: Literal["changed", "new"]
    file: str
    what: str
    before: str | None
    after: str
    entry: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a feed and the catalog disagree about; `same` rows agree, `left_out` counts by reason what is neither."""

    source_id: str
    source: Mapping[str, Any]
    observed: date
    proposals: tuple[Proposal, ...]
    same: int
    left_out: Mapping[str, int]


class Sellers:
    """Providers of the catalog by any spelling."""

    def __init__(self, file: ProvidersFile) -> None:
        self._ids = {
            normalised(spelling): one.id
            for one in file.providers
            for spelling in (one.id, one.name, *one.spellings)
        }
        self._names = file.names()

    def find(self, text: str) -> tuple[str, str] | None:
        """Id and name of a provider; None where the catalog has none of that spelling."""
        id = self._ids.get(normalised(text))
        return None if id is None else (id, self._names[id])


def compare(
    catalog: Catalog,
    sellers: Sellers,
    published: Published,
    observed: date,
    wanted: Callable[[str], bool] = lambda provider_id: True,
) -> Compared:
    """Hold what was published against the catalog on the day it was observed.

    Parameters
    ----------
    wanted : callable
        Which providers, by id.
    """
    rows = _Rows(catalog, sellers, published.source_id, observed, wanted)
    found = [*rows.of_offers(published.offers), *rows.of_tokens(published.tokens)]
    source = {"id": published.source_id, **published.source, "accessed": observed}
    return Compared(
        source_id=published.source_id,
        source=source,
        observed=observed,
        proposals=tuple(sorted(found, key=lambda one: (one.file, one.kind, one.what))),
        same=rows.same,
        left_out=dict(sorted(rows.left_out.items())),
    )


class _Rows:
    """Rows of one feed in turn; remembers how many agree and why others were left out."""

    def __init__(
        self,
        catalog: Catalog,
        sellers: Sellers,
        source_id: str,
        observed: date,
        wanted: Callable[[str], bool],
    ) -> None:
        self._catalog = catalog
        self._sellers = sellers
        self._source_id = source_id
        self._observed = observed
        self._wanted = wanted
        self.same = 0
        self.left_out: Counter[str] = Counter()

    def of_offers(self, offers: tuple[PublishedOffer, ...]) -> Iterator[Proposal]:
        known: dict[tuple[object, ...], list[Offer]] = {}
        for offer in self._catalog.content.offers:
            known.setdefault(_place(offer), []).append(offer)
        for one in offers:
            seller = self._seller(one.provider)
            gpu_id = None if seller is None else self._gpu(one)
            if seller is not None and gpu_id is not None:
                yield from self._of_offer(one, seller, gpu_id, known)

    def _of_offer(
        self,
        one: PublishedOffer,
        seller: tuple[str, str],
        gpu_id: str,
        known: Mapping[tuple[object, ...], list[Offer]],
    ) -> Iterator[Proposal]:
        id, name = seller
        place = (name, gpu_id, one.market, one.instance_type, one.region, one.gpus_per_instance)
        price = {
            "first_day": self._observed,
            "usd_per_instance_hour": str(one.usd_per_instance_hour),
            "source": self._source_id,
        }
        usd = one.usd_per_instance_hour / one.gpus_per_instance
        what = f"{name} {gpu_id} {one.instance_type} {one.region} {one.market}"
        after = f"{usd.quantize(_SAME_USD).normalize():f} USD/GPU-hour"
        there = known.get(place, [])
        in_force = [price_in_force(offer, self._observed) for offer in there]
        amounts = [now.usd_per_gpu_hour for now in in_force if now and now.usd_per_gpu_hour]
        if any(abs(amount - usd) < _SAME_USD for amount in amounts):
            self.same += 1
        elif there and any(price.first_day == self._observed for price in there[0].prices):
            self.left_out["the catalog has another price of the same day"] += 1
        elif there:
            before = f"{amounts[0]:f} USD/GPU-hour" if amounts else "ended"
            entry: dict[str, Any] = {"offer": there[0].id, "add_price": price}
            yield self._proposal("changed", f"prices/{id}.yaml", what, before, after, entry)
        else:
            entry = {
                "gpu": gpu_id,
                "instance_type": one.instance_type,
                "gpus_per_instance": one.gpus_per_instance,
                "region": one.region,
                "market": one.market,
                "basis": _WHOLE_INSTANCE,
                "prices": [price],
            }
            yield self._proposal("new", f"prices/{id}.yaml", what, None, after, entry)

    def of_tokens(self, tokens: tuple[PublishedTokens, ...]) -> Iterator[Proposal]:
        newest = {
            (price.provider, price.provider_model_id): price
            for price in api_prices_on(self._catalog.content.api_prices, self._observed)
        }
        for one in tokens:
            seller = self._seller(one.provider)
            if seller is not None:
                yield from self._of_tokens(one, seller, newest.get((seller[1], one.provider_model_id)))

    def _of_tokens(
        self, one: PublishedTokens, seller: tuple[str, str], known: ApiPrice | None
    ) -> Iterator[Proposal]:
        id, name = seller
        amounts = {field: getattr(one, field) for field in _PRICES}
        if not any(amounts.values()):
            self.left_out["no price of tokens"] += 1
            return
        model_id = known.model_id if known else self._model(one.provider_model_id)
        if known is None and model_id is None:
            self.left_out["a model that the catalog does not hold"] += 1
            return
        before = {field: getattr(known, field) for field in _PRICES} if known else None
        if before == amounts:
            self.same += 1
            return
        entry: dict[str, Any] = {"id": one.provider_model_id}
        if model_id is not None:
            entry["model"] = model_id
        entry |= {field: f"{usd:f}" for field, usd in amounts.items() if usd is not None}
        if one.context_limit_tokens:
            entry["context_limit_tokens"] = one.context_limit_tokens
        yield self._proposal(
            "changed" if known else "new",
            f"api_prices/{id}.yaml",
            f"{name} {one.provider_model_id}",
            None if before is None else _shown(before),
            _shown(amounts),
            entry,
        )

    def _seller(self, text: str) -> tuple[str, str] | None:
        seller = self._sellers.find(text)
        if seller is None:
            self.left_out[f"a provider that the catalog does not name: {text}"] += 1
        elif self._wanted(seller[0]):
            return seller
        return None

    def _gpu(self, one: PublishedOffer) -> str | None:
        reason = "a card that the catalog does not hold"
        for spelling in one.gpu_spellings:
            meant = self._catalog.gpus_meant(spelling)
            if len(meant) == 1:
                return next(iter(meant))
            if meant:
                reason = f"a name of several cards: {spelling}"
        self.left_out[reason] += 1
        return None

    def _model(self, text: str) -> str | None:
        meant = self._catalog.models_meant(text)
        return next(iter(meant)) if len(meant) == 1 else None

    @staticmethod
    def _proposal(
        kind: Literal["changed", "new"],
        file: str,
        what: str,
        before: str | None,
        after: str,
        entry: Mapping[str, Any],
    ) -> Proposal:
        return Proposal(kind=kind, file=file, what=what, before=before, after=after, entry=entry)


def _place(offer: Offer) -> tuple[object, ...]:
    """What makes two rows the same offer."""
    return (
        offer.provider,
        offer.gpu_id,
        offer.market,
        offer.instance_type,
        offer.region,
        offer.gpus_per_instance or 1,
    )


def _shown(amounts: Mapping[str, Decimal | None]) -> str:
    """Input, cached input and output as one reads them."""
    return " / ".join("–" if usd is None else f"{usd:f}" for usd in amounts.values()) + " USD/Mtok"
