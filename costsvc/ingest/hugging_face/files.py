"""Configurations from disk, and entries as the text of a catalog file."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import yaml

from costsvc.engine.attention import Attention
from costsvc.engine.specs import Ffn
from costsvc.errors import InvalidRequest
from costsvc.ingest.models import ModelFile

CONFIG: Final = "config.json"
QUANTIZATION: Final = "hf_quant_config.json"
LARGEST_BYTES: Final = 10_000_000
_FIRST: Final = ("id", "name", "family", "hf_id", "aliases", "licence", "released", "released_weights")
_HEAD: Final = "# yaml-language-server: $schema=../.schema/model.json\n"


def read_config(path: Path) -> dict[str, Any]:
    """A `config.json`, or that of a folder, with the quantisation that some exporters put beside it.

    Raises
    ------
    InvalidRequest
        There is none, or it is not a JSON object.
    """
    file = path / CONFIG if path.is_dir() else path
    config = config_of(_bytes_of(file), str(file))
    beside = file.with_name(QUANTIZATION)
    if "quantization_config" not in config and path.is_dir() and beside.is_file():
        said = config_of(_bytes_of(beside), str(beside)).get("quantization")
        if isinstance(said, dict):
            config["quantization_config"] = {"quant_method": "modelopt", **said}
    return config


def config_of(text: bytes, name: str) -> dict[str, Any]:
    """The object that a file holds; `Infinity`, which some configurations hold, is read."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"{name} is not JSON: {error}. Name a model's {CONFIG}.") from error
    if not isinstance(config, dict):
        raise InvalidRequest(f"{name} is JSON but not an object. Name a model's {CONFIG}.")
    return config


def file_text(file: ModelFile) -> str:
    """An entry as a file of `catalog/models`."""
    body = yaml.safe_dump(
        file_values(file), sort_keys=False, default_flow_style=None, width=110, allow_unicode=True
    )
    return _HEAD + body


def file_values(file: ModelFile) -> dict[str, Any]:
    """What a file of the entry states, its sources last."""
    values = file.model_dump(exclude_unset=True, exclude_none=True)
    values["attention"] = {name: stated(block) for name, block in file.attention.items()}
    values["ffn"] = {name: stated(block) for name, block in file.ffn.items()}
    if file.published_parameters is not None:
        values["published_parameters"] = int(file.published_parameters)
    order: list[str] = [name for name in _FIRST if name in values]
    order += [name for name in values if name not in (*_FIRST, "sources")]
    return {name: values[name] for name in (*order, "sources")}


def stated(block: Attention | Ffn) -> dict[str, Any]:
    """A block as files state it: its kind, and what differs from the defaults."""
    defaults = {name: field.default for name, field in type(block).__dataclass_fields__.items()}
    kept = {
        name: value for name, value in asdict(block).items() if name != "kind" and value != defaults[name]
    }
    return {"kind": block.kind, **kept}


def _bytes_of(file: Path) -> bytes:
    try:
        size = file.stat().st_size
        if size > LARGEST_BYTES:
            raise InvalidRequest(f"{file} has {size:,} bytes; a configuration has at most {LARGEST_BYTES:,}.")
        return file.read_bytes()
    except OSError as error:
        raise InvalidRequest(
            f"{file} cannot be read: {error.strerror}. Name a model's {CONFIG} or its folder."
        ) from error
