"""CSV in, CSV out: an answer per row, in their order; a row that fails says why and stops nothing."""

import csv
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import TextIO

import click
from rich.console import Console
from rich.progress import track

from costsvc.cli.catalogs import current_catalog
from costsvc.cli.lazy import FAILED
from costsvc.errors import CostsvcError, InvalidRequest
from costsvc.quoting.capacity import capacity_point
from costsvc.quoting.flat import cell
from costsvc.quoting.predict import predict_point

Point = Mapping[str, str]
Columns = Sequence[str]

PREDICTED: Columns = (
    "id",
    "output_tok_s",
    "output_tok_s_low",
    "output_tok_s_high",
    "ttft_ms",
    "tpot_ms",
    "concurrency",
    "bound",
    "extrapolated",
    "error",
)
CAPACITY: Columns = (
    "id",
    "kv_bytes_per_token_per_gpu",
    "weights_gib_per_gpu",
    "kv_gib_per_gpu",
    "kv_tokens",
    "max_concurrency",
    "error",
)
# The second spellings are those of published measurements of disaggregated serving.
_MODEL_AND_GPU = (("model", "model_path"), ("gpu", "system"))
# Where a row's first cell beyond the header is kept; no column can be called so.
_EXTRA = " extra"
_LOG = logging.getLogger(__name__)

_POINTS = click.argument("points", type=click.File(encoding="utf-8-sig"), metavar="POINTS.CSV")


@click.command
@_POINTS
def predict(points: TextIO) -> None:
    """Predict throughput and latency for each row of POINTS.CSV (- for standard input).

    Columns: id, model, gpu, n_gpus, tp, pp, ep, dp, weight_dtype, kv_dtype, engine, engine_version, isl,
    osl, cached_tokens, concurrency, rps, max_batch, mode. Blank or absent is the default; other columns are
    ignored.
    """
    catalog = current_catalog()
    answer_rows(points, PREDICTED, lambda point: predict_point(catalog, point), needed=_MODEL_AND_GPU)


@click.command
@_POINTS
def capacity(points: TextIO) -> None:
    """Compute the KV-cache capacity for each row of POINTS.CSV (- for standard input).

    Columns: id, model, weight_dtype, kv_dtype, gpu, tp, pp, engine, version, gpu_memory_utilization,
    max_model_len, kv_gib_per_gpu. Blank or absent is the default; other columns are ignored.
    """
    catalog = current_catalog()
    answer_rows(points, CAPACITY, lambda point: capacity_point(catalog, point), needed=(("model",),))


def answer_rows(
    points: TextIO,
    columns: Columns,
    answer: Callable[[Point], Mapping[str, object]],
    *,
    needed: Sequence[Sequence[str]],
) -> None:
    """Write a row of `columns` per row of `points`; the exit status is 1 where a row failed."""
    rows = _rows(points, needed)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    failed = False
    for row in _with_progress(rows):
        result = _answered(row, answer)
        failed = failed or bool(result["error"])
        writer.writerow([cell(result.get(column)) for column in columns])
    if failed:
        sys.exit(FAILED)


def _rows(points: TextIO, needed: Sequence[Sequence[str]]) -> Iterator[dict[str, str]]:
    """Rows by column name, blanks stripped; the header is checked before the first one is asked for."""
    lines = _lines(points)
    header = [name.strip() for name in next(lines, [])]
    if not header:
        raise InvalidRequest(f"{points.name} is empty. Its first line must name the columns.")
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise InvalidRequest(f"{points.name} has more than one column '{twice[0]}'. Name each once.")
    for names in needed:
        if not set(names) & set(header):
            raise InvalidRequest(
                f"{points.name} has no column '{names[0]}'. Its columns are: {', '.join(header)}."
            )
    blank = dict.fromkeys(header, "")
    return (
        {**blank, **dict(zip([*header, _EXTRA], map(str.strip, cells), strict=False))}
        for cells in lines
        if cells
    )


def _lines(points: TextIO) -> Iterator[list[str]]:
    reader = csv.reader(points)
    try:
        yield from reader
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidRequest(
            f"{points.name} is not CSV in UTF-8 after line {reader.line_num}: {error}."
        ) from error


def _answered(row: Point, answer: Callable[[Point], Mapping[str, object]]) -> Mapping[str, object]:
    id = row.get("id", "")
    try:
        if _EXTRA in row:
            raise InvalidRequest("The row has more cells than the header has columns.")
        result = answer(row)
        endless = [name for name, value in result.items() if isinstance(value, float) and not isfinite(value)]
        if endless:
            raise ArithmeticError(f"{', '.join(endless)} is not finite")
    except CostsvcError as error:
        return {"id": id, "error": error.message}
    except Exception as error:
        _LOG.exception("row '%s' failed", id)
        return {"id": id, "error": f"Internal error: {error!r}."}
    return {"error": "", **result, "id": id}


def _with_progress(rows: Iterator[dict[str, str]]) -> Iterator[dict[str, str]]:
    stream = _standard_error()
    if not stream.isatty():
        return rows
    return iter(track(rows, description="Rows", console=Console(file=stream), transient=True))


def _standard_error() -> TextIO:
    return sys.stderr
