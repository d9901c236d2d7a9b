"""A configuration to the shapes of a model: its layers, its tables, and what they count."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from costsvc.engine.attention import Attention, RecurrentState
from costsvc.engine.parameters import layer_parameters
from costsvc.engine.specs import Ffn, LayerGroup, MoeFfn
from costsvc.errors import ConfigNotUnderstood
from costsvc.ingest.hugging_face.blocks import blocks
from costsvc.ingest.hugging_face.families import FAMILIES
from costsvc.ingest.hugging_face.family import Family, Prediction, Sizes, form
from costsvc.ingest.hugging_face.fields import Fields, shown
from costsvc.ingest.hugging_face.ignored import may_decide
from costsvc.ingest.hugging_face.mixers import mixers
from costsvc.ingest.hugging_face.order import kinds_of_layers
from costsvc.ingest.layers import MOST_LAYERS

_HIDDEN: Final = ("hidden_size", "n_embd", "d_model", "n_embed")
_LAYERS: Final = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_CONTEXTS: Final = (
    "max_position_embeddings",
    "max_seq_len",
    "n_positions",
    "model_max_length",
    "max_sequence_length",
    "seq_length",
)
_ONE_PER_LAYER: Final = ("layer_types", "layers_block_type", "hybrid_override_pattern")
_LARGEST_HIDDEN: Final = 10_000_000
_LONGEST_CONTEXT: Final = 1_000_000_000

Block = TypeVar("Block", bound=Attention | Ffn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """What a configuration says of a text decoder."""

    sizes: Sizes
    tied: bool
    max_context_tokens: int | None
    layers: tuple[tuple[Attention | None, Ffn | None], ...]
    norm_vectors: int
    position_values: int
    extra_parameters: int
    mtp_parameters: int
    mtp_not_counted: str | None


def family_of(model_type: str) -> Family:
    """The family that a `model_type` belongs to.

    Raises
    ------
    ConfigNotUnderstood
        None is known; the nearest are named.
    """
    if model_type in FAMILIES:
        return FAMILIES[model_type]
    nearest = get_close_matches(model_type, FAMILIES, n=3)
    hint = f"Nearest known: {', '.join(nearest)}." if nearest else "Nothing known is close to it."
    raise ConfigNotUnderstood(
        f"There is no formula for models of type '{model_type}'. {hint} If its layers are built exactly as those of a "
        f"known type, name that type as built_like; otherwise write a catalog file of its shapes (docs/extending.md).",
        field="model_type",
        details={"nearest": nearest, "known": sorted(FAMILIES)},
    )


def shapes_of(fields: Fields, family: Family, whole: Fields) -> Shapes:
    """Read every shape.

    Raises
    ------
    ConfigNotUnderstood
        A decisive field is missing, contradicts another, or sounds decisive and has no meaning here.
    """
    _is_a_decoder(fields)
    sizes = Sizes(
        hidden_size=fields.count(*_HIDDEN, most=_LARGEST_HIDDEN),
        vocab_size=_first(fields, ("padded_vocab_size", "vocab_size")) or fields.count("vocab_size"),
        layers=_number_of_layers(fields),
    )
    kinds = kinds_of_layers(fields, family, sizes.layers)
    layer_mixers = mixers(fields, family, sizes, kinds)
    layer_blocks = blocks(fields, family, sizes, kinds)
    layers = tuple(zip(layer_mixers, layer_blocks, strict=True))
    norms = family.norm_vectors
    norm_vectors = norms(fields) if callable(norms) else form(fields, norms)
    context = _first(fields, _CONTEXTS)
    position_values = 0
    if family.position_offset is not None:
        if context is None:
            fields.missing(*_CONTEXTS)
        position_values = (context + family.position_offset) * sizes.hidden_size
    mtp, not_counted = _prediction(fields, family, sizes, layers, norm_vectors)
    fields.ignore(*family.ignored)
    return Shapes(
        sizes=sizes,
        tied=_tied(fields, family, whole),
        max_context_tokens=context,
        layers=layers,
        norm_vectors=norm_vectors,
        position_values=position_values,
        extra_parameters=_extra(fields, family, sizes, layers),
        mtp_parameters=mtp,
        mtp_not_counted=not_counted,
    )


def _number_of_layers(fields: Fields) -> int:
    stated = fields.count_or_none(*_LAYERS, most=MOST_LAYERS)
    if stated is not None:
        return stated
    listed = next((name for name in _ONE_PER_LAYER if isinstance(fields.value(name), list | str)), None)
    if listed is None or not 0 < (layers := len(fields.value(listed))) <= MOST_LAYERS:
        fields.missing(*_LAYERS)
    fields.note(_LAYERS[0], layers, because=f"not stated; {fields.placed(listed)} lists so many")
    return layers


def _is_a_decoder(fields: Fields) -> None:
    for name, what in (
        ("is_encoder_decoder", "an encoder beside the decoder"),
        ("add_cross_attention", "cross-attention"),
        ("cross_attention_layers", "cross-attention"),
        ("block_configs", "layers that each have sizes of their own"),
    ):
        if fields.any(name):
            raise ConfigNotUnderstood(
                f"The configuration states {fields.placed(name)}: a model with {what} has no formula here. Write a "
                f"catalog file of its shapes, if the catalog's kinds of layers can say them (docs/extending.md).",
                field=fields.placed(name),
            )


def _first(fields: Fields, names: Sequence[str]) -> int | None:
    """The first of several fields that is stated; others may differ."""
    for name in names:
        if (value := fields.count_or_none(name, most=_LONGEST_CONTEXT)) is not None:
            return value
    return None


def _tied(fields: Fields, family: Family, whole: Fields) -> bool:
    """Whether the token table is the head too, as the whole model or its text section says."""
    names = ("tie_word_embeddings", "tie_embedding")
    said = {place.placed(names[0]): place.any(*names) for place in (whole, fields)}
    stated = {name: value for name, value in said.items() if value is not None}
    if len(set(map(repr, stated.values()))) > 1:
        both = " and ".join(f"{name} is {shown(value)}" for name, value in stated.items())
        raise ConfigNotUnderstood(
            f"The configuration contradicts itself: {both}. Keep the one that the weights have.",
            field=names[0],
        )
    for place in (whole, fields):
        if place.placed(names[0]) in stated:
            return place.flag(*names, default=False)
    if family.tied is None:
        fields.missing(*names)
    return fields.flag(*names, default=family.tied)


def _extra(
    fields: Fields, family: Family, sizes: Sizes, layers: Sequence[tuple[Attention | None, Ffn | None]]
) -> int:
    """Text parameters that the shapes do not count: later norms, biases of the head, gates. [parameters]"""
    norms = (family.final_norm_vectors - 1) * sizes.hidden_size
    head = sizes.vocab_size if form(fields, family.head_bias) else 0
    gated = sum(_has_gate(family, block) for _, block in layers)
    special = family.further(fields, sizes) if family.further else 0
    return norms + head + gated * sizes.hidden_size + special


def _has_gate(family: Family, block: Ffn | None) -> bool:
    return family.blocks.shared_gate and isinstance(block, MoeFfn) and block.shared_intermediate_size > 0


def _prediction(
    fields: Fields,
    family: Family,
    sizes: Sizes,
    layers: Sequence[tuple[Attention | None, Ffn | None]],
    norm_vectors: int,
) -> tuple[int, str | None]:
    """Parameters of the prediction layers, and why they were not counted where they were not."""
    said = family.mtp
    stated = next(
        (
            name
            for name in ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
            if name in fields
        ),
        None,
    )
    if said is None:
        fields.ignore(
            "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "mtp_transformer_layers"
        )
        if stated and fields.value(stated):
            return (
                0,
                f"{fields.placed(stated)} is {fields.value(stated)}, but not how released files hold such layers",
            )
        return 0, None
    count = next(
        (
            value
            for name in said.counted_by
            if (value := fields.count_or_none(name, least=0, most=100)) is not None
        ),
        0,
    )
    if not count:
        return 0, None
    h = sizes.hidden_size
    own = sum(layer_parameters(group, h).total for group in _prediction_groups(said, layers, norm_vectors))
    gate = h if _has_gate(family, layers[-1][1]) else 0
    each = own + gate + said.joins * h * h + said.norm_vectors * h + said.tables * sizes.vocab_size * h
    fields.note(
        "mtp_parameters", count * each, because=f"{count} prediction layers of the shapes of the last layers"
    )
    return count * each, None


def _prediction_groups(
    said: Prediction, layers: Sequence[tuple[Attention | None, Ffn | None]], norm_vectors: int
) -> list[LayerGroup]:
    """The layers of one prediction step: of full attention, and of the last block (or the first, if dense)."""
    attending = [mixer for mixer, _ in layers if mixer is not None and not isinstance(mixer, RecurrentState)]
    with_blocks = [block for _, block in layers if block is not None]
    mixer, block = attending[0], with_blocks[0 if said.dense else -1]
    if any(one is None for pair in layers for one in pair):
        return [
            LayerGroup(attention=mixer, ffn=None, norm_vectors=norm_vectors),
            LayerGroup(attention=None, ffn=block, norm_vectors=norm_vectors),
        ]
    return [LayerGroup(attention=mixer, ffn=block, norm_vectors=norm_vectors)]


def unused(fields: Fields, harmless: Callable[[str], bool]) -> tuple[str, ...]:
    """What no formula asked for; a name that sounds like a shape is refused."""
    left = [name for name in fields.unread() if not harmless(name)]
    if decisive := [fields.placed(name) for name in left if may_decide(name)]:
        raise ConfigNotUnderstood(
            f"The configuration states {', '.join(decisive)}, which may change the shapes and which no formula of this "
            f"model type asks for. Remove the fields that its class does not read; if it reads them, the model is "
            f"built differently: write a catalog file of its shapes (docs/extending.md).",
            field=decisive[0],
            details={"fields": decisive},
        )
    return tuple(fields.placed(name) for name in left)


def named(blocks_in_order: Sequence[Block | None]) -> tuple[dict[str, Block], list[str | None]]:
    """Distinct blocks by a name of their kind, and the name of each layer's."""
    names: dict[Any, str] = {}
    for block in blocks_in_order:
        if block is not None and block not in names:
            kind = _kind(block)
            taken = sum(name == kind or name.startswith(f"{kind}_") for name in names.values())
            names[block] = kind if not taken else f"{kind}_{taken + 1}"
    return {name: block for block, name in names.items()}, [
        None if block is None else names[block] for block in blocks_in_order
    ]


_KINDS: Final[Mapping[str, str]] = {"dense": "mlp", "moe": "moe"}


def _kind(block: Attention | Ffn) -> str:
    kind = block.variant if isinstance(block, RecurrentState) else _KINDS.get(block.kind, block.kind)
    return f"{kind}_reusing" if getattr(block, "shares_kv", False) else kind
