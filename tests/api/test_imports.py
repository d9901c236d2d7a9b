"""Models from their configurations: written once by an admin, quoted at once, kept when the files load anew."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from httpx import Response
from litestar.testing import TestClient

from costsvc.app import create_app
from costsvc.db.audit import audit_entries
from costsvc.db.engine import make_engine
from costsvc.db.keys import KeyRepository
from costsvc.db.repository import CatalogRepository
from costsvc.quoting.publishing import publish_files
from tests.api.conftest import TODAY, Client, settings_for
from tests.engine.shapes import one_of_each

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
POSTED: dict[str, Any] = {"config": CONFIG, "hf_id": "example-org/Example-8B"}
QUOTE = "/quote?model=example-org/Example-8B&gpu=h100&ctx=8192"


@pytest.fixture(scope="module")
def unwritten(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Response]]:
    """Posts what writes nothing, as an admin; checks that nothing was written at the end."""
    path = tmp_path_factory.mktemp("unwritten") / "costsvc.db"
    shutil.copy(small, path)
    engine = make_engine(f"sqlite:///{path}")
    secret, _ = KeyRepository(engine).create(scope="admin", label="tests", owner="", author="tests")
    engine.dispose()
    with TestClient(create_app(settings_for(path), today=lambda: TODAY)) as client:
        client.headers["X-API-Key"] = secret

        def post(body: Any = None, query: str = "", **sent: Any) -> Response:
            return client.post(f"/models/import{query}", json=body, **sent)

        yield post
        assert client.get("/readyz").json()["catalog_revision"] == 1


def test_an_imported_model_is_quoted_at_once(writable: Client, admin: dict[str, str], database: Path) -> None:
    before = writable.get("/readyz").json()["catalog_revision"]
    assert writable.get(QUOTE).status_code == 404
    response = writable.post("/models/import", json=POSTED, headers=admin)
    assert response.status_code == 201, response.text
    answer = response.json()
    assert (answer["written"], answer["catalog_revision"]) == (True, before + 1)
    assert answer["parameters"]["computed"] == 8_030_261_248
    assert answer["kv_values_per_token"] == 32 * 2 * 8 * 128
    assert {"what": "hidden_size", "value": 4096, "read_from": "hidden_size"} in answer["inferred"]
    shown = writable.get(response.headers["Location"]).json()
    assert shown["computed_parameters"] == 8_030_261_248
    assert shown["sources"][0]["url"] == "https://huggingface.co/example-org/Example-8B"
    assert writable.get(QUOTE).json()["request"]["model"] == "example-8b"
    engine = make_engine(f"sqlite:///{database}")
    newest = audit_entries(engine, limit=1)[0]
    engine.dispose()
    assert newest.subject == f"revision {before + 1}"
    assert newest.actor.startswith("key ")


def test_a_dry_run_answers_the_same_and_writes_nothing(writable: Client, admin: dict[str, str]) -> None:
    before = writable.get("/readyz").json()["catalog_revision"]
    tried = writable.post("/models/import?dry_run=true", json=POSTED, headers=admin)
    assert (tried.status_code, tried.json()["written"]) == (200, False)
    assert writable.get("/readyz").json()["catalog_revision"] == before
    made = writable.post("/models/import", json=POSTED, headers=admin).json()
    changed = ("written", "catalog_revision")
    assert {k: v for k, v in tried.json().items() if k not in changed} == {
        k: v for k, v in made.items() if k not in changed
    }


def test_a_model_is_never_replaced(writable: Client, admin: dict[str, str]) -> None:
    writable.post("/models/import", json=POSTED, headers=admin)
    for again in (POSTED, {**POSTED, "id": "other", "name": "Other"}, {**POSTED, "hf_id": "x/LLAMA_3_70B"}):
        response = writable.post("/models/import", json=again, headers=admin)
        assert response.status_code == 400
        assert "A model never changes" in response.json()["detail"]


def test_an_imported_model_survives_a_load_of_the_files_unless_they_name_it(
    writable: Client, admin: dict[str, str], database: Path
) -> None:
    writable.post("/models/import", json=POSTED, headers=admin)
    engine = make_engine(f"sqlite:///{database}")
    repository = CatalogRepository(engine)
    publish_files(repository, one_of_each(), author="tests", note="")
    assert "example-8b" in {entry.id for entry in repository.load().models}
    named = replace(one_of_each().models[0], aliases=("Example-8B",))
    publish_files(repository, replace(one_of_each(), models=(named,)), author="tests", note="")
    kept = repository.load()
    engine.dispose()
    assert [entry.id for entry in kept.models] == [named.id]
    assert not any(source.id.startswith("posted/models/") for source in kept.sources)


BAD_BODIES: list[tuple[dict[str, Any], int, str]] = [
    ({"config": {"model_type": "llama"}, "hf_id": "a/b"}, 422, "hidden_size"),
    ({"config": {**CONFIG, "model_type": "unheard-of"}, "hf_id": "a/b"}, 422, "model_type"),
    ({"config": CONFIG}, 422, "hf_id"),
    ({"config": CONFIG, "hf_id": "<script>"}, 400, "hf_id"),
    ({"config": CONFIG, "hf_id": "../../etc/passwd"}, 400, "hf_id"),
    ({**POSTED, "id": "../../x"}, 400, "id"),
    ({**POSTED, "name": '=HYPERLINK("x")'}, 400, "name"),
    ({**POSTED, "name": "two\nlines"}, 400, "name"),
    ({**POSTED, "aliases": ["a" * 300]}, 400, "aliases.0"),
    ({"config": [], "hf_id": "a/b"}, 400, "config"),
    ({"config": {}, "hf_id": "a/b"}, 400, "config"),
    ({**POSTED, "unknown": 1}, 400, "unknown"),
    ({**POSTED, "given": {"released_weights": "bf16"}}, 400, "given.source"),
    (
        {**POSTED, "given": {"released_weights": "fp7", "source": {"title": "A", "kind": "vendor"}}},
        404,
        "weights",
    ),
]


def test_a_bad_body_says_why_and_changes_nothing(unwritten: Callable[..., Response]) -> None:
    for body, status, field in BAD_BODIES:
        response = unwritten(body)
        problem = response.json()
        assert (response.status_code, problem["errors"][0]["field"]) == (status, field), problem


def test_everything_that_must_be_given_is_named_for_programs(unwritten: Callable[..., Response]) -> None:
    config = {**CONFIG, "torch_dtype": None, "vision_config": {"depth": 2}}
    problem = unwritten({**POSTED, "config": config}).json()
    assert problem["type"] == "/problems/config-not-understood"
    assert problem["must_be_given"] == ["given.released_weights", "given.resident_parameters"]


def test_infinity_that_a_configuration_holds_is_read(unwritten: Callable[..., Response]) -> None:
    text = json.dumps({**POSTED, "config": {**CONFIG, "time_step_limit": [0.0, float("inf")]}})
    response = unwritten(None, "?dry_run=true", content=text, headers={"Content-Type": "application/json"})
    assert response.status_code == 200, response.text


def test_a_body_has_a_largest_size_and_a_type(unwritten: Callable[..., Response]) -> None:
    large = {**POSTED, "config": {**CONFIG, "note": "a" * 1_000_000}}
    assert unwritten(large).status_code == 413
    assert unwritten(None, content=b"{}").status_code == 415


def test_writing_needs_an_admin_key(
    writable: Client, database: Path, make_key: Callable[[Path, Any], str]
) -> None:
    assert writable.post("/models/import", json=POSTED).status_code == 401
    reader = {"X-API-Key": make_key(database, "quote")}
    assert writable.post("/models/import", json=POSTED, headers=reader).status_code == 403
    assert writable.post("/models/import?dry=1", json=POSTED).status_code == 401
