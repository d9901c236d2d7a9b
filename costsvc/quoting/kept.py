"""What quotes of one catalog share: computed once, and let go with the catalog."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, update_wrapper
from typing import Concatenate, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary, ref

from costsvc.db.snapshot import Catalog

Fact = TypeVar("Fact")
Result = TypeVar("Result")
Words = ParamSpec("Words")

_KEPT_PER_CATALOG = 256


@dataclass(frozen=True, slots=True, eq=False)
class Itself(Generic[Fact]):
    """A fact of the catalog as a key: the very object, which the key keeps alive."""

    fact: Fact

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and other.fact is self.fact

    def __hash__(self) -> int:
        return id(self.fact)


def once_per_catalog(
    compute: Callable[Concatenate[Catalog, Words], Result],
) -> Callable[Concatenate[Catalog, Words], Result]:
    """Remember what follows from a catalog and a few words, such as ids and a day.

    Results must not refer to the catalog, which would keep it, nor be changed by who gets them. Of each catalog
    those that were not asked for the longest go first; what raises is not remembered.
    """
    kept: WeakKeyDictionary[Catalog, Callable[..., Result]] = WeakKeyDictionary()

    def remembered(catalog: Catalog, /, *words: Words.args, **named: Words.kwargs) -> Result:
        of_catalog = kept.get(catalog) or kept.setdefault(catalog, _remembering(compute, ref(catalog)))
        return of_catalog(*words, **named)

    update_wrapper(remembered, compute)
    return remembered


def _remembering(
    compute: Callable[Concatenate[Catalog, Words], Result], to: "ref[Catalog]"
) -> Callable[..., Result]:
    """Without a reference to the catalog, which the weak dictionary would else hold for ever."""

    @lru_cache(maxsize=_KEPT_PER_CATALOG)
    def of_catalog(*words: Words.args, **named: Words.kwargs) -> Result:
        catalog = to()
        assert catalog is not None  # noqa: S101 - who asks holds it
        return compute(catalog, *words, **named)

    return of_catalog
