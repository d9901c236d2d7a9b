"""How many requests come: Little's law in both directions."""

from dataclasses import dataclass

from costsvc.db.snapshot import Catalog
from costsvc.engine.units import HOURS_PER_MONTH, SECONDS_PER_HOUR
from costsvc.errors import InvalidRequest
from costsvc.quoting.answer.plain import Section, number
from costsvc.quoting.evaluate import Evaluated
from costsvc.quoting.launch.request import LaunchRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """Traffic on average, and how many times as much in the busiest hour. [1/s], [1]"""

    rps: float
    peak_ratio: float

    @property
    def peak_rps(self) -> float:
        """[1/s]"""
        return self.rps * self.peak_ratio


def offered_traffic(catalog: Catalog, request: LaunchRequest, running: Evaluated) -> Offered:
    """The rate at which users, or the request itself, ask of a deployment.

    A closed loop of N users with pause Z completes :math:`X = N / (R + Z)`, R the time in the service.
    """
    load = running.scenario.load
    if request.users is not None:
        rps = request.users / (running.residence_s + pause_s(catalog, request))
    else:
        known = request.rps or load.rps
        if known is None:
            raise InvalidRequest(
                "The profile names no rate. Give users or rps: how many people, or requests per second, "
                "will come?",
                field="users",
            )
        rps = known
    if request.peak_ratio is not None:
        peak = request.peak_ratio
    elif load.hourly_rps:
        peak = max(load.hourly_rps) * len(load.hourly_rps) / sum(load.hourly_rps)
    else:
        peak = catalog.judgements.value("peak_ratio")
    return Offered(rps=rps, peak_ratio=peak)


def pause_s(catalog: Catalog, request: LaunchRequest) -> float:
    """Pause of a user: the request's, or the assumption. [s]"""
    return catalog.judgements.value("user_pause_s") if request.pause_s is None else request.pause_s


def traffic_section(
    catalog: Catalog, request: LaunchRequest, running: Evaluated, offered: Offered
) -> Section:
    """Little's law with its numbers in it."""
    residence_s = running.residence_s
    in_flight = offered.rps * residence_s
    section: Section = {
        "rps": number(offered.rps),
        "peak_ratio": number(offered.peak_ratio),
        "peak_rps": number(offered.peak_rps),
        "requests_per_month": number(offered.rps * SECONDS_PER_HOUR * HOURS_PER_MONTH),
        "residence_s": number(residence_s),
        "requests_in_flight": number(in_flight),
        "peak_requests_in_flight": number(in_flight * offered.peak_ratio),
    }
    law = (
        f"in flight, waiting and prefill included = rps x time in the service = {offered.rps:.4g}/s x "
        f"{residence_s:.4g} s = {in_flight:.4g}"
    )
    if request.users is not None:
        pause = pause_s(catalog, request)
        section |= {"users": number(request.users), "pause_s": number(pause)}
        law = (
            f"rps = users / (time in the service + pause) = {request.users:g} / ({residence_s:.4g} s + "
            f"{pause:g} s)"
            f" = {offered.rps:.4g}/s; {law}"
        )
    section["littles_law"] = law
    return section
