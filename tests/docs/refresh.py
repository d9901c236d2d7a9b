"""Parts of the pages that the code writes. `python -m tests.docs.refresh` writes them anew.

A part stands between `<!-- generated: name -->` and `<!-- end -->`.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from datetime import date
from typing import Any, Final

from pydantic import BaseModel

from costsvc.db.snapshot import Catalog
from costsvc.errors import NoPriceInForce
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.quoting.compare import CompareRequest
from costsvc.quoting.curve import CurveRequest
from costsvc.quoting.frontier import FrontierRequest
from costsvc.quoting.launch.request import LaunchRequest
from costsvc.quoting.listing.api_prices import ApiPriceFilter
from costsvc.quoting.listing.common import as_printed
from costsvc.quoting.listing.fx_rates import FxRateFilter
from costsvc.quoting.listing.gpus import GpuFilter
from costsvc.quoting.listing.models import ModelFilter
from costsvc.quoting.listing.parts import Ordered
from costsvc.quoting.listing.prices import PriceFilter
from costsvc.quoting.listing.profiles import ProfileFilter
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import QuoteRequest, TrafficProfile, parse_request
from costsvc.quoting.what_if import WhatIfRequest
from costsvc.settings import Settings
from tests.docs.pages import pages
from tests.ingest.hugging_face.published import summary

DAY: Final = date(2026, 11, 29)
FIRST_QUOTE: Final = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192, "as_of": DAY.isoformat()}
COMPARISONS: Final = (
    ("/compare", CompareRequest),
    ("/frontier", FrontierRequest),
    ("/curve", CurveRequest),
    ("/what-if", WhatIfRequest),
    ("/launch-check", LaunchRequest),
)
_GENERATED: Final = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_SHOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "as_of": (),
    "catalog_revision": (),
    "engine_version": (),
    "request": ("model", "gpu", "ctx", "input_tokens", "output_tokens"),
    "deployment": ("gpus", "tp", "weights", "kv", "chosen"),
    "cost": ("request_usd", "utilization", "replica_usd_per_hour"),
    "prices": ("attribution", "input", "cached_input", "output", "blended"),
    "concurrency": ("limit", "bound"),
    "memory": ("weights_bytes", "kv_budget_bytes", "kv_sequence_bytes"),
    "latency": ("tpot_ms", "ttft_ms"),
    "throughput": ("output_tok_s",),
    "uncertainty": ("low_ratio", "high_ratio", "extrapolated"),
    "warnings": (),
}


def shipped_catalog() -> Catalog:
    """The files, as a new database holds them."""
    return Catalog(read_catalog(catalog_root(None)), revision=1)


def parts(catalog: Catalog) -> Mapping[str, Callable[[], str]]:
    """Every part by name."""
    return {
        "quote": lambda: _quote(catalog),
        "attributions": lambda: _attributions(catalog),
        "spread": lambda: _spread(catalog),
        "parameters": lambda: _fields(QuoteRequest),
        "profile": lambda: _fields(TrafficProfile),
        "filters": _filters,
        "comparisons": _comparisons,
        "settings": _settings,
        "imports": lambda: "\n".join(summary()),
        "reference_prices": lambda: _reference_prices(catalog),
    }


def generated(text: str) -> dict[str, str]:
    """The parts that stand on a page, by name."""
    return {found[2]: found[3] for found in _GENERATED.finditer(text)}


def refreshed(text: str, catalog: Catalog) -> str:
    """A page with its parts written anew."""
    written = parts(catalog)
    return _GENERATED.sub(lambda found: f"{found[1]}{written[found[2]]()}\n{found[4]}", text)


def _answer(catalog: Catalog, **more: object) -> Mapping[str, Any]:
    return make_quote(catalog, parse_request({**FIRST_QUOTE, **more}), DAY)


def _quote(catalog: Catalog) -> str:
    """The answer of the first quote, abridged."""
    answer = _answer(catalog)
    shown = {
        section: {name: answer[section][name] for name in names} if names else answer[section]
        for section, names in _SHOWN.items()
    }
    gpu_price = answer["cost"]["gpu_price"]
    shown["cost"]["gpu_price"] = {name: gpu_price[name] for name in ("usd_per_gpu_hour", "basis")}
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in shown.items()]
    # A section of several numbers is folded to one key a line where it would be too long to read.
    folded = [line if len(line) <= 110 else _folded(line) for line in lines]
    return "```json\n{\n" + ",\n".join(folded) + "\n}\n```"


def _folded(line: str) -> str:
    name, _, value = line.strip().partition(": ")
    inner = [f"    {json.dumps(key)}: {json.dumps(one)}" for key, one in json.loads(value).items()]
    return f"  {name}: {{\n" + ",\n".join(inner) + "\n  }"


def _attributions(catalog: Catalog) -> str:
    """Prices of one request under each attribution, and what they add up to."""
    rows = [
        "| attribution | mode | input | cached input | output | sum over the request | its cost |",
        "|---|---|---|---|---|---|---|",
    ]
    for attribution, mode in (("marginal", "colocated"), ("step", "colocated"), ("pools", "disaggregated")):
        answer = _answer(catalog, attribution=attribution, mode=mode, hit_rate=0.5)
        request, prices = answer["request"], answer["prices"]
        tokens = {
            "input": request["input_tokens"] - request["cached_input_tokens"],
            "cached_input": request["cached_input_tokens"],
            "output": request["output_tokens"],
        }
        each = {name: float(prices[name]["usd_per_mtok"]) for name in tokens}
        total = sum(each[name] * tokens[name] for name in tokens) / 1e6
        cost = float(answer["cost"]["request_usd"])
        shown = " | ".join(f"{price:.4f}" for price in each.values())
        rows.append(f"| `{attribution}` | {mode} | {shown} | {total:.8f} | {cost:.8f} |")
    return "\n".join(rows)


def _spread(catalog: Catalog) -> str:
    """Loads of one rate and the same mean lengths that differ in spread alone."""
    rows = [
        "| spread of prompts | of outputs | correlation | sequences at once | USD/Mtok | GPUs | USD per month |",
        "|---|---|---|---|---|---|---|",
    ]
    for inputs, outputs, correlation in ((0.0, 0.0, 0.0), (1.2, 0.0, 0.0), (0.0, 1.2, 0.0), (0.8, 0.8, 0.9)):
        profile = {
            "input_tokens": 6000,
            "output_tokens": 500,
            "max_context_tokens": 60_000,
            "input_cv": inputs,
            "output_cv": outputs,
            "length_correlation": correlation,
            "rps": 60,
        }
        asked = {"model": "llama-3.1-70b", "gpu": "h100", "tp": 4, "slo": "batch", "profile": profile}
        answer: Any = make_quote(catalog, parse_request(asked), DAY)
        fleet, price = answer["traffic"]["autoscaled"], float(answer["prices"]["blended"]["usd_per_mtok"])
        rows.append(
            f"| {inputs:g} | {outputs:g} | {correlation:g} | {answer['concurrency']['limit']} | {price:.4f} "
            f"| {fleet['gpus']:g} | {float(fleet['usd_per_month']):,.0f} |"
        )
    return "\n".join(rows)


def _fields(model: type[BaseModel]) -> str:
    rows = ["| name | value | default | meaning |", "|---|---|---|---|"]
    schema = model.model_json_schema()
    for name, described in schema["properties"].items():
        required = name in schema.get("required", ())
        default = "required" if required else _default(described.get("default"))
        rows.append(f"| `{name}` | {_bounds(described)} | {default} | {described.get('description', '')} |")
    return "\n".join(rows)


def _default(value: object) -> str:
    if isinstance(value, bool):
        return "`on`" if value else "`off`"
    return "–" if value is None else f"`{value}`"


def _bounds(described: Mapping[str, Any]) -> str:
    """What a value may be, of the first alternative that a text can carry."""
    one = next(a for a in described.get("anyOf", [described]) if a.get("type") != "null")
    if "oneOf" in one:
        return "id or object"
    if "$ref" in one:
        return "object"
    if one["type"] == "array":
        return "list of numbers" if one["items"].get("type") == "number" else "list of objects"
    if "enum" in one:
        return ", ".join(f"`{word}`" for word in one["enum"])
    kind = {"number": "number", "integer": "whole number", "boolean": "`on` or `off`"}.get(
        one["type"], "text"
    )
    kind = {"date": "day", "path": "path"}.get(one.get("format", ""), kind)
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = [f"{sign} {_plain(one[name])}" for name, sign in signs.items() if name in one]
    if "maxLength" in one:
        limits.append(f"1 to {one['maxLength']} characters")
    if "pattern" in one and one["type"] == "string" and kind == "text":
        limits.append(f"`{one['pattern']}`")
    return ", ".join([kind, *limits])


def _plain(bound: float) -> str:
    return f"{bound:,.0f}" if bound == int(bound) else f"{bound}"


def _filters() -> str:
    rows = ["| call | filters |", "|---|---|"]
    for path, model in (
        ("/models", ModelFilter),
        ("/gpus", GpuFilter),
        ("/prices", PriceFilter),
        ("/profiles", ProfileFilter),
        ("/api-prices", ApiPriceFilter),
        ("/fx-rates", FxRateFilter),
    ):
        rows.append(f"| `GET {path}` | {_described(model, without=Ordered.model_fields)} |")
    return "\n".join([*rows, f"| each | {_described(Ordered)} |"])


def _described(model: type[BaseModel], without: Collection[str] = ()) -> str:
    fields = model.model_fields.items()
    return "<br>".join(f"`{name}`: {field.description}" for name, field in fields if name not in without)


def _reference_prices(catalog: Catalog) -> str:
    """What an hour of every GPU costs, and what that rests on."""
    rows = [
        "| GPU | USD/h | votes of providers | offers that vote | others | lowest | highest | observed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for gpu_id in sorted(catalog.gpus):
        there = len(catalog.offers(gpu_id, "on-demand"))
        try:
            price = catalog.reference_price(gpu_id, DAY)
        except NoPriceInForce:
            rows.append(f"| `{gpu_id}` | – | 0 | 0 | {there} | – | – | – |")
            continue
        amounts = (price.lowest_usd_per_gpu_hour, price.highest_usd_per_gpu_hour)
        rows.append(
            f"| `{gpu_id}` | {as_printed(price.usd_per_gpu_hour)} | {price.providers} | {price.offers} "
            f"| {there - price.offers} | {' | '.join(map(as_printed, amounts))} "
            f"| {price.first_observed} to {price.last_observed} |"
        )
    return "\n".join(rows)


def _comparisons() -> str:
    """What each comparison takes beyond a quote, or takes differently."""
    rows = ["| call | name | value | default | meaning |", "|---|---|---|---|---|"]
    quote = QuoteRequest.model_json_schema()["properties"]
    for path, model in COMPARISONS:
        schema = model.model_json_schema()
        for name, described in schema["properties"].items():
            if described == quote.get(name):
                continue
            default = "required" if name in schema["required"] else _default(described.get("default"))
            meaning = described.get("description", "")
            rows.append(f"| `{path}` | `{name}` | {_bounds(described)} | {default} | {meaning} |")
    return "\n".join(rows)


def _settings() -> str:
    rows = ["| variable | value | default | meaning |", "|---|---|---|---|"]
    for name, described in Settings.model_json_schema()["properties"].items():
        default = Settings.model_fields[name].default
        shown = default.get_secret_value() if hasattr(default, "get_secret_value") else default
        text = "none" if shown is None else f"`{shown}`"
        rows.append(
            f"| `COSTSVC_{name.upper()}` | {_bounds(described)} | {text} | {described['description']} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Write the generated parts of every page."""
    catalog = shipped_catalog()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if generated(text):
            page.write_text(refreshed(text, catalog), encoding="utf-8")


if __name__ == "__main__":
    main()
