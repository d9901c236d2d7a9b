"""Two stored quotes, and what made the difference between them: one change at a time, which multiply up.

The path leads from the first quote to the second. Money is compared as stored. Work (accelerator-seconds
of a request) is computed anew after each change, in today's engine on today's catalog; what that leaves
unexplained is the engine's, the calibration's or a catalog fact's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from math import log, prod
from typing import Any, Final

from costsvc.db.snapshot import Catalog
from costsvc.errors import CostsvcError
from costsvc.quoting.bill import bill_of
from costsvc.quoting.choice import choose
from costsvc.quoting.flat import value_at
from costsvc.quoting.gpu_price import UNIT_PRICE
from costsvc.quoting.money import money
from costsvc.quoting.request import parse_request
from costsvc.quoting.scenario import resolve
from costsvc.quoting.tables.table import Row, Table, numbers, texts

# Parameters that a reader sees as one cause, in the order in which they are changed.
CAUSES: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("model",),
    "context and output": ("ctx", "output", "profile"),
    "prefix sharing": ("prefix_tokens", "prefix_share", "turns", "think_s", "hit_rate", "retention_s"),
    "precision": ("weights", "kv"),
    "accelerator": ("gpu",),
    "deployment": ("gpus", "tp", "pp", "ep", "dp", "mode", "allocation", "kv_cache", "stack"),
    "speculation": ("speculation", "draft_model", "draft_tokens", "acceptance_rate"),
    "latency objective": ("slo", "tpot_ms", "ttft_ms"),
}
REST: Final = "engine version, calibration and catalog facts"
_MONEY: Final = (
    ("GPU price", "cost.gpu_price.usd_per_gpu_hour"),
    ("utilization and idle capacity", "cost.load_multiplier"),
)
_IDENTITY: Final = ("engine_version", "catalog_revision", "private_revision", "as_of")
_SHOWN: Final = ("request", "deployment")
_COLUMNS: Final = (
    *texts("first_id", "second_id", "cause", "first", "second"),
    *numbers("factor", "usd_per_request"),
)
# Stored money has nine digits.
_SAME: Final = 1e-7


@dataclass(frozen=True, slots=True)
class _Step:
    """One cause: by what factor it changed the cost of a request. [1]"""

    cause: str
    factor_ratio: float
    first: object
    second: object


def compare_quotes(
    catalog: Catalog, first: Mapping[str, Any], second: Mapping[str, Any], today: date
) -> dict[str, Any]:
    """Explain the second quote's cost by the first one's.

    Returns
    -------
    dict
        `steps`: each cause with its factor and its USD per request, which add up to the difference exactly;
        `changed`: every input, assumption and fact of identity that differs; `prices` of both.
    """
    a, b = first["quote"], second["quote"]
    from_usd, to_usd = (float(value_at(quote, "cost.request_usd")) for quote in (a, b))
    steps = [*_work_steps(catalog, first, second, today), *_money_steps(a, b)]
    rest = to_usd / from_usd / prod(step.factor_ratio for step in steps)
    if abs(log(rest)) > _SAME:
        both = (f"engine {quote['engine_version']}, revision {quote['catalog_revision']}" for quote in (a, b))
        steps.append(_Step(REST, rest, *both))
    return {
        "first": _named(first),
        "second": _named(second),
        "request_usd": {"first": money(from_usd), "second": money(to_usd), "ratio": to_usd / from_usd},
        "steps": _in_usd(steps, from_usd, to_usd),
        "changed": [*_changed(a, b), *_assumptions(a, b)],
        "prices": {
            kind: {
                "first": value_at(a, f"prices.{kind}.usd_per_mtok"),
                "second": value_at(b, f"prices.{kind}.usd_per_mtok"),
            }
            for kind in ("input", "cached_input", "output", "blended")
        },
        "means": "each step multiplies the cost of one request by its factor, in this order; usd_per_request "
        "is what it adds, in proportion to the logarithm of its factor, so that the steps add up",
    }


def difference_table(explained: Mapping[str, Any]) -> Table:
    """The steps as a table, and all of them together in its last row."""
    return Table(name="steps", row_name="step", columns=_COLUMNS, rows=_difference_rows(explained))


def _difference_rows(explained: Mapping[str, Any]) -> Iterator[Row]:
    head = {f"{side}_id": explained[side]["id"] for side in ("first", "second")}
    usd = explained["request_usd"]
    for step in explained["steps"]:
        yield {**head, **step}
    yield {
        **head,
        "cause": "all",
        "first": usd["first"],
        "second": usd["second"],
        "factor": usd["ratio"],
        "usd_per_request": money(float(usd["second"]) - float(usd["first"])),
    }


def _named(kept: Mapping[str, Any]) -> dict[str, Any]:
    return {name: kept[name] for name in ("id", "label", "stored_at")}


def _work_steps(
    catalog: Catalog, first: Mapping[str, Any], second: Mapping[str, Any], today: date
) -> Iterator[_Step]:
    """Causes that change the work of a request."""
    asked = dict(first["asked"])
    reached = _computed_gpu_s(catalog, asked, today)
    for cause, names in CAUSES.items():
        before = {name: asked.get(name) for name in names}
        after = {name: second["asked"].get(name) for name in names}
        if before == after:
            continue
        asked |= after
        now = _computed_gpu_s(catalog, asked, today)
        if now is None or reached is None:
            # There is no such quote in between; the next change that leads to one carries both.
            yield _Step(cause, 1.0, _said(before), _said(after))
            reached = reached or now
            continue
        yield _Step(cause, now / reached, _said(before), _said(after))
        reached = now


def _money_steps(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[_Step]:
    """Causes that are money alone."""
    for cause, path in _MONEY:
        before, after = value_at(a, path), value_at(b, path)
        if before != after:
            yield _Step(cause, float(after) / float(before), before, after)
    before, after = (1.0 + float(value_at(quote, "cost.margin")) for quote in (a, b))
    if before != after:
        yield _Step("margin", after / before, value_at(a, "cost.margin"), value_at(b, "cost.margin"))


def _in_usd(steps: list[_Step], from_usd: float, to_usd: float) -> list[dict[str, Any]]:
    """Steps with their share of the difference; what rounding of stored money leaves goes to the largest."""
    logs = [log(step.factor_ratio) for step in steps]
    difference, whole = to_usd - from_usd, sum(logs)
    shares = [one / whole if abs(whole) > _SAME else 0.0 for one in logs]
    return [
        {
            "cause": step.cause,
            "first": step.first,
            "second": step.second,
            "factor": step.factor_ratio,
            "usd_per_request": money(difference * share),
        }
        for step, share in zip(steps, shares, strict=True)
    ]


def _computed_gpu_s(catalog: Catalog, asked: Mapping[str, Any], today: date) -> float | None:
    """Accelerator-seconds of a request today; None where there is no such quote."""
    given = {name: value for name, value in asked.items() if value is not None and name != "revision"}
    try:
        request = parse_request(given)
        scenario = resolve(catalog, request, today)
        return bill_of(scenario, choose(scenario), UNIT_PRICE).request_gpu_s
    except CostsvcError:
        return None


def _said(values: Mapping[str, object]) -> str:
    known = [f"{name}={value}" for name, value in values.items() if value is not None]
    return ", ".join(known) or "default"


def _changed(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Identity, request, deployment and the basis of the price, where they differ."""
    paths = [*_IDENTITY, "cost.gpu_price.usd_per_gpu_hour", "cost.gpu_price.basis", "concurrency.bound"]
    paths += [f"{section}.{name}" for section in _SHOWN for name in {**a[section], **b[section]}]
    for path in paths:
        before, after = (_at(quote, path) for quote in (a, b))
        if before != after:
            yield {"what": path, "first": before, "second": after}


def _at(quote: Mapping[str, Any], path: str) -> object:
    try:
        return value_at(quote, path)
    except KeyError:
        return None


def _assumptions(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Judgements whose value differs, or that only one of the two rests on."""
    one, other = (
        {(each["name"], str(each["scope"])): each["value"] for each in quote["assumptions"]}
        for quote in (a, b)
    )
    for key in dict.fromkeys((*one, *other)):
        if one.get(key) != other.get(key):
            name = f"assumption {key[0]} {key[1]}" if key[1] != "{}" else f"assumption {key[0]}"
            yield {"what": name, "first": one.get(key), "second": other.get(key)}
