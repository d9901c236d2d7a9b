"""User speed against price: every layout at every concurrency, and the points that no other beats in both."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Annotated

import numpy as np
from pydantic import Field

from costsvc.db.snapshot import Catalog
from costsvc.engine.loop import run_loop
from costsvc.engine.serving import BOUNDS, lengths_of, solution
from costsvc.engine.specs import Deployment, Objectives
from costsvc.engine.uncertainty import ErrorBand
from costsvc.engine.units import MS_PER_S, TOKENS_PER_MTOK
from costsvc.errors import Infeasible, InvalidCatalogFile
from costsvc.quoting.answer import grounds
from costsvc.quoting.answer.plain import Plain, Section, number, number_exact
from costsvc.quoting.choice import choose
from costsvc.quoting.compare import ANY, Names, gpus_of
from costsvc.quoting.compiled import every_layout
from costsvc.quoting.evaluate import changed, plain_quote
from costsvc.quoting.gpu_price import price_of
from costsvc.quoting.money import money
from costsvc.quoting.quote import ENGINE_VERSION
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.scenario import resolve

CONCURRENCIES = 24


class FrontierRequest(QuoteRequest):
    """A quote's parameters, on one or several GPUs; the time per output token is the answer, no objective."""

    gpu: Names = Field(description="GPUs, separated by commas, or `any`: all with a price on the day.")
    concurrencies: Annotated[int, Field(ge=2, le=100)] = Field(
        CONCURRENCIES, description="Concurrencies tried of each layout, evenly on a log scale. [points]"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One layout at one concurrency. [token/s], [USD/Mtok]"""

    gpu_id: str
    layout: Deployment
    sequences: float
    bound: str
    user_tokens_per_s: float
    usd_per_mtok: float
    ttft_s: float
    band: ErrorBand

    def section(self) -> Section:
        """As it is answered."""
        low, high = self.band.of(self.usd_per_mtok)
        return {
            "gpu": self.gpu_id,
            "gpus": self.layout.gpus,
            "tp": self.layout.tp,
            "pp": self.layout.pp,
            "dp": self.layout.dp,
            "ep": self.layout.ep,
            "concurrency": number(self.sequences),
            "bound": self.bound,
            "output_tok_s_per_user": number(self.user_tokens_per_s),
            "tpot_ms": number(MS_PER_S / self.user_tokens_per_s),
            "ttft_ms": number(self.ttft_s * MS_PER_S),
            "blended_usd_per_mtok": money(self.usd_per_mtok),
            "blended_low_usd_per_mtok": money(low),
            "blended_high_usd_per_mtok": money(high),
        }


def frontier(catalog: Catalog, request: FrontierRequest, today: date) -> Section:
    """The Pareto front of all GPUs together, and that of each.

    Raises
    ------
    CostsvcError
        An unknown name; or, where only one GPU was named, why nothing runs on it.
    """
    base = plain_quote(request, {"gpu": ANY})
    gpu_ids = gpus_of(catalog, request.gpu, base, today)
    every: list[Point] = []
    refused: list[Plain] = []
    for gpu_id in gpu_ids:
        try:
            every += _points(catalog, changed(base, {"gpu": gpu_id}), today, request.concurrencies)
        except (Infeasible, InvalidCatalogFile) as error:
            if len(gpu_ids) == 1:
                raise
            refused.append({"gpu": gpu_id, "why": error.message})
    by_gpu = {gpu_id: pareto([p for p in every if p.gpu_id == gpu_id]) for gpu_id in gpu_ids}
    return {
        "as_of": (request.as_of or today).isoformat(),
        "catalog_revision": catalog.revision,
        "engine_version": ENGINE_VERSION,
        "points_tried": len(every),
        "front": [point.section() for point in pareto(every)],
        "by_gpu": {gpu_id: [p.section() for p in front] for gpu_id, front in by_gpu.items() if front},
        "bound_means": "what stops the next cheaper step: memory, max_num_seqs or step_tokens at a "
        "layout's largest "
        "concurrency; tpot where more requests would run, but slower for each",
        "refused": refused,
    }


def pareto(points: list[Point]) -> list[Point]:
    """Points that no other beats in speed and price, the slowest and cheapest first."""
    front: list[Point] = []
    for point in sorted(points, key=lambda one: (-one.user_tokens_per_s, one.usd_per_mtok)):
        if not front or point.usd_per_mtok < front[-1].usd_per_mtok:
            front.append(point)
    return front[::-1]


def _points(catalog: Catalog, request: QuoteRequest, today: date, concurrencies: int) -> Iterator[Point]:
    scenario = resolve(catalog, request, today)
    second_usd = price_of(catalog, scenario).usd_per_gpu_second
    replica = every_layout(scenario)
    lengths = lengths_of(scenario.traffic)
    if scenario.sharing is not None:
        lengths = choose(scenario).lengths
    utilization = scenario.utilization_share
    only_ttft = Objectives(ttft_s=scenario.objectives.ttft_s)
    solved = solution(replica, lengths, only_ttft, utilization)
    if np.isnan(solved.sequences).all():
        choose(replace(scenario, objectives=only_ttft, objectives_were_asked=True))
    most = solved.state()
    ceiling = np.maximum(most.sequences, 1.0)
    sequences = ceiling ** np.linspace(0.0, 1.0, concurrencies)[None, :]
    loop = run_loop(replica, lengths, sequences, utilization)
    tokens = number_exact(lengths.prompt) + number_exact(lengths.output)
    margin = 1.0 + request.margin
    band = grounds.error_band(catalog, scenario)
    usd = solved.gpu_s(sequences) * second_usd / utilization * margin / tokens * TOKENS_PER_MTOK
    for row, layout in enumerate(replica.deployments):
        if np.isnan(most.sequences[row, 0]):
            continue
        for place in range(concurrencies):
            last = place == concurrencies - 1
            yield Point(
                gpu_id=scenario.gpu.id,
                layout=layout,
                sequences=float(sequences[row, place]),
                bound=BOUNDS[int(most.bound[row, 0])] if last else "tpot",
                user_tokens_per_s=1.0 / float(loop.step_s[row, place]),
                usd_per_mtok=float(usd[row, place]),
                ttft_s=float(loop.ttft_s[row, place]),
                band=band,
            )
