"""What runs on what: names to catalog entries and judgements, before any length, objective or price."""

from dataclasses import dataclass

from costsvc.db.entries import GpuEntry, ModelEntry, StackEntry
from costsvc.db.judgements import Resolved
from costsvc.db.snapshot import Catalog
from costsvc.engine.operators import is_weight_only
from costsvc.engine.specs import DtypeSpec, GpuSpec, ModelSpec, MoeFfn, WeightPlan
from costsvc.errors import UnsupportedLayout
from costsvc.quoting.kept import once_per_catalog

DEFAULT_STACK = "generic"
SIXTEEN_BIT = ("bf16", "fp16")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A model in its dtypes on a card under a stack. Cases are kept, so each is equal to itself alone."""

    model: ModelEntry
    gpu: GpuEntry
    stack: StackEntry
    weights: WeightPlan
    kv: DtypeSpec
    resolved: Resolved
    warnings: tuple[str, ...]


@once_per_catalog
def case_of(
    catalog: Catalog,
    model_name: str,
    gpu_name: str,
    stack_name: str | None,
    weights: str | None,
    kv: str | None,
) -> Case:
    """The case of these names; None is the stack or dtype that holds where a request names none.

    Raises
    ------
    NotInCatalog, Ambiguous
        A model, GPU, stack or dtype that the catalog does not hold.
    UnsupportedLayout
        The card or the stack cannot compute with a dtype, or nobody has said how fast it is.
    """
    model, gpu = catalog.model(model_name), catalog.gpu(gpu_name)
    stack = catalog.stack(stack_name or DEFAULT_STACK)
    plan = catalog.weight_plan_spec(weights or model.released_weights)
    cache = catalog.dtype(kv or _sixteen_bit(gpu.spec)).spec
    return Case(
        model=model,
        gpu=gpu,
        stack=stack,
        weights=plan,
        kv=cache,
        resolved=judged(catalog, model.spec, gpu, stack, plan, cache),
        warnings=_warnings(model, gpu, plan),
    )


def judged(
    catalog: Catalog, model: ModelSpec, gpu: GpuEntry, stack: StackEntry, weights: WeightPlan, kv: DtypeSpec
) -> Resolved:
    """The judgements of a network on a card.

    Raises
    ------
    UnsupportedLayout
        The card or the stack cannot compute with a dtype, or nobody has said how fast it is.
    """
    refuse_without_kernel(gpu, stack, weights)
    _refuse_without_judgement(catalog, weights, kv)
    return catalog.judgements.calibration(gpu.spec, stack, architecture_of(model), weights, kv)


def architecture_of(model: ModelSpec) -> str:
    """`moe` where any layer routes, else `dense`: a scope of judgements."""
    return "moe" if any(isinstance(group.ffn, MoeFfn) for group in model.groups) else "dense"


def refuse_without_kernel(gpu: GpuEntry, stack: StackEntry, weights: WeightPlan) -> None:
    """Raise UnsupportedLayout where the card or the stack cannot compute with a dtype of the plan."""
    for dtype in {weights.attention, weights.ffn, weights.experts, weights.embedding, weights.other}:
        missing = gpu.spec.arithmetic_of(dtype) is None
        if missing or (dtype.id, gpu.spec.generation) in stack.without_kernel:
            rates = ", ".join(sorted(gpu.spec.dense_flops_per_s))
            raise UnsupportedLayout(
                f"{stack.name} has no kernel for {dtype.id} weights on {gpu.name} ({gpu.spec.generation}), whose "
                f"matrix units compute {rates}. Choose another weights dtype or another GPU.",
                field="weights",
            )


def _refuse_without_judgement(catalog: Catalog, weights: WeightPlan, kv: DtypeSpec) -> None:
    stored = {weights.attention, weights.ffn, weights.experts, weights.embedding, weights.other}
    wanted = (("weights", "gemm_mfu_share", stored), ("kv", "attention_decode_mbu_share", {kv}))
    for parameter, judgement, dtypes in wanted:
        known = catalog.judgements.dtypes_of(judgement)
        unknown = sorted(dtype.id for dtype in dtypes if dtype.id not in known)
        if unknown:
            raise UnsupportedLayout(
                f"{parameter} is stored as {', '.join(unknown)}, but the calibration has no {judgement} for it. "
                f"Choose one of {', '.join(known)}, or add the judgement.",
                field=parameter,
            )


def _sixteen_bit(gpu: GpuSpec) -> str:
    return next((rate for rate in SIXTEEN_BIT if rate in gpu.dense_flops_per_s), SIXTEEN_BIT[0])


def _warnings(model: ModelEntry, gpu: GpuEntry, weights: WeightPlan) -> tuple[str, ...]:
    stored = {weights.attention, weights.ffn, weights.experts}
    widened = sorted(dtype.id for dtype in stored if is_weight_only(gpu.spec, dtype))
    found = []
    if widened:
        found.append(
            f"{gpu.name} computes {', '.join(widened)} weights in 16 bit: they save memory and bandwidth, not "
            f"arithmetic."
        )
    if gpu.spec_check != "verified":
        fields = f" ({', '.join(gpu.fields_not_confirmed)})" if gpu.fields_not_confirmed else ""
        found.append(f"The facts of {gpu.name} are {gpu.spec_check}{fields}; check them before a decision.")
    if model.parameter_difference_reason:
        found.append(f"Parameter count of {model.name}: {model.parameter_difference_reason}")
    return tuple(found)
