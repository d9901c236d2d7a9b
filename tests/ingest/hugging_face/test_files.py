"""Configurations from disk, and the text of the files that imports make."""

import json
from pathlib import Path

import pytest

from costsvc.errors import InvalidRequest
from costsvc.ingest.entry import validated
from costsvc.ingest.hugging_face.files import LARGEST_BYTES, file_text, read_config
from costsvc.ingest.lines import read_document
from costsvc.ingest.models import ModelFile
from tests.ingest.hugging_face.published import Published, imported, published_models

IMPORTED = [one for one in published_models() if not (one.why_not_exact or "").startswith("refused")]


@pytest.mark.parametrize("one", IMPORTED[::8], ids=lambda one: one.model)
def test_the_text_of_an_entry_is_the_entry(one: Published, tmp_path: Path) -> None:
    file = imported(one).file
    path = tmp_path / "example.yaml"
    path.write_text(file_text(file), encoding="utf-8")
    read = validated(read_document(path, "example.yaml"), ModelFile)
    assert read.spec() == file.spec()
    assert read.record() == file.record()


def test_a_folder_is_read_with_the_quantisation_that_stands_beside(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama", "time_step_limit": [0.0, Infinity]}')
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "FP8"}}')
    config = read_config(tmp_path)
    assert config["quantization_config"] == {"quant_method": "modelopt", "quant_algo": "FP8"}
    assert read_config(tmp_path / "config.json")["model_type"] == "llama"


@pytest.mark.parametrize(
    ("text", "said"),
    [("[1", "is not JSON"), ("[1]", "not an object"), ("[" * 100_000, "is not JSON"), ("", "is not JSON")],
)
def test_what_is_no_object_of_json_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(InvalidRequest, match=said):
        read_config(path)


def test_a_file_that_is_not_there_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read: No such file"):
        read_config(tmp_path)
    large = tmp_path / "config.json"
    large.write_text(json.dumps({"a": " " * LARGEST_BYTES}))
    with pytest.raises(InvalidRequest, match="a configuration has at most"):
        read_config(large)
