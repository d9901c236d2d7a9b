"""One model on one accelerator type in one or more layouts, compiled to arrays for the formulas.

The first axis of every array is the layout, so that a search over layouts is one evaluation.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.attention import Attention, SlidingAttention
from costsvc.engine.layouts import draft_layout
from costsvc.engine.parameters import (
    PLAIN_LAYER_PRODUCTS,
    embedding_parameters,
    expert_parameters,
    layer_parameters,
    layer_products,
)
from costsvc.engine.specs import (
    Calibration,
    Deployment,
    Draft,
    DtypeSpec,
    GpuSpec,
    LayerGroup,
    ModelSpec,
    MoeFfn,
    Speculation,
    WindowRule,
)
from costsvc.engine.speculation import expected_tokens

Column = NDArray[np.float64]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class AttentionGroup:
    """Layers that share one mixer: how many the slowest and the fullest stage have."""

    attention: Attention
    stage_layers: Column
    cache_layers: Column
    kv_share: Column

    def some(self, here: list[int]) -> "AttentionGroup":
        """Those of the layouts at some places."""
        return AttentionGroup(
            self.attention, self.stage_layers[here], self.cache_layers[here], self.kv_share[here]
        )


@dataclass(frozen=True, slots=True)
class ExpertGroup:
    """Layers that share one MoE block, in the slowest stage; one expert's parameters."""

    ffn: MoeFfn
    stage_layers: Column
    expert_parameters: int

    def some(self, here: list[int]) -> "ExpertGroup":
        """Those of the layouts at some places."""
        return ExpertGroup(self.ffn, self.stage_layers[here], self.expert_parameters)


class PerLayout(ABC):
    """What is remembered of all layouts and can be cut to some, which is quicker than to make it anew."""

    __slots__ = ()

    @abstractmethod
    def some(self, layouts: list[int]) -> Self:
        """That of the layouts at some places."""


@dataclass(frozen=True, slots=True)
class Replica:
    """Layouts of one model on one accelerator. Columns are (layouts, 1), per accelerator where split.

    `plain_layers` are a stage's layers as so many plain ones of four matrix products: what is launched counts.
    `weight_bytes` counts those of `draft`, the network that proposes tokens, where there is one.
    """

    model: ModelSpec
    gpu: GpuSpec
    calibration: Calibration
    deployments: tuple[Deployment, ...]
    tp: Column
    pp: Column
    ep: Column
    dp: Column
    stage_layers: Column
    plain_layers: Column
    moe_layers: Column
    attention_parameters: Column
    ffn_parameters: Column
    router_parameters: Column
    head_parameters: Column
    weight_bytes: Column
    attention_groups: tuple[AttentionGroup, ...]
    expert_groups: tuple[ExpertGroup, ...]
    draft: "Replica | None" = None
    memo: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was computed from this replica alone, by what computes it: see `once_per_replica`."""

    @property
    def speculation(self) -> Speculation | None:
        """How tokens are proposed; all layouts share it."""
        return self.deployments[0].speculation

    @property
    def verified_tokens(self) -> float:
        """Tokens of each sequence that one step computes: the next, and the proposed ones. [token]"""
        return 1.0 if self.speculation is None else 1.0 + self.speculation.draft_tokens

    @property
    def tokens_per_step(self) -> float:
        """Mean tokens that one step yields to each sequence. [token]"""
        if self.speculation is None:
            return 1.0
        return expected_tokens(self.speculation.acceptance_share, self.speculation.draft_tokens)

    @property
    def gpus(self) -> Column:
        """Accelerators of one replica, per layout. [GPUs]"""
        return self.tp * self.pp * self.dp

    @property
    def kv(self) -> DtypeSpec:
        """Storage type of the cache; all layouts share it."""
        return self.deployments[0].kv

    def some(self, places: Sequence[int]) -> "Replica":
        """The layouts at some places."""
        key = "layouts", tuple(places)
        if key not in self.memo:
            here = list(places)
            columns: dict[str, Any] = {
                one.name: value[here]
                for one in fields(self)
                if isinstance(value := getattr(self, one.name), np.ndarray)
            }
            part = replace(
                self,
                **columns,
                deployments=tuple(self.deployments[place] for place in here),
                attention_groups=tuple(group.some(here) for group in self.attention_groups),
                expert_groups=tuple(group.some(here) for group in self.expert_groups),
                draft=None if self.draft is None else self.draft.some(here),
            )
            part.memo.update(
                (of, one.some(here)) for of, one in self.memo.items() if isinstance(one, PerLayout)
            )
            self.memo[key] = part
        found: Replica = self.memo[key]
        return found

    def only(self, place: int) -> "Replica":
        """The one layout at a place."""
        return self.some([place])

    def under(self, calibration: Calibration) -> "Replica":
        """The same layouts under other judgements."""
        return self if calibration is self.calibration else replace(self, calibration=calibration)


def once_per_replica(compute: Callable[[Replica], Result]) -> Callable[[Replica], Result]:
    """Remember what follows from a replica alone: a search asks for it at every step of its solution."""

    def remembered(replica: Replica) -> Result:
        if compute not in replica.memo:
            replica.memo[compute] = compute(replica)
        found: Result = replica.memo[compute]
        return found

    remembered.__doc__ = compute.__doc__
    return remembered


def stage_patterns(pattern: Sequence[int], stages: int) -> list[Sequence[int]]:
    """Cut layers into pipeline stages; what does not divide goes to stages before the last.

    Examples
    --------
    >>> [len(stage) for stage in stage_patterns([0] * 61, 2)]
    [31, 30]
    """
    base, rest = divmod(len(pattern), stages)
    sizes = [base] * stages
    for index in range(rest):
        sizes[stages - 2 - index if stages > 1 else 0] += 1
    edges = np.cumsum([0, *sizes])
    return [pattern[edges[i] : edges[i + 1]] for i in range(stages)]


def compile_replica(
    model: ModelSpec, gpu: GpuSpec, calibration: Calibration, deployments: Sequence[Deployment]
) -> Replica:
    """Arrays of a model in several layouts that share dtypes, mode and allocation."""
    counted = [layer_parameters(group, model.hidden_size) for group in model.groups]
    by_stages = {stages: StageCut(model, stages) for stages in {d.pp for d in deployments}}
    cuts = [by_stages[deployment.pp] for deployment in deployments]

    def column(values: Sequence[float]) -> Column:
        return np.asarray(values, dtype=np.float64)[:, None]

    tp = column([d.tp for d in deployments])
    slow = np.asarray([cut.slowest for cut in cuts], dtype=np.float64)
    held = {pp: held_layers(model, cut.fullest, calibration.window_rule) for pp, cut in by_stages.items()}
    full = np.asarray([held[deployment.pp] for deployment in deployments])
    shares = [_kv_share(group, tp) for group in model.groups]
    heads = column([c.attention_heads for c in counted])[:, 0]
    kv_share = np.concatenate(shares, axis=1)
    attention = slow @ heads / tp[:, 0]
    attention += (slow * kv_share) @ np.asarray([c.attention_kv for c in counted], dtype=np.float64)
    attention += slow @ np.asarray([c.attention_whole for c in counted], dtype=np.float64)
    speculation = deployments[0].speculation
    drafting = None if speculation is None else speculation.draft
    draft = None if drafting is None else _compile_draft(gpu, drafting, deployments)
    held_bytes = weight_bytes(model, deployments, cuts)
    return Replica(
        model=model,
        gpu=gpu,
        calibration=calibration,
        deployments=tuple(deployments),
        tp=tp,
        pp=column([d.pp for d in deployments]),
        ep=column([d.ep for d in deployments]),
        dp=column([d.dp for d in deployments]),
        stage_layers=slow.sum(axis=1, keepdims=True),
        plain_layers=slow @ column([layer_products(group) / PLAIN_LAYER_PRODUCTS for group in model.groups]),
        moe_layers=slow @ np.asarray([[float(isinstance(g.ffn, MoeFfn))] for g in model.groups]),
        attention_parameters=attention[:, None],
        ffn_parameters=slow @ column([c.ffn for c in counted]) / tp,
        router_parameters=slow @ column([c.router for c in counted]),
        head_parameters=embedding_parameters(model) / tp,
        weight_bytes=held_bytes if draft is None else held_bytes + draft.weight_bytes,
        attention_groups=tuple(
            AttentionGroup(group.attention, slow[:, [i]], full[:, [i]], shares[i])
            for i, group in enumerate(model.groups)
            if group.attention is not None
        ),
        expert_groups=tuple(
            ExpertGroup(group.ffn, slow[:, [i]], expert_parameters(group.ffn, model.hidden_size))
            for i, group in enumerate(model.groups)
            if isinstance(group.ffn, MoeFfn)
        ),
        draft=draft,
    )


def _compile_draft(gpu: GpuSpec, draft: Draft, deployments: Sequence[Deployment]) -> Replica:
    """The proposing network on the ranks of each layout.

    A module that shares the model's tables adds no weights for them, and its `extra_parameters` are the
    projection of the hidden state and the token vector together, which every token passes.
    """
    replica = compile_replica(
        draft.model, gpu, draft.calibration, [draft_layout(draft, deployment) for deployment in deployments]
    )
    if not draft.shares_tables:
        return replica
    tables = embedding_parameters(draft.model) / replica.tp * draft.weights.embedding.value_bytes
    return replace(
        replica,
        weight_bytes=replica.weight_bytes - tables,
        ffn_parameters=replica.ffn_parameters + draft.model.extra_parameters / replica.tp,
    )


def held_layers(model: ModelSpec, layers: Sequence[int], rule: WindowRule) -> list[float]:
    """Layers of each group that the cache is sized for: with grouped layers, padded to groups of one size.

    An engine that keeps one block table per layer group makes all groups as large as the smaller kind of
    layer, and pads the other kind's last group.

    Examples
    --------
    >>> from costsvc.engine.attention import FullAttention, SlidingAttention
    >>> heads = dict(query_heads=32, kv_heads=16, head_dim=128)
    >>> gemma = ModelSpec(
    ...     id="gemma-3-27b", hidden_size=5376, vocab_size=262208, tied_embeddings=True,
    ...     max_context_tokens=131072, pattern=(0,) * 52 + (1,) * 10, groups=(
    ...         LayerGroup(attention=SlidingAttention(window_tokens=1024, **heads), ffn=None),
    ...         LayerGroup(attention=FullAttention(**heads), ffn=None),
    ...     ),
    ... )
    >>> held_layers(gemma, [52, 10], "grouped")
    [60.0, 10.0]
    """
    sliding = [isinstance(group.attention, SlidingAttention) for group in model.groups]
    windowed = sum(n for n, slides in zip(layers, sliding, strict=True) if slides)
    whole = sum(
        n
        for n, slides, group in zip(layers, sliding, model.groups, strict=True)
        if not slides and group.attention is not None and group.attention.keeps_tokens
    )
    if rule != "grouped" or not windowed or not whole:
        return [float(n) for n in layers]
    size = min(windowed, whole)
    padded = {True: -(-windowed // size) * size, False: -(-whole // size) * size}
    actual = {True: windowed, False: whole}
    return [n * padded[slides] / actual[slides] for n, slides in zip(layers, sliding, strict=True)]


def _kv_share(group: LayerGroup, tp: Column) -> Column:
    return np.ones_like(tp) if group.attention is None else np.asarray(group.attention.kv_share(tp))


def _cached_values(group: LayerGroup, context_tokens: float) -> float:
    """Values that a layer holds of a context. [values]"""
    return 0.0 if group.attention is None else float(np.asarray(group.attention.kv_values(context_tokens)))


class StageCut:
    """Layers of each group in each pipeline stage: (stages, groups). The slowest stage, and what caches most."""

    def __init__(self, model: ModelSpec, stages: int) -> None:
        groups = range(len(model.groups))
        counts = [[stage.count(g) for g in groups] for stage in stage_patterns(model.pattern, stages)]
        cached = [_cached_values(group, model.max_context_tokens) for group in model.groups]
        self.counts = np.asarray(counts, dtype=np.float64)
        self.slowest = max(counts, key=lambda count: (sum(count), np.dot(count, cached)))
        # Where stages differ in kind, the heaviest may cache least: the most of both is on the safe side.
        self.fullest = max(counts, key=lambda count: np.dot(count, cached))


def weight_bytes(model: ModelSpec, deployments: Sequence[Deployment], cuts: Sequence[StageCut]) -> Column:
    """Weights of the heaviest stage of each layout on one accelerator. (layouts, 1) [B]

    Parameters
    ----------
    cuts : sequence of StageCut
        The stages of each layout.
    """
    plan = deployments[0].weights
    counted = [layer_parameters(group, model.hidden_size) for group in model.groups]
    tp = np.asarray([[float(d.tp)] for d in deployments])
    ranks = np.asarray([[float(d.tp * d.dp)] for d in deployments])
    parameters = np.asarray(
        [
            (c.attention_heads, c.attention_kv, c.attention_whole, c.ffn, c.experts, c.router + c.norms)
            for c in counted
        ],
        dtype=np.float64,
    )
    heads, kv, whole, ffn, experts, other = parameters.T
    kv_share = np.concatenate([_kv_share(group, tp) for group in model.groups], axis=1)
    layer_bytes = (heads / tp + kv * kv_share + whole) * plan.attention.value_bytes
    layer_bytes = layer_bytes + ffn / tp * plan.ffn.value_bytes + other * plan.other.value_bytes
    layer_bytes = layer_bytes + experts / ranks * plan.experts.value_bytes
    table = embedding_parameters(model) / tp[:, 0] * plan.embedding.value_bytes
    extra = (model.position_values + model.resident_parameters) + model.extra_parameters / tp[:, 0]
    heaviest = np.empty_like(tp)
    for row, cut in enumerate(cuts):
        stages = cut.counts @ layer_bytes[row]
        stages[0] += table[row] + extra[row] * plan.other.value_bytes
        if not (model.tied_embeddings and len(stages) == 1):
            stages[-1] += table[row]
        heaviest[row] = stages.max()
    return heaviest
