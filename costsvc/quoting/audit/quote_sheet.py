"""The sheet that is read first: prices, cost, concurrency, memory and savings as formulas."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from costsvc.engine.memory import memory_budget, sequence_bytes
from costsvc.engine.units import MS_PER_S, SECONDS_PER_HOUR, TOKENS_PER_MTOK
from costsvc.quoting.audit.attribution import TOKENS
from costsvc.quoting.audit.frame import Frame
from costsvc.quoting.audit.plan import EXAMPLE, MAIN, WITHOUT
from costsvc.quoting.audit.record import plain, text_of, value_of
from costsvc.quoting.audit.tables import CLASSES

_HELP: Final = (
    "Yellow cells of the sheet Inputs may be changed: every price follows, for this deployment. "
    "Where latency limits concurrency, the secant rows of the sheet Points solve it anew; 'bound "
    "holds' must then be 1."
)
AGREES: Final = 1e-6
_FIRST_ROW: Final = 4
_COLUMNS: Final = ("quantity", "live value", "unit", "how", "the service's number", "agrees")
_MTOK: Final = "USD/Mtok"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the sheet. `service` is what the service answered, where it answers this."""

    name: str
    text: str
    value: float
    unit: str
    how: str
    service: Any = None
    form: str = "money"


def write_quote(frame: Frame, raw: Mapping[str, float]) -> None:
    """Prices, cost, concurrency, memory and savings, beside the service's own numbers."""
    sheet, answer = frame.sheets["Quote"], frame.answer
    request, deployment = answer["request"], answer["deployment"]
    title = (
        f"{request['model']} on {deployment['gpus']} x {request['gpu']}, prices of {answer['as_of']}, "
        f"catalog revision {answer['catalog_revision']}, engine {answer['engine_version']}"
    )
    sheet.write_string(0, 0, title, frame.formats["title"])
    sheet.merge_range(1, 0, 1, 5, _HELP, frame.formats["wrap"])
    sheet.set_row(1, 32)
    frame.head("Quote", _FIRST_ROW - 1, _COLUMNS, (30, 20, 12, 60, 22, 9), (1, 4, 5))
    for row, line in enumerate(_lines(frame, raw), start=_FIRST_ROW):
        sheet.write_string(row, 0, line.name)
        frame.formula("Quote", (row, 1), line.text, line.value, line.form)
        sheet.write_string(row, 2, line.unit, frame.formats["unit"])
        sheet.write_string(row, 3, line.how)
        if line.service is not None:
            service = float(line.service)
            sheet.write_number(row, 4, service, frame.formats[line.form])
            test = f"ABS(B{row + 1}-E{row + 1})<={AGREES!r}*ABS(E{row + 1})"
            frame.formula("Quote", (row, 5), test, abs(line.value - service) <= AGREES * abs(service))
        frame.define(f"quote_{line.name.replace(' ', '_')}", "Quote", row, 1)
    sheet.freeze_panes(_FIRST_ROW, 1)


def _lines(frame: Frame, raw: Mapping[str, float]) -> Iterator[Line]:
    cost = frame.cost_of(MAIN)
    tokens = dict(zip(CLASSES, frame.plan.tokens, strict=True))
    attributed = sum(raw[name] * tokens[name] for name in CLASSES)
    yield from _prices(frame, raw, cost[1] / attributed)
    yield from _cost(frame, cost, cost[1] / attributed)
    yield from _loop(frame)
    yield from _memory(frame)
    if frame.answer["prefix_caching"].get("savings"):
        yield from _savings(frame)
    if "exchange" in frame.answer["prices"]:
        yield from _in_currency(frame)


def _prices(frame: Frame, raw: Mapping[str, float], scale: float) -> Iterator[Line]:
    prices, money = frame.answer["prices"], _money(frame)
    low, high = frame.band.low_ratio, frame.band.high_ratio
    for name in CLASSES:
        value, there = raw[name] * scale * money * TOKENS_PER_MTOK, prices[name]
        text = f"raw_{name}*quote_scale*quote_usd_per_gpu_second*{TOKENS_PER_MTOK}"
        how = "raw price of the sheet Attribution x scale x money"
        yield Line(name, text, value, _MTOK, how, there["usd_per_mtok"], "price")
        for bound, ratio in (("low", low), ("high", high)):
            how = "percentile of the model's error: sheet Band"
            yield Line(
                f"{name} {bound}", f"quote_{name}*band_{bound}_ratio", value * ratio, _MTOK, how, there[bound]
            )
    blended = frame.cost_of(MAIN)[1] * money / sum(frame.plan.tokens) * TOKENS_PER_MTOK
    text = f"quote_request_usd/({'+'.join(TOKENS)})*{TOKENS_PER_MTOK}"
    yield Line(
        "blended", text, blended, _MTOK, "cost over all tokens", prices["blended"]["usd_per_mtok"], "price"
    )


def _cost(frame: Frame, cost: tuple[str, float], scale: float) -> Iterator[Line]:
    answer, money = frame.answer["cost"], _money(frame)
    usd = cost[1] * money
    yield Line(
        "request usd",
        "quote_request_gpu_s*quote_usd_per_gpu_second",
        usd,
        "USD",
        "work x money",
        answer["request_usd"],
    )
    paid = "+".join(f"quote_{name}*{token}" for name, token in zip(CLASSES, TOKENS, strict=True))
    yield Line(
        "prices times tokens",
        f"({paid})/{TOKENS_PER_MTOK}",
        usd,
        "USD",
        "must equal the cost",
        answer["request_usd"],
    )
    how = "sheet Points: GPUs x step time x output / concurrency"
    yield Line("request gpu s", *cost, "GPU s", how, answer["request_gpu_seconds"], "number")
    how = "price of a second x load multiplier x (1 + margin)"
    yield Line("usd per gpu second", _money_text(frame), money, "USD/GPU s", how, None, "number")
    every = "+".join(f"raw_{name}*{token}" for name, token in zip(CLASSES, TOKENS, strict=True))
    how = "makes prices times tokens the cost; 1 but for the quadrature"
    yield Line("scale", f"quote_request_gpu_s/({every})", scale, "1", how, None, "number")


def _money(frame: Frame) -> float:
    live = frame.live
    multiplier = live.multiplier.value if live.multiplier else 1.0 / live.utilization_share.value
    return live.usd_per_gpu_hour.value / SECONDS_PER_HOUR * multiplier * (1.0 + live.margin_share.value)


def _money_text(frame: Frame) -> str:
    multiplier = "load_multiplier" if frame.live.multiplier else "(1/utilization)"
    return f"gpu_usd_per_hour/{SECONDS_PER_HOUR:.0f}*{multiplier}*(1+margin)"


def _loop(frame: Frame) -> Iterator[Line]:
    """Concurrency, whether what it was solved for holds, and the latencies."""
    answer = frame.answer

    def at(column: str) -> tuple[str, float]:
        return frame.reference(MAIN, column), frame.value(MAIN, column)

    service = answer["concurrency"]["mean_sequences"]
    yield Line("concurrency", *at("sequences"), "sequences", "sheet Points", service)
    over, running, ceiling = (at(column)[0] for column in ("excess", "sequences", "ceiling"))
    held = f"IF(OR(ABS({over})<{AGREES!r},AND({over}<=0,{running}={ceiling}),{running}<=1),1,0)"
    if frame.live.objectives.tpot_s is None and frame.live.objectives.ttft_s is None:
        held = f"IF({running}={ceiling},1,0)"
    if frame.plan.is_given:
        held = f"IF({running}<={ceiling}*(1+{AGREES!r}),1,0)"
    how = "the objective is met exactly, or a ceiling binds"
    yield Line("bound holds", held, 1.0, "1 is yes", how, 1.0, "whole")
    latency = answer["latency"]
    yield Line("step s", *at("step_s"), "s", "time per output token", latency["tpot_ms"] / MS_PER_S)
    yield Line("ttft s", *at("ttft_s"), "s", "time to first token", latency["ttft_ms"] / MS_PER_S)


def _memory(frame: Frame) -> Iterator[Line]:
    """Terms of one GPU, by the engine's own functions."""
    replica, service = frame.live.replica, frame.answer["memory"]
    budget, context = memory_budget(replica), frame.live.lengths.context_limit
    for name, term, how in (
        ("usable_bytes", budget.usable_bytes, "what the driver shows"),
        ("weights_bytes", budget.weight_bytes, "heaviest stage"),
        ("kv_budget_bytes", budget.kv_bytes, "what the stack's rule leaves for the cache"),
        ("kv_sequence_bytes", sequence_bytes(replica, context), "one sequence of the longest context"),
    ):
        one = plain(term)
        shown = name.replace("_", " ")
        yield Line(shown, text_of(one), value_of(one), "B per GPU", how, service[name], "whole")


def _savings(frame: Frame) -> Iterator[Line]:
    """What prefix hits save: two evaluations of the same deployment."""
    label = MAIN if frame.plan.example_share is None else EXAMPLE
    without, cached = frame.cost_of(WITHOUT), frame.cost_of(label)
    service = frame.answer["prefix_caching"]["savings"]
    saved = (without[1] - cached[1]) * _money(frame)
    text = f"({without[0]}-{cached[0]})*quote_usd_per_gpu_second"
    how = f"{WITHOUT} less {label}"
    yield Line("saved usd per request", text, saved, "USD", how, service["usd_per_request"])
    share = 1.0 - cached[1] / without[1]
    text = f"1-{cached[0]}/{without[0]}"
    yield Line("saved share of bill", text, share, "1", "of the bill without hits", service["share_of_bill"])


def _in_currency(frame: Frame) -> Iterator[Line]:
    """The prices and the request in the asked currency, at the rate of the first of these lines."""
    prices, cost = frame.answer["prices"], frame.answer["cost"]
    code, rate = prices["currency"], prices["exchange"]
    units_per_usd = float(rate["units_per_usd"])
    how = ", ".join(filter(None, (rate["basis"], rate["first_day"])))
    yield Line("units per usd", rate["units_per_usd"], units_per_usd, f"{code}/USD", how, units_per_usd)
    how, own, mtok = "US dollars x units per usd", code.lower(), f"{code}/Mtok"
    kinds = (
        ("", "usd_per_mtok", f"{own}_per_mtok", "price"),
        (" low", "low", f"low_{own}_per_mtok", "money"),
        (" high", "high", f"high_{own}_per_mtok", "money"),
    )
    amounts = [
        (f"{name}{bound}", prices[name][usd], prices[name][shown], mtok, form)
        for name in CLASSES
        for bound, usd, shown, form in kinds
    ]
    blended = prices["blended"]
    amounts.append(("blended", blended["usd_per_mtok"], blended[f"{own}_per_mtok"], mtok, "price"))
    amounts.append(("request usd", cost["request_usd"], cost[f"request_{own}"], code, "money"))
    for name, usd, service, unit, form in amounts:
        text = f"quote_{name.replace(' ', '_')}*quote_units_per_usd"
        shown = f"{name.removesuffix(' usd')} in currency"
        yield Line(shown, text, float(usd) * units_per_usd, unit, how, service, form)
