"""A quote's decode and prefill steps under the roofs of its card."""

from datetime import date

from costsvc.db.snapshot import Catalog
from costsvc.engine.roofline import StepWork, decode_work, prefill_work
from costsvc.errors import InvalidRequest
from costsvc.quoting.answer.plain import Plain, Section, number
from costsvc.quoting.evaluate import evaluate
from costsvc.quoting.quote import ENGINE_VERSION
from costsvc.quoting.request import QuoteRequest


def roofline(catalog: Catalog, request: QuoteRequest, today: date) -> Section:
    """The roofs of one GPU, and where the two kinds of steps of the quoted deployment lie.

    Raises
    ------
    CostsvcError
        As a quote would; and without a cache, where there is no decode step.
    """
    if not request.kv_cache:
        raise InvalidRequest("kv_cache=off has no decode step to show; drop it.", field="kv_cache")
    running = evaluate(catalog, request, today)
    choice, gpu = running.choice, running.scenario.gpu.spec
    weights = choice.deployment.weights
    stored = weights.experts if choice.replica.expert_groups else weights.ffn
    rate = gpu.arithmetic_of(stored) or next(iter(gpu.dense_flops_per_s))
    points: list[Plain] = [
        _point("decode", decode_work(choice.replica, choice.lengths, choice.state)),
        _point("prefill", prefill_work(choice.replica, choice.lengths)),
    ]
    return {
        "as_of": running.scenario.as_of.isoformat(),
        "catalog_revision": catalog.revision,
        "engine_version": ENGINE_VERSION,
        "gpu": running.scenario.gpu.id,
        "arithmetic": rate,
        "peak_flops_per_s": number(gpu.dense_flops_per_s[rate]),
        "memory_bytes_per_s": number(gpu.memory_bytes_per_s),
        "ridge_flop_per_byte": number(gpu.dense_flops_per_s[rate] / gpu.memory_bytes_per_s),
        "points": points,
        "means": "of one GPU; a decode step moves the weights once and every sequence's cache, a prefill "
        "step the "
        "weights once for all its prompt tokens",
    }


def _point(name: str, work: StepWork) -> Section:
    return {
        "step": name,
        "flops": number(work.flops),
        "moved_bytes": number(work.moved_bytes),
        "step_s": number(work.step_s),
        "flop_per_byte": number(work.flop_per_byte),
        "flops_per_s": number(work.flops_per_s),
    }
