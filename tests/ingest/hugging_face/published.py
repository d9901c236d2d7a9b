"""Configurations of real models with a published parameter count, and what importing them counts.

`published.jsonl` holds of each configuration the fields that decide shapes, and where it and the count were read:
packages that ship configurations or model classes, and one that ships the totals of released files.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final

from costsvc.engine.specs import ModelSpec
from costsvc.errors import ConfigNotUnderstood
from costsvc.ingest.entry import SourceFields
from costsvc.ingest.hugging_face.given import GivenFacts, ImportedConfig
from costsvc.ingest.hugging_face.importing import ImportedModel, import_config

DAY: Final = date(2026, 11, 29)
ORIGIN: Final = SourceFields(title="An example", kind="vendor")
_BOUNDS: Final = ((0.0, "exact"), (1e-4, "within 0.01 %"), (5e-3, "within 0.5 %"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A configuration, and the total that its released file is published with. [parameters]"""

    model: str
    published_parameters: int
    count_from: str
    config_from: str
    config: dict[str, Any]
    given: Mapping[str, Any] | None = None
    why_not_exact: str | None = None

    @property
    def model_type(self) -> str:
        """The type that says how its layers are built."""
        return str((self.config.get("text_config") or self.config).get("model_type"))


@cache
def published_models() -> tuple[Published, ...]:
    """Every row."""
    lines = Path(__file__).with_name("published.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(Published(**json.loads(line)) for line in lines)


def published(model: str) -> Published:
    """The row of a model."""
    return next(one for one in published_models() if one.model == model)


def imported(one: Published) -> ImportedModel:
    """The model as its configuration and the published count make it."""
    return _imported(one.model)


@cache
def _imported(model: str) -> ImportedModel:
    one = published(model)
    given = {**(one.given or {}), "published_parameters": one.published_parameters}
    return imported_config(one.config, **given, parameter_difference_reason=one.why_not_exact)


def imported_config(config: dict[str, Any], **given: Any) -> ImportedModel:
    """The model that a configuration and given facts make."""
    facts = GivenFacts(source=ORIGIN, **given) if given else None
    return import_config(
        ImportedConfig(config=config, id="example", name="Example", source=ORIGIN, given=facts), DAY
    )


def shapes_of(one: Published) -> ModelSpec:
    """All that the count follows from: what two models share that differ in their weights alone."""
    return replace(imported(one).file.spec(), max_context_tokens=1, rope_scaling=None)


def difference(one: Published) -> float | None:
    """The computed total over the published one, less one; None where the configuration is refused. [1]"""
    try:
        file = imported(one).file
    except ConfigNotUnderstood:
        return None
    return file.file_parameters() / one.published_parameters - 1


def outcome(share: float | None) -> str:
    """A difference in words."""
    if share is None:
        return "refused"
    return next((word for bound, word in _BOUNDS if abs(share) <= bound), "further off")


def summary() -> Iterator[str]:
    """The result as two tables: how many, and each that is not exact."""
    found = [(one, difference(one)) for one in published_models()]
    counted = Counter(outcome(share) for _, share in found)
    types = {one.model_type for one, _ in found}
    exact_types = {one.model_type for one, share in found if share == 0}
    yield "| computed against published | models |"
    yield "|---|---|"
    for word in ("exact", "within 0.01 %", "within 0.5 %", "further off", "refused"):
        yield f"| {word} | {counted[word]} |"
    yield f"| together | {len(found)} |"
    yield ""
    known = {shapes_of(one) for one, share in found if share is not None}
    exact = {shapes_of(one) for one, share in found if share == 0}
    yield (
        f"They are {len(known)} distinct architectures, which differ in a shape or a kind of layer; "
        f"{len(exact)} of these count exactly."
    )
    yield f"They have {len(types)} values of `model_type`; {len(exact_types)} of these have an exact one."
    yield ""
    yield "| not exact | computed over published, less one | why |"
    yield "|---|---|---|"
    for one, share in sorted(found, key=lambda pair: pair[0].model.casefold()):
        if share != 0:
            shown = "–" if share is None else f"{share:+.4%}"
            yield f"| {one.model} | {shown} | {one.why_not_exact} |"
