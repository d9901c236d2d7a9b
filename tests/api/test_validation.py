"""Accuracy for programs: figures, and the points behind them."""

from collections import Counter

from tests.api.conftest import Client


def test_every_held_out_point_names_its_card_and_what_was_measured(client: Client) -> None:
    answer = client.get("/validation/points")
    assert answer.status_code == 200
    items = answer.json()["items"]
    figures = client.get("/validation").json()
    assert len(items) == figures["bands"]["points"]
    shown = {row["regime"]: row["points"] for row in figures["held_out_regimes"]["generation"]}
    counted = Counter(item["generation"] for item in items)
    assert shown == {generation: counted[generation] for generation in shown}
    assert all(item["predicted_over_measured"] > 0 for item in items)
    assert sum(item["measured_output_tok_s"] is not None for item in items) > len(items) / 2
    again = client.get("/validation/points", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304


def test_there_are_no_parameters(client: Client) -> None:
    assert client.get("/validation/points?gpu=h100").status_code == 400
