"""Which parallel layouts a model and an accelerator allow, and why the others do not."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from costsvc.engine.attention import CompressedAttention, FullAttention, LatentAttention
from costsvc.engine.specs import Calibration, DenseFfn, Deployment, Draft, GpuSpec, ModelSpec, MoeFfn
from costsvc.errors import UnsupportedLayout

LARGEST_SEARCHED_GPUS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the user fixed; None is free. `gpus` counts one replica."""

    gpus: int | None = None
    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    dp: int | None = None

    def allows(self, deployment: Deployment) -> bool:
        """Whether a layout keeps to all that was fixed."""
        pairs = (
            (self.gpus, deployment.gpus),
            (self.tp, deployment.tp),
            (self.pp, deployment.pp),
            (self.ep, deployment.ep),
            (self.dp, deployment.dp),
        )
        return all(wanted is None or wanted == has for wanted, has in pairs)


def refuse_impossible(model: ModelSpec, deployment: Deployment) -> None:
    """Raise UnsupportedLayout, with the sentence for the first rule a layout breaks."""
    complaint = _complaint(model, deployment)
    if complaint:
        raise UnsupportedLayout(complaint, field=complaint.split("=", 1)[0])


def possible_layouts(
    model: ModelSpec, gpu: GpuSpec, calibration: Calibration, base: Deployment, wanted: Wanted
) -> list[Deployment]:
    """Layouts within one scale-up domain or node, and across several by pipeline stages.

    Parameters
    ----------
    base : Deployment
        Its dtypes, mode and policies hold for all.

    Raises
    ------
    UnsupportedLayout
        Where what was fixed leaves none.
    """
    found = [
        deployment
        for deployment in _candidates(model, gpu, calibration, base, wanted)
        if wanted.allows(deployment) and _complaint(model, deployment) is None
    ]
    if found:
        return found
    asked = _asked(base, wanted)
    refuse_impossible(model, asked)
    unspoken = ", and speculation needs pp=1" if base.speculation else ""
    raise UnsupportedLayout(
        f"gpus={wanted.gpus} cannot be split as tp={wanted.tp or 'any'}, pp={wanted.pp or 'any'}, "
        f"dp={wanted.dp or 'any'}, ep={wanted.ep or 'any'} for {model.id}: gpus is tp x pp x dp, and ep divides "
        f"tp x dp{unspoken}. Leave some of them out, or choose factors that agree.",
        field="gpus",
    )


def _candidates(
    model: ModelSpec, gpu: GpuSpec, calibration: Calibration, base: Deployment, wanted: Wanted
) -> Iterator[Deployment]:
    domain = max(gpu.link_domain_gpus, int(calibration.node_gpus))
    moe = any(isinstance(group.ffn, MoeFfn) for group in model.groups)
    for tp in _choices(wanted.tp, _powers(min(domain, LARGEST_SEARCHED_GPUS)) + _odd(wanted.gpus, domain)):
        for dp in _choices(wanted.dp, _powers(LARGEST_SEARCHED_GPUS // tp) if moe else [1]):
            for pp in _choices(wanted.pp, _stages(model, tp * dp, domain, wanted)):
                for ep in _choices(wanted.ep, _expert_groups(tp, dp) if moe else [1]):
                    yield replace(base, tp=tp, pp=pp, ep=ep, dp=dp)


def _expert_groups(tp: int, dp: int) -> list[int]:
    """Whole experts on each rank; within one TP group also each expert split, as engines do by default."""
    return sorted({1, tp}) if dp == 1 else [tp * dp]


def _stages(model: ModelSpec, ranks: int, domain: int, wanted: Wanted) -> list[int]:
    """Pipeline stages: as many as fixed GPUs ask for, else none, or several of whole domains."""
    if wanted.gpus is not None:
        return [wanted.gpus // ranks] if wanted.gpus % ranks == 0 else []
    if ranks < domain:
        return [1]
    return [pp for pp in _powers(max(LARGEST_SEARCHED_GPUS // ranks, 1)) if pp <= model.layers]


def _choices(fixed: int | None, free: list[int]) -> list[int]:
    return [fixed] if fixed is not None else free


def _odd(gpus: int | None, domain: int) -> list[int]:
    """Widths that only an unusual number of GPUs asks for, such as 3 or 6."""
    if gpus is None:
        return []
    return [n for n in range(3, min(gpus, domain) + 1) if gpus % n == 0 and n & (n - 1)]


def _powers(limit: int) -> list[int]:
    return [2**exponent for exponent in range(max(limit, 1).bit_length()) if 2**exponent <= max(limit, 1)]


def _asked(base: Deployment, wanted: Wanted) -> Deployment:
    tp, pp, dp = wanted.tp or 1, wanted.pp or 1, wanted.dp or 1
    return replace(base, tp=tp, pp=pp, dp=dp, ep=wanted.ep or 1)


def draft_layout(draft: Draft, deployment: Deployment) -> Deployment:
    """How the proposing network lies on the ranks of its model: split like it, else whole on each rank."""
    ranks = deployment.tp * deployment.dp
    places = [(deployment.tp, 1), (deployment.tp, ranks), (1, 1), (1, deployment.dp)]
    layouts = [
        replace(deployment, tp=tp, ep=ep, weights=draft.weights, speculation=None) for tp, ep in places
    ]
    return next((one for one in layouts if _complaint(draft.model, one) is None), layouts[-1])


def _complaint(model: ModelSpec, deployment: Deployment) -> str | None:
    if deployment.speculation is not None and deployment.pp > 1:
        return (
            f"pp={deployment.pp} cuts {model.id} into stages, across which engines do not speculate. Choose pp=1, or "
            f"speculation=off."
        )
    if deployment.pp > model.layers:
        return f"pp={deployment.pp} is more stages than the {model.layers} layers of {model.id}. Lower pp."
    for group in model.groups:
        complaint = _attention_complaint(model, group.attention, deployment.tp) or _ffn_complaint(
            model, group.ffn, deployment
        )
        if complaint:
            return complaint
    return None


def _attention_complaint(model: ModelSpec, attention: object, tp: int) -> str | None:
    if isinstance(attention, LatentAttention | CompressedAttention) and attention.query_heads % tp:
        heads = attention.query_heads
        return f"tp={tp} does not divide the {heads} heads of {model.id}. {_divisors(heads)}"
    if not isinstance(attention, FullAttention):
        return None
    if attention.query_heads % tp:
        heads = attention.query_heads
        return f"tp={tp} does not divide the {heads} query heads of {model.id}. {_divisors(heads)}"
    if attention.kv_heads % tp and tp % attention.kv_heads:
        return (
            f"tp={tp} and the {attention.kv_heads} KV heads of {model.id} do not divide one another, "
            f"so engines cannot place them. {_divisors(attention.kv_heads)}"
        )
    return None


def _ffn_complaint(model: ModelSpec, ffn: DenseFfn | MoeFfn | None, deployment: Deployment) -> str | None:
    ranks = deployment.tp * deployment.dp
    if not isinstance(ffn, MoeFfn):
        return None
    if ranks % deployment.ep:
        return f"ep={deployment.ep} does not divide tp x dp = {ranks}. {_divisors(ranks, 'ep')}"
    if ffn.experts % deployment.ep:
        choices = _divisors(ffn.experts, "ep")
        return f"ep={deployment.ep} does not divide the {ffn.experts} experts of {model.id}. {choices}"
    if ffn.intermediate_size % (ranks // deployment.ep):
        return (
            f"ep={deployment.ep} leaves {ranks // deployment.ep} ranks to split each expert's "
            f"{ffn.intermediate_size} columns, which does not divide. Raise ep."
        )
    return None


def _divisors(number: int, name: str = "tp") -> str:
    choices = [str(n) for n in range(1, min(number, LARGEST_SEARCHED_GPUS) + 1) if number % n == 0]
    return f"Choose {name} from {', '.join(choices)}."
