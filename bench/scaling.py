"""How the processor's time grows with the work: catalog, price rows, batch rows, lines of a trace.

`python -m bench.scaling [PICTURE]`: in one process, by its own clock, so that other work on the machine counts little.
It prints a line per size and the power of the size that the last two sizes tell, and draws docs/pictures/scaling.svg.
"""

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.figure import Figure

from costsvc.db.entries import CatalogContent, DatedPrice
from costsvc.db.snapshot import Catalog
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.quoting.batch import priced
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from costsvc.quoting.traces import whole_trace

TODAY: Final = date(2026, 11, 29)
PICTURE: Final = Path(__file__).parent.parent / "docs" / "pictures" / "scaling.svg"
COPIES: Final = (1, 3, 10, 30)
PRICE_ROWS: Final = (3_000, 30_000, 300_000)
BATCH_ROWS: Final = (10, 100, 1_000, 10_000)
TRACE_LINES: Final = (1_000, 10_000, 100_000)
CALLS: Final = 15
_PRICES_OF_AN_OFFER: Final = 100
_DAYS: Final = 100
_contexts = count(2_000)


@dataclass(frozen=True, slots=True)
class Series:
    """Processor time by size. [s]"""

    of: str
    sizes: Sequence[int]
    times_s: Sequence[float]

    @property
    def power(self) -> float:
        """Of the size, from the last two: 1 where twice the work takes twice as long. [1]"""
        return math.log(self.times_s[-1] / self.times_s[-2]) / math.log(self.sizes[-1] / self.sizes[-2])


def main(picture: Path) -> None:
    """Measure, print and draw."""
    content = read_catalog(catalog_root(None))
    warm = Catalog(content, 1)
    for _ in range(CALLS):
        _quote(warm)
    _trace_s(TRACE_LINES[0])
    panels: dict[str, list[Series]] = {}
    for what, sizes, grown in (
        ("models in the catalog", [len(content.models) * copies for copies in COPIES], _with_models),
        ("rows of prices", PRICE_ROWS, _with_prices),
    ):
        catalogs = [grown(content, size) for size in sizes]
        panels[what] = [
            Series("a quote", sizes, [_median_s(partial(_quote, one)) for one in catalogs]),
            Series(
                "the catalog into memory",
                sizes,
                [_median_s(partial(Catalog, one.content, 1), calls=3) for one in catalogs],
            ),
        ]
    panels["rows of a batch"] = [
        Series(
            "the batch",
            BATCH_ROWS,
            [_median_s(partial(_batch, warm, rows), calls=1) for rows in BATCH_ROWS],
        )
    ]
    panels["lines of a trace"] = [
        Series("hits at every capacity", TRACE_LINES, [_trace_s(lines) for lines in TRACE_LINES])
    ]
    for what, every in panels.items():
        for one in every:
            print(f"{one.of}, by {what}: grows with the power {one.power:.2f}")
            for size, taken_s in zip(one.sizes, one.times_s, strict=True):
                print(f"{size:12,}{taken_s * 1e3:14.2f} ms")
    _draw(panels, picture)


def _median_s(call: Callable[[], object], calls: int = CALLS) -> float:
    times_s = []
    for _ in range(calls):
        started_s = time.process_time()
        call()
        times_s.append(time.process_time() - started_s)
    return statistics.median(times_s)


def _quote(catalog: Catalog) -> object:
    """One of a context and a day that were not asked before, so that its price is looked up among all."""
    number = next(_contexts)
    day = TODAY - timedelta(days=number % _DAYS)
    request = {"model": "llama-3-70b", "gpu": "h100", "ctx": number, "as_of": day}
    return make_quote(catalog, parse_request(request), TODAY)


def _batch(catalog: Catalog, rows: int) -> int:
    given = ({"model": "llama-3-70b", "gpu": "h100", "ctx": next(_contexts)} for _ in range(rows))
    return sum(1 for _ in priced(catalog, given, TODAY))


def _trace_s(lines: int) -> float:
    """Conversations of ten requests, each with a block more than the one before. [s]"""
    body = [
        json.dumps(
            {
                "timestamp": 100 * number,
                "input_length": 512 * (number % 10 + 1),
                "output_length": 100,
                "hash_ids": [10 * (number // 10) + block for block in range(number % 10 + 1)],
            }
        ).encode()
        for number in range(lines)
    ]
    return _median_s(lambda: whole_trace(iter(body), block_tokens=512), calls=3)


def _with_models(content: CatalogContent, models: int) -> Catalog:
    copies = models // len(content.models)
    copied = (
        replace(entry, id=f"{entry.id}-{copy}", hf_id=None, aliases=())
        for copy in range(1, copies)
        for entry in content.models
    )
    return Catalog(replace(content, models=(*content.models, *copied)), 1)


def _with_prices(content: CatalogContent, rows: int) -> Catalog:
    """Offers of a card with so many prices together, as daily observation of many regions would leave them."""
    like = next(offer for offer in content.offers if offer.gpu_id == "h100-sxm" and not offer.excluded_reason)

    def prices() -> Iterator[DatedPrice]:
        for day in range(_PRICES_OF_AN_OFFER, 0, -1):
            yield replace(
                like.prices[-1],
                first_day=TODAY - timedelta(days=3 * day),
                usd_per_gpu_hour=Decimal(200 + day) / 100,
            )

    dated = tuple(prices())
    offers = (
        replace(like, id=f"bench/{number}", region=f"bench-{number}", prices=dated)
        for number in range(rows // _PRICES_OF_AN_OFFER)
    )
    return Catalog(replace(content, offers=(*content.offers, *offers)), 1)


def _draw(panels: Mapping[str, Sequence[Series]], picture: Path) -> None:
    figure = Figure(figsize=(9, 6), layout="constrained")
    for axes, (what, every) in zip(figure.subplots(2, 2).flat, panels.items(), strict=True):
        for one in every:
            label = f"{one.of} (power {one.power:.2f})"
            axes.plot(one.sizes, [taken_s * 1e3 for taken_s in one.times_s], marker="o", label=label)
        axes.set(xscale="log", yscale="log", xlabel=what, ylabel="processor time, ms")
        axes.legend(fontsize=8)
    with mpl.rc_context({"svg.hashsalt": "costsvc", "svg.fonttype": "none"}):
        figure.savefig(picture, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else PICTURE)
