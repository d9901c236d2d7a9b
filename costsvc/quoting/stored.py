"""Quotes that are kept: computed once, written in every format, and the same bytes for ever."""

import json
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
from typing import Any, Final

from pydantic import Field

from costsvc.db.quotes import QuoteRepository, QuoteSearch, StoredQuote
from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest, Unavailable
from costsvc.ingest.entry import Strict
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import QuoteRequest, Text, parse_request
from costsvc.quoting.tables.table import Column, Table, numbers, texts

MAX_LISTED: Final = 1000
_ID_BYTES: Final = 9
_LONGEST_LABEL: Final = 200
_LABEL: Final = "label"
Written = Callable[[Mapping[str, Any]], Mapping[str, bytes]]

STORED: Final = (
    *texts("id", "label"),
    Column("stored_at"),
    *texts("model", "gpu"),
    Column("as_of", "day"),
    *numbers("catalog_revision"),
    *texts("engine_version"),
    *numbers("request_usd"),
)


class StoredFilter(Strict):
    """Which stored quotes."""

    label: Text | None = Field(None, description="Only quotes whose label contains this.")
    model: Text | None = Field(None, description="Only this model, by id or alias.")
    since: date | None = Field(None, description="Only quotes stored on this day (UTC) or later.")
    until: date | None = Field(None, description="Only quotes stored on this day (UTC) or before.")
    limit: int = Field(100, ge=1, le=MAX_LISTED, description="Most quotes listed, the newest first.")


def store_quote(
    repository: QuoteRepository,
    catalog: Catalog,
    given: Mapping[str, Any],
    *,
    owner: str,
    idempotency_key: str | None,
    today: date,
    written: Written,
) -> tuple[StoredQuote, bool]:
    """Quote and keep: the answer with its whole trace, and the request that makes it again.

    Parameters
    ----------
    given : mapping
        `label`, and the members of a quote's body.
    written : callable
        From what is kept to its bytes by suffix.

    Returns
    -------
    tuple
        The quote, and whether it is new.

    Raises
    ------
    CostsvcError
        There is no such quote, or the key was used for another request.
    """
    label = given.get(_LABEL, "")
    if not isinstance(label, str) or len(label) > _LONGEST_LABEL:
        raise InvalidRequest(f"label is no text of at most {_LONGEST_LABEL} characters.", field=_LABEL)
    request = parse_request({name: value for name, value in given.items() if name != _LABEL})
    if catalog.revision is None:
        raise Unavailable("A quote is kept with the revision of its catalog, and this catalog has none.")
    pinned = {"as_of": request.as_of or today, "revision": catalog.revision}
    if catalog.private_revision is not None:
        pinned["private_revision"] = catalog.private_revision
    whole = request.model_copy(update={**pinned, "trace": True})
    answer = make_quote(catalog, whole, today)
    kept: dict[str, Any] = {"asked": _asked(request, pinned), "quote": answer}
    quote = StoredQuote(
        id=secrets.token_urlsafe(_ID_BYTES).replace("-", "x").replace("_", "y"),
        owner=owner,
        idempotency_key=idempotency_key,
        request_hash=sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest(),
        created_at=datetime.now(UTC),
        label=label,
        model_id=str(_at(answer, "request", "model")),
        gpu_id=str(_at(answer, "request", "gpu")),
        as_of=date.fromisoformat(str(answer["as_of"])),
        catalog_revision=catalog.revision,
        private_revision=catalog.private_revision,
        engine_version=str(answer["engine_version"]),
        request_usd=str(_at(answer, "cost", "request_usd")),
    )
    return repository.store(quote, lambda stamped: written({**_head(stamped), **kept}))


def search_of(catalog: Catalog, wanted: StoredFilter) -> QuoteSearch:
    """A filter as the database understands it."""
    return QuoteSearch(
        label=wanted.label,
        model_id=None if wanted.model is None else _model_id(catalog, wanted.model),
        since=None if wanted.since is None else _midnight(wanted.since),
        before=None if wanted.until is None else _midnight(wanted.until) + timedelta(days=1),
        limit=wanted.limit,
    )


def listed_quote(quote: StoredQuote) -> dict[str, Any]:
    """A stored quote in a list."""
    return {
        **_head(quote),
        "model": quote.model_id,
        "gpu": quote.gpu_id,
        "as_of": quote.as_of.isoformat(),
        "catalog_revision": quote.catalog_revision,
        "engine_version": quote.engine_version,
        "request_usd": quote.request_usd,
    }


def stored_table(listed: Mapping[str, Any]) -> Table:
    """The list as a table."""
    return Table(name="quotes", row_name="quote", columns=STORED, rows=listed["items"])


def _head(quote: StoredQuote) -> dict[str, str]:
    return {"id": quote.id, "label": quote.label, "stored_at": quote.created_at.isoformat()}


def _asked(request: QuoteRequest, pinned: Mapping[str, Any]) -> dict[str, Any]:
    """The request as a body of POST /quote, its day and revisions named."""
    given: dict[str, Any] = json.loads(request.model_dump_json(exclude_unset=True))
    return {**given, **pinned, "as_of": pinned["as_of"].isoformat()}


def _at(answer: Mapping[str, Any], section: str, name: str) -> Any:
    return answer[section][name]


def _model_id(catalog: Catalog, text: str) -> str:
    return text if text in catalog.models else catalog.model(text).id


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
