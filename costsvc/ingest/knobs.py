"""`fit/knobs.yaml`: which judgements a calibration may move, from where and how far."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from costsvc.engine.calibration import FitWeights
from costsvc.engine.specs import Deployment
from costsvc.errors import InvalidCatalogFile
from costsvc.ingest.entry import Quantity, Slug, Strict, Text, validated
from costsvc.ingest.judgements import Name, ScopeKey
from costsvc.ingest.lines import read_document


class KnobFields(Strict):
    """One judgement to fit, over broader and narrower scopes."""

    name: Name
    unit: Text
    prior: Quantity
    levels: Annotated[list[list[ScopeKey]], Field(min_length=1)]
    deviations: list[Quantity]
    least_points: Annotated[int, Field(strict=True, ge=1)]
    dtypes: list[Slug] = Field(default_factory=list)
    at_most: Quantity | None = None
    at_least: Quantity = 1e-12

    @model_validator(mode="after")
    def one_deviation_each_level(self) -> Self:
        """Each level says how far it may lie from the one above."""
        if len(self.deviations) != len(self.levels):
            raise ValueError("Give one deviation for each level")
        return self

    def concerns(self, deployment: Deployment) -> bool:
        """Whether points of a layout say anything about the knob."""
        if not self.dtypes:
            return True
        plan = deployment.weights
        stored = {plan.attention.id, plan.ffn.id, plan.experts.id, plan.embedding.id, plan.other.id}
        if self.name.startswith("attention_decode"):
            stored = {deployment.kv.id}
        return bool(stored & set(self.dtypes))


class KnobWeights(Strict):
    """How much a relative error of each measured quantity counts; TPOT under arrivals at a rate by itself."""

    rate: Quantity
    tpot: Quantity
    ttft: Quantity
    arrivals_tpot: Quantity

    def spec(self) -> FitWeights:
        """As the engine takes them."""
        return FitWeights(rate=self.rate, tpot=self.tpot, ttft=self.ttft)


class KnobsFile(Strict):
    """`fit/knobs.yaml`. `kin` says of a generation whose kernels it runs where nothing was measured of it.

    A stack of `centring_configurations` has half of its lean taken off its slowness.
    """

    weights: KnobWeights
    centring_configurations: Quantity
    kin: dict[Slug, Slug] = Field(default_factory=dict)
    knobs: Annotated[list[KnobFields], Field(min_length=1)]


def read_knobs(root: Path) -> KnobsFile:
    """The knobs of a catalog folder.

    Raises
    ------
    InvalidCatalogFile
        The file is missing or refused.
    """
    path = root / "fit" / "knobs.yaml"
    shown_as = "fit/knobs.yaml"
    if not path.is_file():
        raise InvalidCatalogFile(shown_as, "is missing: it says what a calibration may move")
    return validated(read_document(path, shown_as), KnobsFile)
