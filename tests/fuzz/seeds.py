"""Valid inputs, from which odd ones are made."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from hypothesis import strategies as st

from tests.engine.shapes import shipped
from tests.fuzz.odd import as_json
from tests.ingest.hugging_face.published import published_models

TRACE_LINES: Final[tuple[dict[str, Any], ...]] = (
    {"timestamp": 0, "input_length": 1000, "output_length": 5, "hash_ids": [0, 1]},
    {"timestamp": 1500, "input_length": 1, "output_length": 0, "hash_ids": [9]},
    {"timestamp": 2000.5, "input_length": 1024, "output_length": 700, "hash_ids": [0, 7]},
)
TRACES: Final = (
    b"\n".join(as_json(line) for line in TRACE_LINES),
    b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04,3180,8\r\n",
    b'timestamp,prompt_tokens,cached_tokens,completion_tokens,model\n1700000000.5,100,64,3,"b, c"\n'
    b"2023-11-14T23:13:21+01:00,50,0,4,d\n",
)
QUERIES: Final = (
    "model=llama-3-70b&gpu=h100&ctx=8192",
    "model=llama-3.1-8b&gpu=l4&ctx=4096&output=100&tp=1&weights=fp8&kv=fp8&stack=vllm",
    "model=deepseek-v3&gpu=b200&ctx=32768&mode=disaggregated&attribution=pools&utilization=0.5",
    "model=llama-3.1-8b&gpu=h100&ctx=8192&prefix_tokens=1000&turns=3&think_s=20&dram_gb_per_gpu=64&rps=2",
    "model=gpt-oss-120b&gpu=h100&profile=chat&currency=EUR&fx_rate=0.9&margin=0.2",
    "model=llama-3.1-8b&gpu=a100-sxm-80gb&ctx=8192&speculation=ngram&draft_tokens=4&acceptance_rate=0.6&slo=batch",
)
BODIES: Final[tuple[dict[str, Any], ...]] = (
    {"model": "llama-3.1-8b", "gpu": "h100", "ctx": 8192, "output": 512, "price_usd_per_gpu_hour": "2.5"},
    {"model": "llama-3.1-70b", "gpu": "h100", "ctx": 32768, "hit_rate": 0.5, "rps": 3, "tpot_ms": 60},
    {
        "model": "llama-3.1-8b",
        "gpu": "h100",
        "profile": {
            "input_tokens": 4000,
            "output_tokens": 300,
            "input_cv": 0.5,
            "system_prompt_tokens": 500,
            "turns": 3,
            "documents": {"count": 1000, "tokens": 800, "share": 0.5},
            "rps": 2,
            "hourly_shape": [1.0] * 24,
        },
    },
    {
        "model": "llama-3.1-8b",
        "gpu": "h100",
        "profile": {
            "histogram": [{"input_tokens": 100, "output_tokens": 10, "share": 1}],
            "max_context_tokens": 500,
        },
    },
)
CELLS: Final = ("llama-3.1-8b", "h100", "8192", "512", "fp8", "chat", "0.5", "2026-11-29", "batch", "on")
CSVS: Final = (
    b"model,gpu,ctx,output,label\r\nllama-3.1-8b,h100,8192,512,a\r\nllama-3-70b,h100,8192,,b\r\n",
    b'\xef\xbb\xbfmodel,gpu,profile,margin\n"llama-3.1-8b",h100,chat,0.2\n',
)
_SOURCE: Final = {
    "title": "A price list",
    "kind": "vendor",
    "url": "https://example.com",
    "accessed": "2026-11-29",
}
OFFER: Final = {
    "gpu": "h100",
    "provider": "Example Cloud",
    "market": "on-demand",
    "basis": "per-gpu",
    "prices": [{"first_day": "2026-11-01", "usd_per_gpu_hour": "2.49"}],
    "source": _SOURCE,
}
PRICES: Final = {"prices": [{"first_day": "2026-11-05", "usd_per_gpu_hour": "2.39"}], "source": _SOURCE}
GIVEN: Final[dict[str, Any]] = {
    "hf_id": "example-org/Example-8B",
    "aliases": ["example"],
    "given": {
        "published_parameters": 8_000_000_000,
        "licence": "MIT",
        "released": "2026-01-01",
        "source": _SOURCE,
    },
}
_PROFILE: Final = {"id": "example", "name": "Example", "description": "One.", "source": _SOURCE}
_MOST_CONTEXT: Final = 2_000_000


def recorded() -> st.SearchStrategy[tuple[bytes, int, None]]:
    """Valid traces of few requests, whose pauses, lengths and blocks may be extreme."""
    pause_ms = st.sampled_from((0, 1, 1e3, 1e12)) | st.floats(0, 1e12)
    length = st.integers(1, 5000) | st.sampled_from((1, 512, 513, 100_000_000))
    first = st.integers(0, 3) | st.sampled_from((2**63 - 100_000,))
    request = st.tuples(pause_ms, length, st.integers(0, 5000) | st.just(100_000_000), first)
    block = st.sampled_from((100_000, 1_000_000))
    return st.tuples(st.lists(request, min_size=2, max_size=8), block).map(
        lambda drawn: (_lines(drawn[0], drawn[1]), drawn[1], None)
    )


def _lines(requests: list[tuple[float, int, int, int]], block_tokens: int) -> bytes:
    lines, now_ms = [], 0.0
    for pause_ms, prompt, output, first in requests:
        now_ms += pause_ms
        ids = list(range(first, first - (-prompt // block_tokens)))
        lines.append({"timestamp": now_ms, "input_length": prompt, "output_length": output, "hash_ids": ids})
    return b"\n".join(as_json(line) for line in lines)


@cache
def configs() -> tuple[dict[str, Any], ...]:
    """Configurations of real models."""
    return tuple(one.config for one in published_models())


def profiles(
    altered: Callable[..., st.SearchStrategy[Any]], changed: Callable[..., st.SearchStrategy[bytes]]
) -> st.SearchStrategy[bytes]:
    """Bodies of POST /profiles, like the shipped profiles."""
    shipped_ones = [json.loads(entry.traffic) for entry in shipped().profiles.values()]
    whole = [{**_PROFILE, "traffic": traffic} for traffic in (*shipped_ones, BODIES[2]["profile"])]
    return altered(whole).map(as_json) | changed([as_json(one) for one in whole])


def requests() -> st.SearchStrategy[dict[str, Any]]:
    """Valid requests of any model on any card: most have a price, the others a reason why not."""
    catalog = shipped()
    width = st.none() | st.sampled_from((1, 2, 3, 4, 8, 16, 64))
    share = st.floats(0, 1)
    optional: dict[str, st.SearchStrategy[Any]] = {
        "tp": width,
        "pp": width,
        "ep": width,
        "dp": width,
        "gpus": width,
        "weights": st.sampled_from([plan.id for plan in catalog.content.weight_plans]),
        "kv": st.sampled_from([dtype.spec.id for dtype in catalog.content.dtypes]),
        "stack": st.sampled_from([stack.id for stack in catalog.content.stacks]),
        "mode": st.sampled_from(("colocated", "disaggregated")),
        "allocation": st.sampled_from(("paged", "contiguous")),
        "attribution": st.sampled_from(("marginal", "step")),
        "hit_rate": st.floats(0, 0.9999),
        "utilization": st.floats(1e-6, 1),
        "slo": st.sampled_from(("interactive", "strict", "batch")),
        "rps": st.floats(1e-9, 1e9),
        "margin": st.floats(0, 100),
        "price_usd_per_gpu_hour": st.sampled_from(("0.000001", "2.5", "1000000")),
        "turns": st.floats(1, 10_000),
        "prefix_tokens": st.integers(0, _MOST_CONTEXT),
        "prefix_share": share,
        "retention_s": st.floats(1e-3, 1e7),
        "dram_gb_per_gpu": st.floats(0, 1e9),
        "nvme_gb_per_gpu": st.floats(0, 1e9),
        "speculation": st.sampled_from(("off", "mtp", "ngram")),
        "acceptance_rate": share,
        "profile": st.sampled_from(sorted(catalog.profiles)),
    }
    required = {
        "model": st.sampled_from(sorted(catalog.models)),
        "gpu": st.sampled_from(sorted(catalog.gpus)),
        "ctx": st.integers(2, 8192) | st.integers(2, _MOST_CONTEXT),
    }
    some = st.lists(st.sampled_from(sorted(optional)), max_size=5, unique=True)
    return some.flatmap(
        lambda names: st.fixed_dictionaries({**required, **{name: optional[name] for name in names}})
    ).map(_agreeing)


def _agreeing(given: dict[str, Any]) -> dict[str, Any]:
    """Without what is not given, and without what a profile says instead."""
    said = {name: value for name, value in given.items() if value is not None}
    if "profile" in said:
        return {
            name: value
            for name, value in said.items()
            if name not in ("ctx", "hit_rate", "turns", "prefix_tokens", "prefix_share")
        }
    return said
