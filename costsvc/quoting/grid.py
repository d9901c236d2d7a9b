"""Several quotes from lists in one query: every model on every card at every context, and so on."""

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Final

from costsvc.errors import InvalidRequest
from costsvc.quoting.request import PARAMETERS

MAX_QUOTES: Final = 200
_SEPARATOR: Final = ","


def is_grid(given: Mapping[str, str]) -> bool:
    """Whether any parameter holds a list."""
    return any(_SEPARATOR in text for name, text in given.items() if name in PARAMETERS)


def grid_of(given: Mapping[str, str]) -> list[dict[str, str]]:
    """One request per combination, the last parameter of the query running fastest.

    Raises
    ------
    InvalidRequest
        More combinations than one call answers, or an empty place in a list.

    Examples
    --------
    >>> grid_of({"model": "a,b", "gpu": "h100", "ctx": "1,2"})[1]
    {'model': 'a', 'gpu': 'h100', 'ctx': '2'}
    """
    lists = {name: _items(name, text) for name, text in given.items()}
    combinations = prod(len(items) for items in lists.values())
    if combinations > MAX_QUOTES:
        sizes = " × ".join(f"{len(items)} {name}" for name, items in lists.items() if len(items) > 1)
        raise InvalidRequest(
            f"{sizes} are {combinations:,} quotes, but one call answers {MAX_QUOTES} at most. Split the "
            f"lists over several calls, or send the rows to POST /quotes/batch.",
            details={"asked_quotes": combinations, "most_quotes": MAX_QUOTES},
        )
    return [dict(zip(lists, chosen, strict=True)) for chosen in product(*lists.values())]


def _items(name: str, text: str) -> list[str]:
    items = [item.strip() for item in text.split(_SEPARATOR)]
    if len(items) > 1 and "" in items:
        complaint = f"{name} is '{text}', a list with an empty place. Take a comma away."
        raise InvalidRequest(complaint, field=name)
    return items
