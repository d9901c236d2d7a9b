"""Models, cards and layouts for the engine's tests: built by hand, or taken from the shipped catalog.

The catalog is read once for all tests of a process; it is immutable.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any

import numpy as np

from costsvc.db.entries import CatalogContent
from costsvc.db.snapshot import Catalog
from costsvc.engine.attention import Attention, FullAttention
from costsvc.engine.replica import Replica, compile_replica
from costsvc.engine.specs import (
    Calibration,
    DenseFfn,
    Deployment,
    DtypeSpec,
    Ffn,
    GpuSpec,
    LayerGroup,
    ModelSpec,
    Traffic,
    WeightPlan,
)
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.quoting.case import architecture_of

TODAY = date(2026, 11, 29)
BF16 = DtypeSpec(id="bf16", value_bytes=2.0, arithmetic=("bf16", "fp16"))
PLAIN = WeightPlan(id="bf16", attention=BF16, ffn=BF16, experts=BF16, embedding=BF16, other=BF16)
LLAMA_ATTENTION = FullAttention(query_heads=64, kv_heads=8, head_dim=128)


@cache
def shipped() -> Catalog:
    """The catalog that ships with the code."""
    return Catalog(read_catalog(catalog_root(None)), revision=None)


@cache
def one_of_each() -> CatalogContent:
    """Of the shipped catalog one model and one card: what is done again and again stays quick."""
    whole = shipped().content
    return replace(
        whole,
        models=tuple(entry for entry in whole.models if entry.id == "llama-3-70b"),
        gpus=tuple(entry for entry in whole.gpus if entry.id == "h100-sxm"),
        offers=tuple(offer for offer in whole.offers if offer.gpu_id == "h100-sxm"),
        api_prices=(),
    )


def heads(layers: int, kv_heads: int, head_dim: int = 128, query_heads: int | None = None) -> ModelSpec:
    """A model of full-attention layers and nothing else."""
    attention = FullAttention(query_heads=query_heads or kv_heads, kv_heads=kv_heads, head_dim=head_dim)
    return layered([(layers, attention, None)])


def layered(groups: Sequence[tuple[int, Attention | None, Ffn | None]], **changes: Any) -> ModelSpec:
    """A model of so many layers of each kind, one kind after the other."""
    pattern = tuple(index for index, (count, _, _) in enumerate(groups) for _ in range(count))
    spec = ModelSpec(
        id="by-hand",
        hidden_size=4096,
        vocab_size=32_000,
        tied_embeddings=False,
        max_context_tokens=1_048_576,
        groups=tuple(LayerGroup(attention=attention, ffn=ffn) for _, attention, ffn in groups),
        pattern=pattern,
    )
    return replace(spec, **changes)


def layout(
    tp: int = 1, pp: int = 1, ep: int = 1, dp: int = 1, weights: WeightPlan = PLAIN, **rest: Any
) -> Deployment:
    """A layout in bf16 unless said otherwise."""
    return Deployment(**{"tp": tp, "pp": pp, "ep": ep, "dp": dp, "weights": weights, "kv": BF16, **rest})


def judged(gpu: str = "h100-sxm", stack: str = "generic", architecture: str = "dense") -> Calibration:
    """The shipped calibration of a card and a stack, bf16."""
    catalog = shipped()
    plan, kv = catalog.weight_plan_spec("bf16"), catalog.dtype("bf16").spec
    resolved = catalog.judgements.calibration(
        catalog.gpu(gpu).spec, catalog.stack(stack), architecture, plan, kv
    )
    return resolved.calibration


def card(gpu: str = "h100-sxm") -> GpuSpec:
    """A card of the shipped catalog."""
    return shipped().gpu(gpu).spec


def by_hand(model: ModelSpec, *layouts: Deployment, gpu: GpuSpec | None = None, **judgements: Any) -> Replica:
    """Layouts of a model on an H100, some judgements replaced."""
    return compile_replica(model, gpu or card(), replace(judged(), **judgements), layouts or (layout(),))


def served(
    model: str,
    gpu: str = "h100-sxm",
    weights: str | None = None,
    kv: str = "bf16",
    stack: str = "generic",
    **parallel: Any,
) -> Replica:
    """A layout of a catalog model on a catalog card, with the shipped calibration."""
    catalog = shipped()
    entry, accelerator = catalog.model(model), catalog.gpu(gpu).spec
    plan, cache_dtype = catalog.weight_plan_spec(weights or entry.released_weights), catalog.dtype(kv).spec
    deployment = layout(weights=plan, **{**parallel, "kv": cache_dtype})
    calibration = catalog.judgements.calibration(
        accelerator, catalog.stack(stack), architecture_of(entry.spec), plan, cache_dtype
    ).calibration
    return compile_replica(entry.spec, accelerator, calibration, [deployment])


def requests(prompt: float, output: float, cached: float = 0.0, **rest: Any) -> Traffic:
    """Requests of one length each, `cached` of the prompt found again."""
    return Traffic(
        **{
            "uncached_input_tokens": prompt - cached,
            "cached_input_tokens": cached,
            "output_tokens": output,
            "context_limit_tokens": prompt + output,
            **rest,
        }
    )


DENSE = DenseFfn(intermediate_size=28_672)


def one(value: object) -> float:
    """The only element of an array."""
    return float(np.asarray(value, dtype=np.float64).item())
