"""One word and one sentence: fits, fits with changes, or does not."""

from datetime import date
from enum import StrEnum

from costsvc.db.snapshot import Catalog
from costsvc.errors import Infeasible
from costsvc.quoting.evaluate import Evaluated, changed, evaluate
from costsvc.quoting.launch.request import LaunchRequest
from costsvc.quoting.launch.traffic import Offered
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.words import counted


class Verdict(StrEnum):
    """`FITS` is on today's replicas as they are, within the objectives."""

    FITS = "fits"
    FITS_WITH_CHANGES = "fits with changes"
    DOES_NOT = "does not fit"


def verdict_of(
    catalog: Catalog,
    *,
    feature: QuoteRequest,
    asked: Evaluated | None,
    running: Evaluated | None,
    now: Evaluated | None,
    today: date,
) -> Verdict:
    """Whether today's replicas carry the feature as it was asked for; where not, whether others do."""
    if running is None:
        return Verdict.DOES_NOT
    as_asked = asked is not None and asked.keeps_objectives
    if as_asked and now is not None and _holds(catalog, feature, now, today):
        return Verdict.FITS
    return Verdict.FITS_WITH_CHANGES


def _holds(catalog: Catalog, feature: QuoteRequest, now: Evaluated, today: date) -> bool:
    """Whether the feature runs in today's layout, on today's card and in today's dtypes."""
    layout = now.choice.deployment
    same = {
        "gpu": now.scenario.gpu.id,
        "weights": layout.weights.id,
        "kv": layout.kv.id,
        "gpus": None,
        "tp": layout.tp,
        "pp": layout.pp,
        "dp": layout.dp,
        "ep": layout.ep,
    }
    try:
        return evaluate(catalog, changed(feature, same), today).keeps_objectives
    except Infeasible:
        return False


def sentence(
    verdict: Verdict,
    *,
    request: LaunchRequest,
    running: Evaluated,
    offered: Offered,
    now: Evaluated | None,
    before: Offered | None,
    change: str | None,
) -> str:
    """The verdict in words a manager reads."""
    scenario = running.scenario
    ctx = f"{scenario.traffic.context_limit_tokens:,.0f} tokens"
    where = f"{running.gpus} x {scenario.gpu.name}"
    if verdict is Verdict.FITS:
        first = f"{scenario.model.name} with {ctx} fits on the replicas of today"
        if now is not None and not _is_as_today(running, now):
            first = f"{first}, and costs least on replicas of {where}"
    else:
        how = change or f"replicas of {where}"
        first = f"{scenario.model.name} with {ctx} fits with changes ({how})"
    who = counted(request.users, "user") if request.users else f"{offered.rps:.4g} requests/s"
    takes = "takes" if who == counted(1, "user") else "take"
    gpus, usd = running.fleet_gpus(offered.rps), running.usd_per_month(offered.rps)
    second = f"{who} {takes} {gpus:,} {scenario.gpu.name} at {usd:,.0f} USD per month"
    each = f"one replica runs {counted(running.concurrency, 'request')} at once"
    if now is None or before is None:
        return f"{first}: {each}, and {second}."
    times = f"{usd / now.usd_per_month(before.rps):.3g}"
    as_much = "as much as today" if times == "1" else f"{times} times as much as today"
    before_that = f" instead of {now.concurrency}"
    if running.gpus != now.gpus:
        before_that = f"{before_that} on {counted(now.gpus, 'GPU')}"
    elif running.concurrency == now.concurrency:
        before_that = ", as today"
    return f"{first}: {each}{before_that}, and {second}, {as_much}."


def _is_as_today(running: Evaluated, now: Evaluated) -> bool:
    """Whether the cheapest replica of the feature is the one of today."""
    same_gpu = running.scenario.gpu.id == now.scenario.gpu.id
    return same_gpu and running.choice.deployment == now.choice.deployment
