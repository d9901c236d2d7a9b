"""Several quotes from lists in one query: every model on every card at every context, and so on."""

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Final

from costsvc.db.names import normalised
from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest
from costsvc.quoting.compare import ANY
from costsvc.quoting.request import PARAMETERS

MAX_QUOTES: Final = 200
_SEPARATOR: Final = ","
_WORDS: Final = ("model", "gpu", "weights", "kv", "stack", "mode", "market", "provider", "region", "profile")
_OF_OFFERS: Final = ("provider", "region")


def is_grid(given: Mapping[str, str], catalog: Catalog) -> bool:
    """Whether any parameter holds a list."""
    return any(len(_items(name, text, catalog)) > 1 for name, text in given.items() if name in PARAMETERS)


def grid_of(given: Mapping[str, str], catalog: Catalog) -> list[dict[str, str]]:
    """One request per combination, the last parameter of the query running fastest.

    What the catalog knows by a name with commas, such as a provider `Acme, Inc.`, is no list.

    Raises
    ------
    InvalidRequest
        More combinations than one call answers, or an empty place in a list.
    """
    lists = {name: _items(name, text, catalog) for name, text in given.items()}
    combinations = prod(len(items) for items in lists.values())
    if combinations > MAX_QUOTES:
        sizes = " × ".join(f"{len(items)} {name}" for name, items in lists.items() if len(items) > 1)
        raise InvalidRequest(
            f"{sizes} are {combinations:,} quotes, but one call answers {MAX_QUOTES} at most. Split the "
            f"lists over several calls, or send the rows to POST /quotes/batch.",
            details={"asked_quotes": combinations, "most_quotes": MAX_QUOTES},
        )
    return [dict(zip(lists, chosen, strict=True)) for chosen in product(*lists.values())]


def refuse_several(given: Mapping[str, str], catalog: Catalog) -> None:
    """Refuse lists of words, and any GPU, where one quote is answered.

    Raises
    ------
    InvalidRequest
        It names the calls that answer several.
    """
    for name in _WORDS:
        text = given.get(name)
        if text is None:
            continue
        several = len(_items(name, text, catalog)) > 1
        if several or (name == "gpu" and text.strip().lower() == ANY):
            raise InvalidRequest(
                f"{name} is '{text}', but this is one quote. /compare?gpu=h100,h200 (or gpu=any) ranks several GPUs, "
                "dtypes and modes; lists in /quote.csv, .xml or .xlsx answer a row for each combination.",
                field=name,
            )


def _items(name: str, text: str, catalog: Catalog) -> list[str]:
    if _SEPARATOR not in text or _is_one(name, text, catalog):
        return [text.strip()]
    items = [item.strip() for item in text.split(_SEPARATOR)]
    if "" in items:
        complaint = f"{name} is '{text}', a list with an empty place. Take a comma away."
        raise InvalidRequest(complaint, field=name)
    return items


def _is_one(name: str, text: str, catalog: Catalog) -> bool:
    """Whether a text with commas is the name of one thing."""
    if name in _OF_OFFERS:
        names = (getattr(offer, name) or "" for offer in catalog.content.offers)
        return normalised(text) in {normalised(one) for one in names if _SEPARATOR in one}
    return bool({"model": catalog.models_meant, "gpu": catalog.gpus_meant}.get(name, lambda _: ())(text))
