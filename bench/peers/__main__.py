"""Predicted against measured TPOT, and processor time of a prediction, of costsvc and of other predictors.

`python -m bench.peers POINTS.CSV [POINTS]`: of a table of measured points (the schema of `costsvc predict`, with a
measured `tpot_ms`) so many, spread over those that every peer might know: dense Llama 3.1 by tensor parallelism under a
closed loop. Each peer is installed from PyPI into an environment of its own under .peers/, once.
"""

import csv
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.peers.asking import WARM_CALLS
from costsvc.db.snapshot import Catalog
from costsvc.errors import CostsvcError
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.quoting.predict import predict_point

POINTS: Final = 24
HERE: Final = Path(__file__).parent
ENVIRONMENTS: Final = HERE.parent.parent / ".peers"
PEERS: Final = {
    "berth": "berth-placement==0.8.0",
    "genz": "genz-llm==0.0.16",
    "llm_analysis": "llm-analysis==0.2.2",
    "aiconfigurator": "aiconfigurator==0.12.0",
}
_TENTH: Final = 9
Answers = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of the table, what a peer is told of it, and the TPOT that was measured. [ms]"""

    row: Mapping[str, str]
    told: Mapping[str, Any]
    tpot_ms: float


def main(table: Path, most: int) -> None:
    """Ask everybody, and print errors and times."""
    catalog = Catalog(read_catalog(catalog_root(None)), 1)
    known = list(_known(catalog, table))
    points = known[:: max(1, len(known) // most)][:most]
    asked = {"costsvc": _ours(catalog, points), **{peer: _theirs(peer, points) for peer in PEERS}}
    print(f"{len(points)} of {len(known)} points of {table.name}: TPOT, |predicted / measured - 1|")
    print(f"{'':28}{'points':>8}{'median':>10}{'9 of 10':>10}{'ms each':>12}{'ratio':>12}")
    ours_s = _seconds(asked["costsvc"])
    for peer, answers in asked.items():
        errors = sorted(
            abs(answers[one.told["id"]]["tpot_ms"] / one.tpot_ms - 1)
            for one in points
            if "tpot_ms" in answers.get(one.told["id"], {})
        )
        name = PEERS.get(peer, peer)
        if not errors:
            reasons = {str(one.get("error")) for one in answers.values()}
            print(f"{name:28}{0:8}  {'; '.join(sorted(reasons))[:200] or 'could not be installed or asked'}")
            continue
        tenth = errors[min(len(errors) - 1, len(errors) * _TENTH // 10)]
        taken_s = _seconds(answers)
        print(
            f"{name:28}{len(errors):8}{statistics.median(errors):10.1%}{tenth:10.1%}"
            f"{taken_s * 1e3:12.2f}{taken_s / ours_s:12.1f}",
            flush=True,
        )


def _known(catalog: Catalog, table: Path) -> Iterator[Measured]:
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            told = _told(catalog, row)
            if told is not None:
                asked = {**row, "concurrency": row["concurrency_or_batch"]}
                yield Measured(asked, told, float(row["tpot_ms"]))


def _told(catalog: Catalog, row: Mapping[str, str]) -> Mapping[str, Any] | None:
    numbers = {name: row[name] for name in ("tp", "n_gpus", "isl", "osl", "concurrency_or_batch", "tpot_ms")}
    if "Llama-3.1" not in row["model"] or row["mode"] != "continuous" or not all(numbers.values()):
        return None
    tp, gpus, isl, osl, concurrency, _ = (float(text) for text in numbers.values())
    if tp != gpus or row["weight_dtype"] not in ("", "bf16", "fp8"):
        return None
    return {
        "id": row["id"],
        "model": catalog.model(row["model"]).id,
        "gpu": catalog.gpu(row["gpu"]).id,
        "engine": row["engine"],
        "weights": row["weight_dtype"] or "bf16",
        "tp": int(tp),
        "isl": int(isl),
        "osl": int(osl),
        "concurrency": int(concurrency),
    }


def _ours(catalog: Catalog, points: Sequence[Measured]) -> Answers:
    answers: dict[str, Mapping[str, Any]] = {}
    for one in points:
        # The first time does not count, as with peers: what was compiled is kept.
        taken_s = []
        try:
            tpot_ms: Any = predict_point(catalog, one.row)["tpot_ms"]
            for _ in range(WARM_CALLS):
                started_s = time.process_time()
                predict_point(catalog, one.row)
                taken_s.append(time.process_time() - started_s)
        except CostsvcError as error:
            answers[one.told["id"]] = {"error": error.message}
            continue
        answers[one.told["id"]] = {"tpot_ms": float(tpot_ms), "seconds": min(taken_s)}
    return answers


def _theirs(peer: str, points: Sequence[Measured]) -> Answers:
    python = ENVIRONMENTS / peer / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENTS / peer], check=True)
        installed = subprocess.run([python, "-m", "pip", "-q", "install", PEERS[peer]], check=False)
        if installed.returncode:
            return {}
    asked = "".join(json.dumps(one.told) + "\n" for one in points)
    done = subprocess.run(
        [python, HERE / f"ask_{peer}.py"], input=asked, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return {"all": {"error": done.stderr.strip().splitlines()[-1]}}
    return {one["id"]: one for one in map(json.loads, done.stdout.splitlines())}


def _seconds(answers: Answers) -> float:
    return float(statistics.median(one["seconds"] for one in answers.values() if "seconds" in one))


if __name__ == "__main__":
    if not sys.argv[1:]:
        raise SystemExit("Name a table of measured points: python -m bench.peers POINTS.CSV [POINTS]")
    main(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else POINTS)
