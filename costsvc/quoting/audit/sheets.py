"""The sheets of sensitivity, with its chart, and of the error band."""

from typing import Final

from costsvc.engine.units import SECONDS_PER_HOUR, TOKENS_PER_MTOK
from costsvc.quoting.audit.attribution import AXES, moved, moved_text
from costsvc.quoting.audit.frame import Frame
from costsvc.quoting.audit.plan import UTILIZATIONS

_FIRST_ROW: Final = 4
_BAND: Final = {
    "points": "measured points of the regime",
    "regime": "whose errors these are",
    "kind": "measured, or an estimate where too few points are of the regime",
    "extrapolated": "whether the quote is outside what was measured",
}


def write_sensitivity(frame: Frame) -> None:
    """Blended price by context and utilization, and a chart of it."""
    contexts, sheet = frame.plan.contexts, frame.sheets["Sensitivity"]
    names = ("context [token]", *(f"at {share:.0%}" for share in UTILIZATIONS))
    title = "Blended price [USD/Mtok] of this deployment by context (output unchanged) and utilization"
    sheet.write_string(0, 0, title, frame.formats["title"])
    frame.head("Sensitivity", 2, names, (18, *[12] * len(UTILIZATIONS)), range(len(names)))
    for column, share in enumerate(UTILIZATIONS, start=1):
        sheet.write_number(3, column, share, frame.formats["live_share"])
    sheet.write_string(3, 0, "utilization")
    for row, (label, context) in enumerate(contexts, start=_FIRST_ROW):
        frame.formula("Sensitivity", (row, 0), frame.reference(label, "ctx"), context, "whole")
        cost = frame.cost_of(label)
        tokens = "+".join(frame.reference(label, name) for name in ("uncached", "cached", "output"))
        for column, share in enumerate(UTILIZATIONS, start=1):
            letter = chr(ord("A") + column)
            money = f"gpu_usd_per_hour/{SECONDS_PER_HOUR:.0f}/{letter}$4*(1+margin)"
            text = f"{cost[0]}*{money}/({tokens})*{TOKENS_PER_MTOK}"
            value = cost[1] * frame.live.usd_per_gpu_hour.value / SECONDS_PER_HOUR / share
            value *= (1.0 + frame.live.margin_share.value) / context * TOKENS_PER_MTOK
            frame.formula("Sensitivity", (row, column), text, value, "money")
    if contexts:
        _chart(frame, len(contexts))


def _chart(frame: Frame, rows: int) -> None:
    chart = frame.book.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
    for column, share in enumerate(UTILIZATIONS, start=1):
        chart.add_series(
            {
                "name": f"{share:.0%} utilization",
                "categories": ["Sensitivity", 4, 0, 3 + rows, 0],
                "values": ["Sensitivity", 4, column, 3 + rows, column],
            }
        )
    chart.set_title({"name": "Blended price by context", "name_font": {"size": 12}})
    chart.set_x_axis({"name": "context [token]", "log_base": 2, "num_format": "#,##0"})
    chart.set_y_axis({"name": "USD/Mtok", "min": 0})
    chart.set_size({"width": 860, "height": 420})
    frame.sheets["Sensitivity"].insert_chart(rows + 6, 0, chart)


def write_band(frame: Frame) -> None:
    """The error band and where the quote leaves what was measured."""
    uncertainty, sheet = frame.answer["uncertainty"], frame.sheets["Band"]
    frame.head("Band", 0, ("what", "value", "meaning"), (28, 22, 100))
    for row, name in enumerate(("low_ratio", "high_ratio"), start=1):
        sheet.write_string(row, 0, f"band_{name}")
        sheet.write_number(row, 1, uncertainty[name], frame.formats["live"])
        frame.texts("Band", row, 2, (uncertainty["means"],), (100,))
        frame.define(f"band_{name}", "Band", row, 1)
    for row, name in enumerate(_BAND, start=3):
        value = uncertainty[name]
        sheet.write_string(row, 0, name)
        if isinstance(value, bool):
            sheet.write_string(row, 1, "yes" if value else "no", frame.formats["right"])
        else:
            sheet.write(row, 1, value, frame.formats["right"])
        frame.texts("Band", row, 2, (_BAND[name],), (100,))
    said = [("why extrapolated", why) for why in uncertainty["why_extrapolated"]]
    said += [("warning", warning) for warning in frame.answer["warnings"]]
    for row, (name, text) in enumerate(said, start=3 + len(_BAND)):
        sheet.write_string(row, 0, name)
        frame.texts("Band", row, 2, (text,), (100,))


def name_moves(frame: Frame) -> None:
    """How far each axis is moved for a difference, as named terms."""
    for axis, name in enumerate(AXES):
        text = moved_text(axis)
        frame.live.inputs.terms.named[text] = f"moved_{name}"
        frame.live.inputs.terms.values[f"moved_{name}"] = moved(frame.plan.tokens, axis)
