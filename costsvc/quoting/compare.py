"""One workload on many cards, dtypes and modes: each by its cheapest layout, the cheapest request first."""

from collections.abc import Callable
from datetime import date
from itertools import product
from typing import Annotated

from pydantic import Field

from costsvc.db.snapshot import Catalog
from costsvc.engine.units import TOKENS_PER_MTOK
from costsvc.errors import Infeasible, InvalidCatalogFile, InvalidRequest
from costsvc.quoting.answer.compared import latency_section, price_section
from costsvc.quoting.answer.plain import Plain, Section, number
from costsvc.quoting.bill import token_prices
from costsvc.quoting.evaluate import Evaluated, changed, evaluate, plain_quote, priced_gpus
from costsvc.quoting.lists import parts_of
from costsvc.quoting.money import money
from costsvc.quoting.quote import ENGINE_VERSION
from costsvc.quoting.request import QuoteRequest

ANY = "any"
MOST_COMBINATIONS = 400
MOST_LISTED = 100
MODES = ("colocated", "disaggregated")

Names = Annotated[str, Field(min_length=1, max_length=2000)]


class CompareRequest(QuoteRequest):
    """A quote's parameters, some of them lists."""

    gpu: Names = Field(description="GPUs, separated by commas, or `any`: all with a price on the day.")
    weights: Names | None = Field(
        None, description="Weight dtypes, separated by commas; absent: as released."
    )
    kv: Names | None = Field(None, description="KV-cache dtypes, separated by commas; absent: 16-bit.")
    modes: Names | None = Field(
        None, description="`colocated`, `disaggregated` or both, separated by commas; absent: mode."
    )
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = Field(
        25, description="Rows to answer; the rest is counted. [rows]"
    )


def compare(catalog: Catalog, request: CompareRequest, today: date) -> Section:
    """Rank all combinations.

    Raises
    ------
    InvalidRequest
        A list is empty or there are too many combinations.
    NotInCatalog, Ambiguous
        A name in a list.
    """
    found: list[Evaluated] = []
    refused: list[Plain] = []
    for changes in _combinations(catalog, request, today):
        try:
            found.append(evaluate(catalog, changed(_quote(request), changes), today))
        except (Infeasible, InvalidCatalogFile, InvalidRequest) as error:
            refused.append({**changes, "why": error.message})
    found.sort(key=lambda one: one.request_usd)
    return {
        "as_of": (request.as_of or today).isoformat(),
        "catalog_revision": catalog.revision,
        "engine_version": ENGINE_VERSION,
        "ranked_by": "request_usd",
        "compared": len(found) + len(refused),
        "items": [compared_section(catalog, one) for one in found[: request.limit]],
        "refused": refused,
    }


def compared_section(catalog: Catalog, running: Evaluated) -> Section:
    """One row: the layout, its speed, its prices."""
    deployment, state = running.choice.deployment, running.choice.state
    choice = running.choice
    tokens = token_prices(running.scenario, choice, choice.lengths, choice.state)
    per_mtok = running.usd_per_gpu_s * TOKENS_PER_MTOK
    section: Section = {
        "gpu": running.scenario.gpu.id,
        "weights": deployment.weights.id,
        "kv": deployment.kv.id,
        "mode": deployment.mode,
        "gpus": running.gpus,
        "tp": deployment.tp,
        "pp": deployment.pp,
        "dp": deployment.dp,
        "ep": deployment.ep,
        "concurrency": running.concurrency,
        "bound": running.bound,
        "keeps_objectives": running.keeps_objectives,
        **latency_section(running),
        "output_tok_s_per_user": number(1.0 / state.loop.step_s),
        "usd_per_gpu_hour": money(running.price.usd_per_gpu_hour),
        "request_usd": money(running.request_usd),
        "input_usd_per_mtok": money(tokens.uncached * per_mtok),
        "cached_input_usd_per_mtok": money(tokens.cached * per_mtok),
        "output_usd_per_mtok": money(tokens.output * per_mtok),
        **price_section(catalog, running),
    }
    rps = running.scenario.load.rps
    if rps is not None:
        section |= {"fleet_gpus": running.fleet_gpus(rps), "usd_per_month": money(running.usd_per_month(rps))}
    return section


def gpus_of(catalog: Catalog, text: str, request: QuoteRequest, today: date) -> list[str]:
    """Ids of the listed accelerators, or of all with a price."""
    if text.strip().lower() == ANY:
        return priced_gpus(catalog, request, today)
    return list(dict.fromkeys(catalog.gpu(part).id for part in parts_of(text, "gpu", most=MOST_LISTED)))


def _quote(request: CompareRequest) -> QuoteRequest:
    # Any name passes here; each combination puts its own in place.
    return plain_quote(request, {"gpu": ANY, "weights": None, "kv": None})


def _combinations(catalog: Catalog, request: CompareRequest, today: date) -> list[dict[str, str | None]]:
    gpus = gpus_of(catalog, request.gpu, _quote(request), today)
    weights = _names(request.weights, "weights", lambda part: catalog.weight_plan(part).id)
    caches = _names(request.kv, "kv", lambda part: catalog.dtype(part).spec.id)
    modes = _names(request.modes or request.mode, "modes", _mode)
    every = list(product(gpus, weights, caches, modes))
    if len(every) > MOST_COMBINATIONS:
        raise InvalidRequest(
            f"The lists make {len(every)} combinations; at most {MOST_COMBINATIONS} are compared at once. "
            f"Name fewer GPUs or dtypes.",
            field="gpu",
        )
    return [{"gpu": gpu, "weights": w, "kv": kv, "mode": mode} for gpu, w, kv, mode in every]


def _names(text: str | None, name: str, known: Callable[[str], str]) -> list[str | None]:
    return [None] if text is None else [known(part) for part in parts_of(text, name, most=MOST_LISTED)]


def _mode(text: str) -> str:
    if text not in MODES:
        raise InvalidRequest(f"modes has '{text}'; give {' or '.join(MODES)}, or both.", field="modes")
    return text
