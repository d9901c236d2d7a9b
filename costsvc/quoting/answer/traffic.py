"""What a profile's traffic costs: a request, a session, and a month, hour by hour."""

from costsvc.engine.units import HOURS_PER_MONTH, SECONDS_PER_HOUR
from costsvc.quoting.answer.plain import Plain, Section, number
from costsvc.quoting.bill import Bill
from costsvc.quoting.choice import Choice
from costsvc.quoting.money import money
from costsvc.quoting.scenario import Scenario


def traffic_section(scenario: Scenario, choice: Choice, bill: Bill) -> Section | None:
    """Cost per request and session; with a rate, GPUs and USD by hour, autoscaled against a fixed peak.

    None where the request gives no profile.
    """
    load = scenario.load
    if scenario.request.profile is None:
        return None
    calls = load.sharing.calls if load.sharing else 1.0
    section: Section = {
        "profile": load.profile_id,
        "requests_per_session": number(calls),
        "usd_per_request": money(bill.request_usd),
        "usd_per_session": money(bill.request_usd * calls),
        "rps": None if load.rps is None else number(load.rps),
    }
    if load.rps is None:
        return section
    usd_per_hour = choice.deployment.gpus * bill.gpu_second_usd * SECONDS_PER_HOUR
    rates = load.hourly_rps or (load.rps,)
    sized = bill.hours or ((bill.fleet,) if bill.fleet else ())
    replicas = [one.replicas + one.prefill_replicas if one else 0 for one in sized]
    hours: list[Plain] = [
        {
            "hour": hour,
            "rps": number(rate),
            "replicas": count,
            "gpus": count * choice.deployment.gpus,
            "usd": money(count * usd_per_hour),
        }
        for hour, (rate, count) in enumerate(zip(rates, replicas, strict=True))
    ]
    mean, peak = sum(replicas) / len(replicas), max(replicas)
    return section | {
        "requests_per_month": number(load.rps * HOURS_PER_MONTH * SECONDS_PER_HOUR),
        "autoscaled": _month(mean, choice, usd_per_hour),
        "fixed_peak": _month(peak, choice, usd_per_hour),
        "autoscaling_saves_share": number(1.0 - mean / peak),
        "by_hour": hours if load.hourly_rps else None,
    }


def _month(replicas: float, choice: Choice, usd_per_hour: float) -> Section:
    return {
        "gpus": number(replicas * choice.deployment.gpus),
        "usd_per_month": money(replicas * usd_per_hour * HOURS_PER_MONTH),
    }
