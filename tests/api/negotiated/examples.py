"""An offer that somebody negotiated, and who asks for it."""

from pathlib import Path
from typing import Any

from costsvc.db.engine import make_engine
from costsvc.db.keys import KeyRepository
from tests.api.conftest import Client

Headers = dict[str, str]
SOURCE = {"title": "Our contract of May", "kind": "vendor"}
OFFER = {
    "provider": "Our Seller",
    "gpu": "h100",
    "market": "on-demand",
    "basis": "per-gpu",
    "prices": [{"first_day": "2024-05-01", "usd_per_gpu_hour": "1.11"}],
    "source": SOURCE,
    "private": True,
}
ID = "private/our-seller/h100-sxm/on-demand/1x"
ASKED = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192}
QUOTE = "model=llama-3-70b&gpu=h100&ctx=8192"


def key(path: Path, owner: str, scope: Any = "read") -> Headers:
    engine = make_engine(f"sqlite:///{path}")
    secret, _ = KeyRepository(engine).create(scope=scope, label="tests", owner=owner, author="tests")
    engine.dispose()
    return {"X-API-Key": secret}


def gpu_price(client: Client, headers: Headers, more: str = "") -> dict[str, Any]:
    response = client.get(f"/quote?{QUOTE}{more}", headers=headers)
    assert response.status_code == 200, response.text
    return dict(response.json()["cost"]["gpu_price"])
