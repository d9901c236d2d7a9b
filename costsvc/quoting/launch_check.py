"""A long-context feature before launch: does it fit, what does it cost all users, and what would help."""

from dataclasses import dataclass
from datetime import date
from math import isfinite
from typing import cast

from costsvc.db.snapshot import Catalog
from costsvc.errors import Infeasible, InvalidRequest
from costsvc.quoting.answer import grounds, prefix
from costsvc.quoting.answer.plain import Plain, Section, number, number_exact
from costsvc.quoting.bill import bill_of
from costsvc.quoting.evaluate import LAYOUT, Evaluated, changed, evaluate, priced_gpus, ranked
from costsvc.quoting.launch import levers
from costsvc.quoting.launch.cliffs import cliffs_of
from costsvc.quoting.launch.longer import longer_section
from costsvc.quoting.launch.offers import buying_section
from costsvc.quoting.launch.request import ANY_GPU, LaunchRequest
from costsvc.quoting.launch.sides import multiples_section, side_section
from costsvc.quoting.launch.traffic import offered_traffic, traffic_section
from costsvc.quoting.launch.verdict import Verdict, sentence, verdict_of
from costsvc.quoting.load import default_output_tokens
from costsvc.quoting.quote import ENGINE_VERSION
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.warned import warnings_of

USED_ASSUMPTIONS = ("today_context_tokens", "peak_ratio", "user_pause_s", "context_cap_share")
LEAST_CONTEXT_TOKENS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was tried. `asked` is the feature as asked, `running` the best that runs it, if any."""

    feature: QuoteRequest
    asked: Evaluated | None
    refused: Infeasible | None
    running: Evaluated | None
    now: Evaluated | None
    not_now: Infeasible | None
    tried: list[levers.Tried]
    steps: list[levers.Step]

    @property
    def change(self) -> str | None:
        """The lever without which nothing runs; None where another layout does."""
        return next((one.lever.what for one in self.tried if one.running is self.running), None)


def check_launch(catalog: Catalog, request: LaunchRequest, today: date) -> Section:
    """Answer a launch check from one revision of the catalog.

    Raises
    ------
    CostsvcError
        Something that no change of the deployment helps against: an unknown name, a contradiction, a day
        without prices.
    """
    checked = _checked(catalog, request, today)
    verdict = verdict_of(
        catalog,
        feature=checked.feature,
        asked=checked.asked,
        running=checked.running,
        now=checked.now,
        today=today,
    )
    answer: Section = {
        "as_of": (request.as_of or today).isoformat(),
        "catalog_revision": catalog.revision,
        "engine_version": ENGINE_VERSION,
        "feature": {
            name: value
            for name, value in checked.feature.model_dump(mode="json", exclude_unset=True).items()
            if value is not None
        },
    }
    if checked.running is None:
        return answer | _nothing(catalog, checked, verdict)
    running = checked.running
    offered = offered_traffic(catalog, request, running)
    before = None if checked.now is None else offered_traffic(catalog, request, checked.now)
    band = grounds.error_band(catalog, running.scenario)
    other = prefix.other_lengths(catalog, running.scenario, running.choice)
    bill = bill_of(running.scenario, running.choice, running.price, other)
    return answer | {
        "verdict": {
            "fits": verdict.value,
            "sentence": sentence(
                verdict,
                request=request,
                running=running,
                offered=offered,
                now=checked.now,
                before=before,
                change=checked.change,
            ),
            "as_asked": None if checked.refused is None else checked.refused.message,
        },
        "traffic": traffic_section(catalog, request, running, offered),
        "now": {"refused": None if checked.not_now is None else checked.not_now.message}
        if checked.now is None or before is None
        else side_section(catalog, checked.now, before),
        "with_feature": side_section(catalog, running, offered),
        "multiples": multiples_section(checked.now, before, running, offered),
        "cliffs": list[Plain](cliffs_of(catalog, running, today_context_tokens(catalog, request, running))),
        "levers": levers.lever_sections(catalog, checked.running, checked.tried, offered.rps),
        "stack": levers.step_sections(catalog, checked.steps, offered.rps),
        "prefix_caching": prefix.prefix_section(catalog, running.scenario, running.choice, bill),
        "opportunity": prefix.rent_section(running.choice, bill),
        "longer_context": longer_section(running, offered),
        "buying": buying_section(catalog, running, offered),
        "uncertainty": {"low_ratio": number(band.low_ratio), "high_ratio": number(band.high_ratio)},
        "assumptions": _assumptions(catalog),
        "warnings": warnings_of(running.scenario, running.choice, bill),
    }


def today_context_tokens(catalog: Catalog, request: LaunchRequest, running: Evaluated | None) -> int:
    """What the feature is compared with; of a profile no more than its own mean. [token]"""
    if request.today_ctx is not None:
        return request.today_ctx
    assumed = int(catalog.judgements.value("today_context_tokens"))
    if request.profile is None or running is None:
        return assumed
    return min(assumed, round(running.request_tokens))


def _checked(catalog: Catalog, request: LaunchRequest, today: date) -> Checked:
    probe = request.feature(request.gpu)
    free = changed(probe, dict.fromkeys(LAYOUT))
    others = ranked(catalog, free, priced_gpus(catalog, probe, today), today)
    if request.gpu == ANY_GPU:
        gpu = others[0].scenario.gpu.id if others else next(iter(catalog.gpus))
    else:
        gpu = catalog.gpu(request.gpu).id
    feature = request.feature(gpu)
    asked, refused = _try(catalog, feature, today)
    on_any_layout = asked or _try(catalog, changed(free, {"gpu": gpu}), today)[0]
    ground = on_any_layout or next(iter(others), None)
    tried: list[levers.Tried] = []
    if ground is not None:
        other = next((one.scenario.gpu.id for one in others if one.scenario.gpu.id != gpu), None)
        tried = levers.try_each(catalog, feature, levers.levers_for(catalog, feature, ground, other), today)
    usable = [one.running for one in tried if one.running is not None and one.lever.is_same_feature]
    running = on_any_layout or min(usable, key=lambda one: one.request_usd, default=ground)
    now, not_now = _try(catalog, _today(catalog, request, gpu, running), today)
    return Checked(
        feature=feature,
        asked=asked,
        refused=refused,
        running=running,
        now=now,
        not_now=not_now,
        tried=tried,
        steps=levers.stacked(catalog, feature, asked, tried, today),
    )


def _today(catalog: Catalog, request: LaunchRequest, gpu: str, running: Evaluated | None) -> QuoteRequest:
    """What runs today, with the feature's output where its context has room for that, else with a usual one."""
    context = today_context_tokens(catalog, request, running)
    if context < LEAST_CONTEXT_TOKENS:
        raise InvalidRequest(
            f"today_ctx is {context}: a request needs at least one prompt and one output token; give 2 or more.",
            field="today_ctx",
        )
    output = request.today_output
    if output is not None and output >= context:
        raise InvalidRequest(
            f"today_output is {output}, which leaves no prompt in today's context of {context} tokens: give fewer, "
            f"or raise today_ctx.",
            field="today_output",
        )
    if output is None and running is not None:
        output = int(running.scenario.traffic.output_tokens)
    if output is None or output >= context:
        output = default_output_tokens(context, catalog.judgements.value)
    return request.today(gpu, context, output, _hit_share(running))


def _hit_share(running: Evaluated | None) -> float:
    """Share of the prompt found again, where it follows from the traffic; a rate that was asked for stands. [1]"""
    if running is None or running.scenario.sharing is None:
        return 0.0
    lengths = running.choice.lengths
    return number_exact(lengths.cached) / number_exact(lengths.prompt)


def _try(catalog: Catalog, request: QuoteRequest, today: date) -> tuple[Evaluated | None, Infeasible | None]:
    try:
        return evaluate(catalog, request, today), None
    except Infeasible as error:
        return None, error


def _nothing(catalog: Catalog, checked: Checked, verdict: Verdict) -> Section:
    """No card and no lever runs the feature."""
    reason = checked.refused.message if checked.refused else "nothing in the catalog runs it"
    refused = checked.refused
    return {
        "verdict": {"fits": verdict.value, "sentence": f"It does not fit: {reason}"},
        "refused": None if refused is None else _for_programs(refused),
        "levers": levers.lever_sections(catalog, None, checked.tried, 1.0),
        "warnings": [],
    }


def _for_programs(refused: Infeasible) -> Section:
    """The parameter to change, and what the error carries; what has no number is left out, as in a problem."""
    known = {
        name: value
        for name, value in refused.details.items()
        if not isinstance(value, float) or isfinite(value)
    }
    return {"field": refused.field, **cast("Section", known)}


def _assumptions(catalog: Catalog) -> list[Plain]:
    found = (catalog.judgements.find(name, {}) for name in USED_ASSUMPTIONS)
    return [grounds.assumption_section(judgement) for judgement in found]
