"""A `config.json` to a model of the catalog: the same checked form that its files have."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from pydantic import ValidationError

from costsvc.engine.parameters import parameter_count
from costsvc.engine.specs import MoeFfn
from costsvc.errors import ConfigNotUnderstood
from costsvc.ingest.entry import CoveringSource, SourceFields
from costsvc.ingest.hugging_face.families import FAMILIES
from costsvc.ingest.hugging_face.fields import Fields, Inference
from costsvc.ingest.hugging_face.files import stated
from costsvc.ingest.hugging_face.given import GivenFacts, ImportedConfig
from costsvc.ingest.hugging_face.ignored import changes_nothing, is_of_other_media
from costsvc.ingest.hugging_face.quantization import weight_plan
from costsvc.ingest.hugging_face.shapes import Shapes, family_of, named, shapes_of, unused
from costsvc.ingest.hugging_face.towers import TOWERS, tower_parameters
from costsvc.ingest.layers import spelled
from costsvc.ingest.models import ModelFile

_TEXT_SECTIONS: Final = ("text_config", "llm_config", "language_config")
_GENERATING: Final = re.compile(r"(?:ForCausalLM|ForConditionalGeneration|LMHeadModel|ChatGLMModel)$")
_COVERED_BY_CONFIG: Final = (
    "released_weights", "max_context_tokens", "hidden_size", "vocab_size", "tied_embeddings", "layers", "attention",
    "ffn", "norm_vectors",
)  # fmt: skip
_COUNTED: Final = (
    "position_values",
    "extra_parameters",
    "resident_parameters",
    "mtp_parameters",
    "published_counts_also",
)
_GIVEN: Final = frozenset(GivenFacts.model_fields) - {"source", "parameter_difference_reason"}
_MOST_PARAMETERS: Final = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedModel:
    """An entry, what each part of it was inferred from, and what stayed open.

    `open_points` are facts that only the world knows and that an entry may lack; `unused` are fields that no
    formula asked for.
    """

    file: ModelFile
    inferred: tuple[Inference, ...]
    open_points: tuple[str, ...]
    unused: tuple[str, ...]


def import_config(posted: ImportedConfig, today: date) -> ImportedModel:
    """The model that a configuration describes.

    Raises
    ------
    ConfigNotUnderstood
        Something decisive is missing, contradictory or has no formula; nothing is guessed.
    """
    whole = Fields(posted.config)
    _generates_text(whole)
    text = _text_section(whole, posted.built_like)
    family = family_of(_model_type(whole, text, posted.built_like))
    if family.merged:
        text = text.merged(*family.merged)
        whole.ignore(*family.merged)
    shapes = shapes_of(text, family, whole)
    given = posted.given
    resident = _resident(whole, text, shapes, given)
    has_experts = any(isinstance(block, MoeFfn) for _, block in shapes.layers)
    plan = (given and given.released_weights) or weight_plan(
        whole, text, repository=posted.hf_id, has_experts=has_experts
    )
    for fields in (whole, text):
        fields.ignore("quantization_config", "expert_dtype", "dtype", "torch_dtype")
    context = (given and given.max_context_tokens) or shapes.max_context_tokens
    _all_there(posted, plan, context, resident)
    nested = text.placed("") != ""
    left = unused(text, changes_nothing if nested else is_of_other_media)
    if nested:
        whole.ignore(*(name for name in whole.unread() if whole.value(name) == text.value(name)))
        left += unused(whole, is_of_other_media)
    values = _values(posted, shapes, str(plan), int(context or 0), resident or 0, whole, text)
    if given and given.published_parameters is not None:
        values |= _counted_also(values, posted, today, given.published_parameters)
    file = _checked({**values, "sources": _sources(posted, values, today)})
    return ImportedModel(
        file=file,
        inferred=tuple(dict.fromkeys(whole.inferences)),
        open_points=_open_points(shapes, file, whole),
        unused=left,
    )


def _generates_text(whole: Fields) -> None:
    architectures = whole.any("architectures") or []
    if not isinstance(architectures, list) or not all(isinstance(one, str) for one in architectures):
        whole.refuse(("architectures",), "no list of class names")
    if architectures and not any(_GENERATING.search(one) for one in architectures):
        raise ConfigNotUnderstood(
            f"The configuration is of {', '.join(architectures)[:120]}, which has no language-model head: it generates "
            f"no tokens that could be priced. Import the configuration of a model that does.",
            field="architectures",
        )


def _text_section(whole: Fields, built_like: str | None) -> Fields:
    """The section that describes the text decoder; the whole, where nothing is nested."""
    name = next((name for name in _TEXT_SECTIONS if whole.any(name) is not None), None)
    if name is None:
        return whole
    section = whole.section(name)
    if section is None:
        return whole
    model_type = built_like or section.value("model_type") or whole.value("model_type")
    family = FAMILIES.get(str(model_type))
    nested = Fields(whole.value(name), f"{name}.", family.defaults if family else None)
    nested.inferences = whole.inferences
    return nested


def _model_type(whole: Fields, text: Fields, built_like: str | None) -> str:
    """The type that says how layers are built: the text section's own, the whole's, or that of its class."""
    stated = built_like or text.text("model_type") or whole.text("model_type")
    if stated:
        return stated
    for architecture in whole.any("architectures") or []:
        plain = architecture.partition("For")[0].lower()
        if found := next((name for name in FAMILIES if name.replace("_", "") == plain), None):
            text.note("model_type", found, because=f"not stated; architectures: {architecture}")
            return found
    return whole.missing("model_type")


def _resident(whole: Fields, text: Fields, shapes: Shapes, given: GivenFacts | None) -> int | None:
    """Parameters of the towers beside the text; None where there are some that nothing counts. [parameters]"""
    towers = [name for name in TOWERS if whole.any(name)]
    text.ignore(*towers)
    if given is not None and given.resident_parameters is not None:
        return given.resident_parameters
    counts = [tower_parameters(name, whole, shapes.sizes.hidden_size) for name in towers]
    if any(count is None for count in counts):
        return None
    total = sum(count or 0 for count in counts)
    if towers:
        text.note("resident_parameters", total, because=f"counted from {', '.join(towers)}")
    return total


def _all_there(posted: ImportedConfig, plan: str | None, context: int | None, resident: int | None) -> None:
    """Refuse, at once, everything that must be given."""
    missing: dict[str, str] = {}
    if posted.hf_id is None:
        if posted.id is None or posted.name is None:
            missing["hf_id"] = "hf_id, or id and name (what to call it)"
        if posted.source is None:
            missing["source"] = "hf_id or source (where the configuration was read)"
    if plan is None:
        missing["given.released_weights"] = (
            "given.released_weights (how the weights are stored: neither dtype nor quantization_config names a weight "
            "plan of the catalog)"
        )
    if context is None:
        missing["given.max_context_tokens"] = "given.max_context_tokens (the longest context)"
    if resident is None:
        missing["given.resident_parameters"] = (
            "given.resident_parameters (the count of its vision or audio tower, which has no formula here; 0 if the "
            "tower is not loaded)"
        )
    if missing:
        raise ConfigNotUnderstood(
            f"The configuration does not say, and nothing is guessed: {'; '.join(missing.values())}. Give this beside "
            f"the configuration.",
            field=next(iter(missing)),
            details={"must_be_given": list(missing)},
        )


def _values(
    posted: ImportedConfig,
    shapes: Shapes,
    plan: str,
    context: int,
    resident: int,
    whole: Fields,
    text: Fields,
) -> dict[str, Any]:
    """The fields of the entry, less its sources; what is nothing is left out."""
    attention, mixer_names = named([mixer for mixer, _ in shapes.layers])
    ffn, block_names = named([block for _, block in shapes.layers])
    order = ["+".join(part for part in pair if part) for pair in zip(mixer_names, block_names, strict=True)]
    own = posted.hf_id.partition("/")[2] if posted.hf_id else ""
    given = posted.given
    family = posted.family or re.sub(
        r"[^a-z0-9.-]+", "-", str(text.value("model_type") or whole.value("model_type")).lower()
    )
    facts: dict[str, Any] = {
        "id": posted.id or own.lower(),
        "name": posted.name or own,
        "family": family,
        "hf_id": posted.hf_id,
        "aliases": posted.aliases or None,
        "licence": given.licence if given else None,
        "released": given.released if given else None,
        "released_weights": plan,
        "max_context_tokens": context,
        "hidden_size": shapes.sizes.hidden_size,
        "vocab_size": shapes.sizes.vocab_size,
        "tied_embeddings": shapes.tied,
        "layers": spelled(order),
        "attention": {name: stated(block) for name, block in attention.items()},
        "ffn": {name: stated(block) for name, block in ffn.items()},
        "norm_vectors": shapes.norm_vectors if shapes.norm_vectors != 2 else None,
        "position_values": shapes.position_values or None,
        "extra_parameters": shapes.extra_parameters or None,
        "resident_parameters": resident or None,
        "mtp_parameters": shapes.mtp_parameters or None,
        "published_parameters": given.published_parameters if given else None,
        "parameter_difference_reason": given.parameter_difference_reason if given else None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _sources(posted: ImportedConfig, values: Mapping[str, Any], today: date) -> list[dict[str, Any]]:
    """One source for each fact: the configuration, what was counted from it, and what was given."""
    given = posted.given
    by_hand = {name for name in _GIVEN if given is not None and getattr(given, name) is not None}
    origin = posted.source or SourceFields(
        title=f"Hugging Face repository {posted.hf_id}",
        kind="vendor",
        url=f"https://huggingface.co/{posted.hf_id}",
        locator="config.json",
        accessed=today,
    )
    counted = SourceFields(
        title="Counted from the shapes of these tensors",
        kind="derived",
        locator="the configuration above",
        accessed=today,
    )
    groups = (
        (origin, [name for name in ("hf_id", *_COVERED_BY_CONFIG) if name in values and name not in by_hand]),
        (counted, [name for name in _COUNTED if name in values and name not in by_hand]),
        *(((given.source, [name for name in values if name in by_hand]),) if given else ()),
    )
    return [
        CoveringSource(**source.model_dump(), covers=covers).model_dump(exclude_none=True)
        for source, covers in groups
        if covers
    ]


def _counted_also(
    values: Mapping[str, Any], posted: ImportedConfig, today: date, published: int
) -> dict[str, Any]:
    """What the published count holds beside what is loaded: the parts with which the computed one is nearest."""
    loaded = {name: value for name, value in values.items() if name != "published_parameters"}
    spec = _checked({**loaded, "sources": _sources(posted, loaded, today)}).spec()
    parts = {
        "mtp": spec.mtp_parameters,
        "tied-head-copy": spec.vocab_size * spec.hidden_size if spec.tied_embeddings else 0,
    }
    choices = [[], *([name] for name in parts), list(parts)]
    nearest = min(
        (choice for choice in choices if all(parts[name] for name in choice)),
        key=lambda choice: abs(parameter_count(spec) + sum(parts[name] for name in choice) - published),
    )
    return {"published_counts_also": nearest} if nearest else {}


def _checked(values: Mapping[str, Any]) -> ModelFile:
    """The entry by the schema of the catalog's files."""
    try:
        file = ModelFile.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = (*first["loc"], *first.get("ctx", {}).get("place", ()))
        raise ConfigNotUnderstood(
            f"The model would be no valid entry: {str(first['msg']).removeprefix('Value error, ')}.",
            field=".".join(str(part) for part in place) or None,
        ) from error
    if file.file_parameters() > _MOST_PARAMETERS:
        raise ConfigNotUnderstood(
            f"The shapes make {file.file_parameters():.1e} parameters, more than any model has. Correct the sizes."
        )
    return file


def _open_points(shapes: Shapes, file: ModelFile, whole: Fields) -> tuple[str, ...]:
    """What an entry may have and a configuration never says."""
    absent = [
        name
        for name in ("hf_id", "licence", "released", "published_parameters")
        if getattr(file, name) is None
    ]
    points = [f"{name}: no configuration states it" for name in absent]
    if shapes.mtp_not_counted:
        points.append(f"mtp_parameters: {shapes.mtp_not_counted}")
    several_media = any("ForConditionalGeneration" in one for one in whole.any("architectures") or ())
    if several_media and not any(whole.any(name) for name in TOWERS):
        points.append(
            "resident_parameters: the class is of several media, but no tower is stated; 0 is taken"
        )
    return tuple(points)
