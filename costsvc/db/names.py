"""From what people type to catalog ids: normalisation, aliases and the nearest ids when nothing matches."""

import re
from collections.abc import Callable, Iterable, Mapping, Set
from difflib import get_close_matches
from typing import Generic, TypeVar

from costsvc.errors import Ambiguous, NotInCatalog

Entry = TypeVar("Entry")

MAX_NEAREST = 5
# Below difflib's default of 0.6: `llama-70b` should still find `llama-3.1-70b-instruct`.
_SIMILARITY = 0.5
# difflib's time grows with the length of what was typed; no spelling in the catalog is this long.
_MAX_COMPARED = 80


def normalised(text: str) -> str:
    """The form in which spellings are compared.

    Examples
    --------
    >>> normalised("  Llama_3 70B ")
    'llama-3-70b'
    """
    return re.sub(r"[\s_-]+", "-", text.casefold()).strip("-")


class Index(Generic[Entry]):
    """Entries of one kind by id and by alias.

    An id outranks another entry's alias, and an alias outranks what `shortened` makes of one.
    """

    def __init__(
        self,
        what: str,
        entries: Iterable[tuple[str, Iterable[str], Entry]],
        *,
        shortened: Callable[[str], str] = str,
        listed_at: str | None = None,
    ) -> None:
        self._what = what
        self._listed_at = listed_at
        self._shortened = shortened
        self._by_id: dict[str, Entry] = {}
        ids: dict[str, set[str]] = {}
        full: dict[str, set[str]] = {}
        short: dict[str, set[str]] = {}
        for id, aliases, entry in entries:
            self._by_id[id] = entry
            ids.setdefault(normalised(id), set()).add(id)
            for alias in aliases:
                full.setdefault(normalised(alias), set()).add(id)
                short.setdefault(normalised(shortened(alias)), set()).add(id)
        self._means = {**short, **full, **ids}

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Entries by id, in catalog order."""
        return self._by_id

    def find(self, text: str, otherwise: Callable[[], Mapping[str, Set[str]]] = dict) -> Entry:
        """The entry that an id or alias means.

        Parameters
        ----------
        otherwise : callable
            Ids by further spellings, normalised; asked for where `text` means nothing else.

        Raises
        ------
        Ambiguous
            Several entries share the alias.
        NotInCatalog
            None has it; the nearest ids are named.
        """
        if (exact := self._by_id.get(text)) is not None:
            return exact
        meant = self.meanings(text) or otherwise().get(normalised(text))
        if not meant:
            near = self._nearest(normalised(self._shortened(text)))
            raise NotInCatalog(self._what, text, near, listed_at=self._listed_at)
        if len(meant) > 1:
            raise Ambiguous(self._what, text, sorted(meant))
        return self._by_id[next(iter(meant))]

    def meanings(self, text: str) -> Set[str]:
        """Ids that a spelling may mean, without looking for what is near; empty where it means none."""
        if text in self._by_id:
            return {text}
        short = normalised(self._shortened(text))
        return self._means.get(normalised(text)) or self._means.get(short) or frozenset()

    def _nearest(self, key: str) -> list[str]:
        """Ids whose own spelling, or an alias, is close to `key`; the closest first."""
        close = get_close_matches(key[:_MAX_COMPARED], self._means, n=4 * MAX_NEAREST, cutoff=_SIMILARITY)
        return list(dict.fromkeys(id for spelling in close for id in sorted(self._means[spelling])))[
            :MAX_NEAREST
        ]
