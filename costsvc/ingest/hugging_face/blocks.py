"""The feed-forward block of each layer: dense, or routed experts beside shared ones."""

from collections.abc import Callable, Mapping
from typing import Final

from costsvc.engine.specs import DenseFfn, Ffn, MoeFfn
from costsvc.ingest.hugging_face.family import Family, Sizes, form
from costsvc.ingest.hugging_face.fields import Fields
from costsvc.ingest.hugging_face.order import DENSE, EXPERTS, Kinds

_EXPERTS: Final = (
    "num_experts",
    "num_local_experts",
    "n_routed_experts",
    "num_routed_experts",
    "moe_num_experts",
)
_CHOSEN: Final = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "num_selected_experts",
    "moe_top_k",
    "moe_topk",
    "moe_k",
    "top_k_experts",
)
_SHARED: Final = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
_MOST_EXPERTS: Final = 100_000


def blocks(fields: Fields, family: Family, sizes: Sizes, kinds: Kinds) -> list[Ffn | None]:
    """The block of each layer, in order; None where a layer is a mixer alone."""
    if EXPERTS in kinds or DENSE in kinds:
        alone: Mapping[str, Ffn] = {
            EXPERTS: _moe(fields, family) if EXPERTS in kinds else DenseFfn(intermediate_size=0),
            DENSE: _dense(fields, family, sizes) if DENSE in kinds else DenseFfn(intermediate_size=0),
        }
        fields.ignore("intermediate_size")
        return [alone.get(kind) for kind in kinds]
    if family.blocks.width == ():
        return [None] * len(kinds)
    with_experts = layers_with_experts(fields, family, sizes)
    dense = None if all(with_experts) else _dense(fields, family, sizes)
    moe = _moe(fields, family) if any(with_experts) else None
    if dense is None:
        fields.ignore(*family.blocks.dense_width, "intermediate_size")
    built = [moe if routed else dense for routed in with_experts]
    return _widened(fields, built)


def layers_with_experts(fields: Fields, family: Family, sizes: Sizes) -> list[bool]:
    """Which layers have routed experts."""
    rule = family.blocks.experts
    if not rule:
        return [False] * sizes.layers
    if rule != "flagged":
        fields.must_state(*_EXPERTS)
    if (fields.count_or_none(*_EXPERTS, least=0, most=_MOST_EXPERTS) or 0) <= 1:
        fields.ignore(*_EXPERTS, *_SHARED, *_CHOSEN, *family.blocks.width)
        return [False] * sizes.layers
    return _RULES[rule](fields, sizes.layers)


def _dense(fields: Fields, family: Family, sizes: Sizes) -> DenseFfn:
    said = family.blocks
    stated = next(
        (value for name in said.dense_width if (value := fields.count_or_none(name)) is not None), None
    )
    if stated is None and said.dense_ratio is not None:
        stated = said.dense_ratio * sizes.hidden_size
        fields.note(
            said.dense_width[0], stated, because=f"not stated; {said.dense_ratio} * hidden_size in the class"
        )
    if stated is None:
        fields.missing(*said.dense_width)
    if said.dense_size is not None:
        stated = said.dense_size(fields, stated)
        fields.note(
            "intermediate_size", stated, because="computed from the stated one as the model class does"
        )
    return DenseFfn(intermediate_size=stated, gated=said.gated, bias=form(fields, said.bias))


def _moe(fields: Fields, family: Family) -> MoeFfn:
    said = family.blocks
    experts = fields.count(*_EXPERTS, most=_MOST_EXPERTS)
    chosen = _of_all_layers(fields, _CHOSEN, most=experts)
    width = _of_all_layers(fields, said.width)
    return MoeFfn(
        experts=experts,
        experts_per_token=chosen,
        intermediate_size=width,
        shared_intermediate_size=_shared_width(fields, family, width),
        latent_size=fields.count_or_none("moe_latent_size", "routed_expert_hidden_size"),
        gated=said.gated,
        bias=form(fields, said.bias),
        router_bias=form(fields, said.router_bias),
    )


def _of_all_layers(fields: Fields, names: tuple[str, ...], most: int = 1_000_000_000) -> int:
    """A number, or a list of one per layer that are all the same."""
    stated = next((name for name in names if isinstance(fields.value(name), list)), None)
    if stated is None:
        for name in names:
            if (value := fields.count_or_none(name, most=most)) is not None:
                fields.ignore(*names)
                return value
        fields.missing(*names)
    values = fields.any(stated)
    if (
        not values
        or any(type(one) is not int or not 1 <= one <= most for one in values)
        or len(set(values)) > 1
    ):
        fields.refuse((stated,), "a list of different numbers; one for all layers can be read")
    fields.note(stated, values[0], stated)
    return int(values[0])


def _shared_width(fields: Fields, family: Family, width: int) -> int:
    """The inner size of all shared experts together; 0 where there are none."""
    said = family.blocks
    if said.shares:
        fields.must_state(*(said.shared or _SHARED))
    listed = tuple(name for name in _SHARED if isinstance(fields.value(name), list))
    count = (
        _of_all_layers(fields, listed)
        if listed
        else fields.count_or_none(*_SHARED, least=0, most=_MOST_EXPERTS)
    )
    whole = fields.first_count(*said.shared, least=0) if said.shared else None
    return (count or 0) * width if whole is None else whole


def _widened(fields: Fields, built: list[Ffn | None]) -> list[Ffn | None]:
    """Layers that reuse another's cache have a block of twice the width, where a flag says so (Gemma 4)."""
    if not fields.on("use_double_wide_mlp"):
        return built
    first = len(built) - (fields.count_or_none("num_kv_shared_layers", least=0) or 0)
    return [
        DenseFfn(intermediate_size=2 * one.intermediate_size, gated=one.gated, bias=one.bias)
        if layer >= first and isinstance(one, DenseFfn)
        else one
        for layer, one in enumerate(built)
    ]


def _always(fields: Fields, layers: int) -> list[bool]:
    return [True] * layers


def _first_dense(fields: Fields, layers: int) -> list[bool]:
    """Dense at first (`first_k_dense_replace`), then every n-th, or as a list says."""
    first = fields.count_or_none("first_k_dense_replace", "num_dense_layers", least=0, most=layers)
    found = _listed(fields, layers)
    if found is None:
        fields.must_state("first_k_dense_replace", "num_dense_layers", "mlp_layer_types")
        every = fields.count_or_none("moe_layer_freq") or 1
        found = [layer >= (first or 0) and layer % every == 0 for layer in range(layers)]
    elif any(found[: first or 0]):
        fields.refuse(
            ("first_k_dense_replace", "num_dense_layers"), f"{first}, but a list puts experts before that"
        )
    fields.note("layers with experts", sum(found), because=f"{layers - sum(found)} of {layers} are dense")
    return found


def _listed(fields: Fields, layers: int) -> list[bool] | None:
    """The layers with experts by a list of words or of ones; None where there is none."""
    if isinstance(fields.value("moe_layer_freq"), list):
        fields.ignore("mlp_layer_types")
        return [bool(flag) for flag in fields.per_layer("moe_layer_freq", layers, int) or ()]
    words = fields.per_layer("mlp_layer_types", layers, str)
    if words is not None and (unknown := set(words) - {"dense", "sparse"}):
        fields.refuse(("mlp_layer_types",), f"of '{min(unknown)}'; known are dense and sparse")
    if words is None:
        return None
    fields.ignore("moe_layer_freq")
    return [word == "sparse" for word in words]


def _step(fields: Fields, layers: int) -> list[bool]:
    """Every n-th layer has experts (`decoder_sparse_step`), but for `mlp_only_layers`."""
    step = fields.count_or_none("decoder_sparse_step") or 1
    without = fields.indices("mlp_only_layers", layers) or frozenset()
    return [(layer + 1) % step == 0 and layer not in without for layer in range(layers)]


def _interleaved(fields: Fields, layers: int) -> list[bool]:
    fields.must_state("interleave_moe_layer_step", "moe_layers")
    listed = fields.indices("moe_layers", layers)
    step = fields.count_or_none("interleave_moe_layer_step") or 1
    if listed is not None:
        return [layer in listed for layer in range(layers)]
    return [(layer + 1) % step == 0 for layer in range(layers)]


def _period(fields: Fields, layers: int) -> list[bool]:
    period, offset = fields.count("expert_layer_period"), fields.count("expert_layer_offset", least=0)
    return [layer % period == offset for layer in range(layers)]


def _range(fields: Fields, layers: int) -> list[bool]:
    """From one layer to another, every n-th (ERNIE)."""
    first = fields.count("moe_layer_start_index", least=0)
    last = fields.count_or_none("moe_layer_end_index", least=0)
    every = fields.count_or_none("moe_layer_interval") or 1
    end = layers - 1 if last is None else last
    return [first <= layer <= end and (layer + 1) % every == 0 for layer in range(layers)]


def _flagged(fields: Fields, layers: int) -> list[bool]:
    """All layers, if a flag turns experts on (Gemma 4)."""
    return [fields.on("enable_moe_block")] * layers


_RULES: Final[Mapping[str, Callable[[Fields, int], list[bool]]]] = {
    "always": _always,
    "first_dense": _first_dense,
    "step": _step,
    "interleaved": _interleaved,
    "period": _period,
    "range": _range,
    "flagged": _flagged,
}
