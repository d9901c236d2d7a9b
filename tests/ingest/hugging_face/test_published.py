"""Imports of real configurations are counted against what their released files are published to hold."""

import pytest

from costsvc.errors import ConfigNotUnderstood
from tests.ingest.hugging_face.published import (
    Published,
    difference,
    imported,
    imported_config,
    published_models,
    shapes_of,
)

EXACT = [one for one in published_models() if one.why_not_exact is None]
OTHERS = [one for one in published_models() if one.why_not_exact is not None]


@pytest.mark.parametrize("one", EXACT, ids=lambda one: one.model)
def test_the_count_is_exactly_the_published_one(one: Published) -> None:
    assert imported(one).file.file_parameters() == one.published_parameters


def test_what_is_not_exact_is_known_not_to_be() -> None:
    assert [one.model for one in OTHERS if difference(one) == 0] == []


def test_at_least_a_hundred_models_are_exact() -> None:
    assert len({one.model for one in EXACT}) >= 100


def test_at_least_a_hundred_distinct_architectures_are_tried() -> None:
    assert len({shapes_of(one) for one in published_models() if difference(one) is not None}) >= 100


def test_no_model_stands_twice() -> None:
    names = [one.model for one in published_models()]
    assert sorted(names) == sorted(set(names))


def test_every_part_of_an_entry_names_what_it_was_read_from() -> None:
    for one in EXACT:
        model = imported(one)
        assert {field for source in model.file.sources for field in source.covers} == model.file.facts()
        assert all(part.read_from for part in model.inferred)


def test_a_model_whose_layers_have_sizes_of_their_own_is_refused() -> None:
    one = next(one for one in OTHERS if "block_configs" in one.config)
    with pytest.raises(ConfigNotUnderstood, match="no formula for models of type 'nemotron-nas'"):
        imported(one)
    with pytest.raises(
        ConfigNotUnderstood, match="layers that each have sizes of their own has no formula here"
    ):
        imported_config({**one.config, "model_type": "llama"})
