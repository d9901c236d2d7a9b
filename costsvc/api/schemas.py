"""The shapes of answers, as JSON Schema: rows from their dataclasses, the quote and problems by hand."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from costsvc.quoting.listing.api_prices import ApiPriceDetail, ApiPriceRow
from costsvc.quoting.listing.fx_rates import FxRateDetail, FxRateRow
from costsvc.quoting.listing.gpus import GpuDetail, GpuRow
from costsvc.quoting.listing.models import ModelDetail, ModelRow
from costsvc.quoting.listing.prices import PriceDetail, PriceRow
from costsvc.quoting.listing.profiles import ProfileDetail, ProfileRow

JsonSchema = Mapping[str, Any]

_DECIMAL: Final = {"type": "string", "pattern": r"^-?\d+\.\d{6,}$"}
_NULLABLE_OBJECT: Final = {"type": ["object", "null"]}


def inlined(node: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema with what it refers to put in place; titles, which only repeat names, are dropped."""
    if isinstance(node, list):
        return [inlined(one, definitions) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return inlined(definitions[node["$ref"].rpartition("/")[2]], definitions)
    return {
        name: inlined(one, definitions)
        for name, one in node.items()
        if name != "$defs" and not (name == "title" and isinstance(one, str))
    }


def _row(kind: type[Any]) -> JsonSchema:
    document = TypeAdapter(kind).json_schema(mode="serialization")
    return dict(inlined(document, document.get("$defs", {})))


def _list_of(kind: type[Any]) -> JsonSchema:
    return _object(
        {
            "as_of": {"type": "string", "format": "date"},
            "catalog_revision": {"type": "integer", "minimum": 1},
            "items": {"type": "array", "items": _row(kind)},
        }
    )


def _object(properties: JsonSchema, *, optional: tuple[str, ...] = ()) -> JsonSchema:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
    }


_PRICE: Final = _object(
    {"usd_per_mtok": _DECIMAL, "low": _DECIMAL, "high": _DECIMAL},
)

QUOTE: Final = _object(
    {
        "as_of": {"type": "string", "format": "date"},
        "catalog_revision": {"type": ["integer", "null"]},
        "engine_version": {"type": "string"},
        "request": {"type": "object"},
        "deployment": {"type": "object"},
        "cost": {"type": "object"},
        "prices": _object(dict.fromkeys(("input", "cached_input", "output", "blended"), _PRICE)),
        "prefix_caching": _NULLABLE_OBJECT,
        "context_rent": _NULLABLE_OBJECT,
        "concurrency": {"type": "object"},
        "memory": {"type": "object"},
        "latency": {"type": "object"},
        "throughput": {"type": "object"},
        "market": {"type": ["object", "array", "null"]},
        "assumptions": {"type": "array", "items": {"type": "object"}},
        "sources": {"type": "array", "items": {"type": "object"}},
        "warnings": {"type": "array"},
    },
)

PROBLEM: Final = _object(
    {
        "type": {"type": "string", "format": "uri-reference", "pattern": "^/problems/[a-z-]+$"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "instance": {"type": "string", "format": "uri-reference"},
        "errors": {
            "type": "array",
            "items": _object({"field": {"type": ["string", "null"]}, "detail": {"type": "string"}}),
        },
    }
)

_READINESS: Final = _object(
    {
        "ready": {"type": "boolean"},
        "catalog_revision": {"type": ["integer", "null"]},
        "database_reachable": {"type": "boolean"},
        "stale_seconds": {"type": ["number", "null"], "minimum": 0},
    }
)

_OBJECTS: Final = {"type": "array", "items": {"type": "object"}}


def _compared(properties: JsonSchema) -> JsonSchema:
    """An answer of many configurations, with the day and the catalog it is of."""
    identity = {
        "as_of": {"type": "string", "format": "date"},
        "catalog_revision": {"type": ["integer", "null"]},
        "engine_version": {"type": "string"},
    }
    return _object({**identity, **properties})


_VERDICT: Final = _object(
    {
        "fits": {"enum": ["fits", "fits with changes", "does not fit"]},
        "sentence": {"type": "string"},
    }
)

_SHARE_OR_NULL: Final = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_TRACE: Final = _object(
    {
        "form": {"enum": ["mooncake", "azure", "gateway"]},
        "requests": {"type": "integer", "minimum": 1},
        "block_tokens": {"type": "integer", "minimum": 1},
        "hits": {
            "type": "array",
            "items": _object(
                {
                    "capacity_blocks": {"type": ["number", "string", "null"]},
                    "hit_blocks_share": _SHARE_OR_NULL,
                    "hit_tokens_share": _SHARE_OR_NULL,
                }
            ),
        },
        "note": {"type": ["string", "null"]},
        "profile": {"type": "object"},
    }
)


def answers() -> Mapping[str, tuple[str, JsonSchema]]:
    """Every answer by name: what it is, and its shape. Only the document needs them, and rows take their time."""
    return {
        "Quote": ("A quote: prices with their band, and everything they follow from.", QUOTE),
        "Comparison": (
            "Configurations of one workload, the cheapest first, and those that were refused.",
            _compared({"ranked_by": {"type": "string"}, "items": _OBJECTS, "refused": _OBJECTS}),
        ),
        "Frontier": (
            "The Pareto front of user speed and price, of all GPUs and of each.",
            _compared({"front": _OBJECTS, "by_gpu": {"type": "object"}, "refused": _OBJECTS}),
        ),
        "Curve": (
            "A quote of each context, and the cliffs between them.",
            _compared({"ctx": {"type": "integer"}, "items": _OBJECTS, "cliffs": _OBJECTS}),
        ),
        "WhatIf": (
            "The released model and its variants.",
            _compared({"note": {"type": "string"}, "items": _OBJECTS}),
        ),
        "Roofline": (
            "Roofs of one GPU, and the two steps under them.",
            _compared({"peak_flops_per_s": {"type": "number"}, "points": _OBJECTS}),
        ),
        "LaunchCheck": (
            "A verdict, and what it rests on.",
            _compared({"verdict": _VERDICT, "levers": _OBJECTS}),
        ),
        "Models": ("Models.", _list_of(ModelRow)),
        "Model": ("A model, its shapes and its sources.", _row(ModelDetail)),
        "Gpus": ("Accelerators.", _list_of(GpuRow)),
        "Gpu": ("An accelerator and its sources.", _row(GpuDetail)),
        "Prices": ("Offers of GPU hours with a price in force on the day.", _list_of(PriceRow)),
        "Price": ("An offer with its history and sources.", _row(PriceDetail)),
        "ApiPrices": ("Published token prices, as last observed before the day.", _list_of(ApiPriceRow)),
        "ApiPrice": ("Every observation of one published price.", _row(ApiPriceDetail)),
        "FxRates": ("Rates of currencies in force on the day.", _list_of(FxRateRow)),
        "FxRate": ("Every rate of a currency, and its sources.", _row(FxRateDetail)),
        "Profiles": ("Traffic profiles.", _list_of(ProfileRow)),
        "Profile": ("A traffic profile, all it states, and its sources.", _row(ProfileDetail)),
        "Trace": ("Hit rates of a trace by capacity, and its profile.", _TRACE),
        "Posted": (
            "The new entry's id, and the revision that holds it.",
            _object({"id": {"type": "string"}, "catalog_revision": {"type": "integer", "minimum": 1}}),
        ),
        "ImportedModel": (
            "A model from its configuration: the entry, what each part was inferred from, and what stayed open.",
            _object(
                {
                    "id": {"type": "string"},
                    "catalog_revision": {"type": "integer", "minimum": 1},
                    "written": {"type": "boolean"},
                    **{key: {"type": "object"} for key in ("model", "parameters")},
                    "inferred": _OBJECTS,
                    **{key: {"type": "array", "items": {"type": "string"}} for key in ("open", "unused")},
                    "file": {"type": "string"},
                }
            ),
        ),
        "StoredQuote": (
            "A stored quote: what was asked, and the answer as it was.",
            _object(
                {
                    "id": {"type": "string"},
                    "label": {"type": "string"},
                    "stored_at": {"type": "string", "format": "date-time"},
                    "asked": {"type": "object"},
                    "quote": QUOTE,
                }
            ),
        ),
        "Template": ("A workbook.", {}),
        "Budget": ("A row per use and month, and totals.", _object({"items": _OBJECTS})),
        "Batch": ("A row per quote.", _object({"items": _OBJECTS})),
        "StoredQuotes": ("Stored quotes, the newest first.", _object({"items": _OBJECTS})),
        "Explained": (
            "The causes of the difference between two stored quotes.",
            _object({"request_usd": {"type": "object"}, "steps": _OBJECTS, "changed": _OBJECTS}),
        ),
        "Validation": (
            "Errors of the model on published measurements.",
            _object(
                {
                    **{key: {"type": "integer"} for key in ("points", "left_out")},
                    **dict.fromkeys(("held_out", "headline", "disaggregated", "reasons_left_out"), _OBJECTS),
                    **{key: {"type": "object"} for key in ("bands", "held_out_regimes")},
                }
            ),
        ),
        "HeldOutPoints": ("Held-out points, measured and predicted.", _object({"items": _OBJECTS})),
        "Alive": ("The process answers.", _object({"alive": {"const": True}})),
        "Readiness": ("Whether quotes can be answered, and from which catalog.", _READINESS),
    }
