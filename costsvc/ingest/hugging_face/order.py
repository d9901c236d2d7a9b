"""The kind of each layer, by whichever of many spellings a configuration states it in."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from costsvc.ingest.hugging_face.family import Family
from costsvc.ingest.hugging_face.fields import Fields

FULL: Final = "full"
SLIDING: Final = "sliding"
CHUNKED: Final = "chunked"
RECURRENT: Final = "recurrent"
# A layer that is one feed-forward block, where a configuration counts those as layers.
EXPERTS: Final = "experts"
DENSE: Final = "dense"

Kinds: TypeAlias = list[str]

_WORDS: Final[Mapping[str, str]] = {
    "full_attention": FULL,
    "attention": FULL,
    "global": FULL,
    "deepseek_sparse_attention": FULL,
    "indexed_attention": FULL,
    "sliding_attention": SLIDING,
    "local": SLIDING,
    "chunked_attention": CHUNKED,
    "linear_attention": RECURRENT,
    "mamba": RECURRENT,
    "mamba2": RECURRENT,
    "conv": RECURRENT,
    "moe": EXPERTS,
    "mlp": DENSE,
}
_LETTERS: Final[Mapping[str, str]] = {"M": RECURRENT, "*": FULL, "E": EXPERTS, "-": DENSE}
_WINDOW_LETTERS: Final[Mapping[str, str]] = {"L": SLIDING, "G": FULL}


def kinds_of_layers(fields: Fields, family: Family, layers: int) -> Kinds:
    """The kind of each layer, in order."""
    for rule in family.order:
        found = rule(fields, layers) if callable(rule) else _RULES[rule](fields, layers)
        if found is not None:
            spellings = (name for name in family.order if isinstance(name, str) and name != "sliding_window")
            fields.ignore(*spellings, "use_sliding_window", "max_window_layers")
            return found
    if not family.otherwise:
        fields.missing(*(rule for rule in family.order if isinstance(rule, str)))
    fields.note("layers", f"{layers} * {family.otherwise}", because="the model class builds all alike")
    return [family.otherwise] * layers


def _words(name: str) -> Callable[[Fields, int], Kinds | None]:
    def rule(fields: Fields, layers: int) -> Kinds | None:
        words = fields.per_layer(name, layers, str)
        if words is None:
            return None
        if unknown := sorted(set(words) - set(_WORDS)):
            fields.refuse((name,), f"of '{unknown[0]}', a kind of layer that has no formula here")
        fields.note("layers", f"{layers} kinds in order", name)
        return [_WORDS[word] for word in words]

    return rule


def _letters(fields: Fields, layers: int) -> Kinds | None:
    pattern = fields.text("hybrid_override_pattern")
    if pattern is None:
        return None
    if len(pattern) != layers or set(pattern) - set(_LETTERS):
        fields.refuse(
            ("hybrid_override_pattern",),
            f"'{pattern[:40]}'; it must have one of {' '.join(_LETTERS)} for each of the {layers} layers",
        )
    fields.note("layers", pattern, "hybrid_override_pattern")
    return [_LETTERS[letter] for letter in pattern]


def _full_every(name: str, others: str) -> Callable[[Fields, int], Kinds | None]:
    """Every n-th layer is full."""

    def rule(fields: Fields, layers: int) -> Kinds | None:
        value = fields.any(name)
        if isinstance(value, str):
            return _window_letters(fields, name, value, layers)
        every = fields.count_or_none(name)
        if every is None:
            return None
        return [FULL if (layer + 1) % every == 0 else others for layer in range(layers)]

    return rule


def _window_letters(fields: Fields, name: str, pattern: str, layers: int) -> Kinds:
    if not pattern or set(pattern) - set(_WINDOW_LETTERS):
        fields.refuse((name,), f"'{pattern[:40]}'; it must be of L (sliding) and G (full)")
    fields.note("layers", pattern, name)
    return [_WINDOW_LETTERS[pattern[layer % len(pattern)]] for layer in range(layers)]


def sliding_but_every(nth: int) -> Callable[[Fields, int], Kinds | None]:
    """Where the configuration is silent and the class makes every n-th layer full, the others sliding."""

    def rule(fields: Fields, layers: int) -> Kinds | None:
        if not fields.value("sliding_window"):
            return None
        fields.note(
            "layers", f"every {nth}th full, the others sliding", because="the default of the model class"
        )
        return [SLIDING if (layer + 1) % nth else FULL for layer in range(layers)]

    return rule


def recurrent_but_every(nth: int) -> Callable[[Fields, int], Kinds | None]:
    """Where the configuration is silent and the class makes every n-th layer full, the others recurrent."""

    def rule(fields: Fields, layers: int) -> Kinds | None:
        fields.note(
            "layers", f"every {nth}th full, the others recurrent", because="the default of the model class"
        )
        return [RECURRENT if (layer + 1) % nth else FULL for layer in range(layers)]

    return rule


def _period(fields: Fields, layers: int) -> Kinds | None:
    period = fields.count_or_none("attn_layer_period")
    if period is None:
        return None
    offset = fields.count("attn_layer_offset", least=0)
    return [FULL if layer % period == offset else RECURRENT for layer in range(layers)]


def _listed(name: str) -> Callable[[Fields, int], Kinds | None]:
    def rule(fields: Fields, layers: int) -> Kinds | None:
        full = fields.indices(name, layers)
        if full is None:
            return None
        fields.note("layers", f"full at {sorted(full)}", name)
        return [FULL if layer in full else RECURRENT for layer in range(layers)]

    return rule


def _flags(name: str, on: str, off: str) -> Callable[[Fields, int], Kinds | None]:
    def rule(fields: Fields, layers: int) -> Kinds | None:
        flags = fields.per_layer(name, layers, int) if fields.value(name) else None
        if flags is None:
            fields.ignore(name)
            return None
        if set(flags) - {0, 1}:
            fields.refuse((name,), "a list of other numbers than 0 and 1")
        fields.note("layers", f"{sum(flags)} {on}, {layers - sum(flags)} {off}", name)
        return [on if flag else off for flag in flags]

    return rule


def _linear_attn_config(fields: Fields, layers: int) -> Kinds | None:
    section = fields.section("linear_attn_config")
    if section is None:
        return None
    full, linear = section.any("full_attn_layers"), section.any("kda_layers")
    listed = [*full, *linear] if isinstance(full, list) and isinstance(linear, list) else []
    if sorted(map(str, listed)) != sorted(str(number) for number in range(1, layers + 1)):
        fields.refuse(
            ("linear_attn_config",),
            f"of lists full_attn_layers and kda_layers that do not name each of the layers 1 to {layers} once",
        )
    fields.note("layers", f"full at {full} of {layers}", "linear_attn_config")
    return [FULL if number in full else RECURRENT for number in range(1, layers + 1)]


def _windowed(*, unless_told: bool) -> Callable[[Fields, int], Kinds | None]:
    """A window of all layers from the first that has it; `unless_told`: the class uses it without a flag."""

    def rule(fields: Fields, layers: int) -> Kinds | None:
        stated = fields.value("sliding_window") is not None
        if not stated or not fields.flag("use_sliding_window", default=unless_told):
            fields.ignore("sliding_window", "use_sliding_window", "max_window_layers")
            return None
        first = fields.count_or_none("max_window_layers", least=0) or 0
        return [SLIDING if layer >= first else FULL for layer in range(layers)]

    return rule


def windowed_as_stated(fields: Fields, layers: int) -> Kinds | None:
    """A window of all layers where the class has one unless the configuration says null."""
    fields.must_state("sliding_window")
    return _windowed(unless_told=True)(fields, layers)


def _chunks(fields: Fields, layers: int) -> Kinds | None:
    fields.must_state("attention_chunk_size")
    if fields.count_or_none("attention_chunk_size") is None:
        fields.ignore("no_rope_layers", "nope_layer_interval", "no_rope_layer_interval")
        return None
    by_list = _flags("no_rope_layers", CHUNKED, FULL)(fields, layers)
    if by_list is not None:
        return by_list
    every = fields.count_or_none("no_rope_layer_interval", "nope_layer_interval") or 4
    return [FULL if (layer + 1) % every == 0 else CHUNKED for layer in range(layers)]


_RULES: Final[Mapping[str, Callable[[Fields, int], Kinds | None]]] = {
    "layer_types": _words("layer_types"),
    "layers_block_type": _words("layers_block_type"),
    "hybrid_override_pattern": _letters,
    "full_attention_interval": _full_every("full_attention_interval", RECURRENT),
    "sliding_window_pattern": _full_every("sliding_window_pattern", SLIDING),
    "_sliding_window_pattern": _full_every("_sliding_window_pattern", SLIDING),
    "attn_layer_period": _period,
    "attn_layer_indices": _listed("attn_layer_indices"),
    "full_attn_idxs": _listed("full_attn_idxs"),
    "hybrid_layer_pattern": _flags("hybrid_layer_pattern", SLIDING, FULL),
    "attn_type_list": _flags("attn_type_list", FULL, RECURRENT),
    "linear_attn_config": _linear_attn_config,
    "sliding_window": _windowed(unless_told=True),
    "use_sliding_window": _windowed(unless_told=False),
    "attention_chunk_size": _chunks,
}
