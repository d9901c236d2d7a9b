"""Fitted judgements as catalog files, and how they differ from what was there."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from costsvc.db.entries import Judgement

SCHEMA = "# yaml-language-server: $schema=../.schema/judgements.json"
SHOWN_CHANGE_SHARE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The head of a judgement file: what it holds, and its one source."""

    comment: str
    title: str
    locator: str
    dated: date


def judgement_file(heading: Heading, judgements: Iterable[Judgement]) -> str:
    """A file under `calibration/`, in the order given."""
    lines = [
        SCHEMA,
        f"# {heading.comment}",
        "source:",
        f"  title: {heading.title}",
        "  kind: derived",
        f"  locator: {heading.locator}",
        f"  accessed: {heading.dated.isoformat()}",
        "judgements:",
    ]
    for judgement in judgements:
        lines += _entry(judgement)
    return "\n".join(lines) + "\n"


def changes(before: Sequence[Judgement], after: Sequence[Judgement]) -> list[str]:
    """One line for each judgement that is new, gone, or moved by more than half a per cent."""
    old, new = _by_place(before), _by_place(after)
    lines = []
    for place in sorted(old.keys() | new.keys()):
        was, now = old.get(place), new.get(place)
        if was is None and now is not None:
            lines.append(f"+ {place}: {now.value:g} {now.unit}")
        elif now is None and was is not None:
            lines.append(f"- {place}: {was.value:g} {was.unit}")
        elif was and now and abs(now.value - was.value) > SHOWN_CHANGE_SHARE * abs(was.value):
            moved = f"{now.value / was.value - 1:+.1%}" if was.value else "from zero"
            lines.append(f"~ {place}: {was.value:g} -> {now.value:g} {now.unit} ({moved})")
    return lines


def _by_place(judgements: Iterable[Judgement]) -> Mapping[str, Judgement]:
    return {
        f"{j.name}{{{', '.join(f'{key}: {value}' for key, value in sorted(j.scope))}}}": j for j in judgements
    }


def _entry(judgement: Judgement) -> list[str]:
    lines = [
        f"  - name: {judgement.name}",
        f"    value: {_number(judgement.value)}",
        f'    unit: "{judgement.unit}"',
        f"    kind: {judgement.kind}",
        f"    dated: {judgement.dated.isoformat()}",
    ]
    if judgement.scope:
        inside = ", ".join(f"{key}: {value}" for key, value in judgement.scope)
        lines.append(f"    scope: {{{inside}}}")
    if judgement.points is not None:
        lines.append(f"    points: {judgement.points}")
    if judgement.scatter_ratio is not None:
        lines.append(f"    scatter_ratio: {_number(judgement.scatter_ratio)}")
    if judgement.reason is not None:
        lines.append(f"    reason: '{judgement.reason}'")
    return lines


def _number(value: float) -> str:
    """A float that YAML 1.1 reads as one: with a point, also before an exponent."""
    text = f"{value:.4g}"
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}"
