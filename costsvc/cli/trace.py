"""The hit rate of a recorded trace by cache capacity."""

import csv
import io
import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

import click
from rich.console import Console
from rich.progress import Progress

from costsvc.ingest.traces import LONGEST_LINE_BYTES, read_trace
from costsvc.quoting.fitting import fitted_profile
from costsvc.quoting.traces import HitRow, capacities_of, trace_hits

COLUMNS = ("capacity_blocks", "hit_blocks_share", "hit_tokens_share")
_DECIMALS = 9


@click.command
@click.argument("file", type=click.File("rb"), metavar="FILE")
@click.option(
    "--block",
    type=click.IntRange(1, 1_000_000),
    default=512,
    show_default=True,
    help="Prompt tokens that one hash id stands for.",
)
@click.option(
    "--capacity-blocks", metavar="N,N,…", help="Capacities to show; `inf` is unbounded. Absent: a ladder."
)
@click.option("--fit", is_flag=True, help="Print the profile of the trace as JSON, instead of its hit rates.")
def trace(file: BinaryIO, block: int, capacity_blocks: str | None, fit: bool) -> None:
    """Hit rates of FILE (- for standard input) by capacity, as CSV: exact LRU over whole prefixes.

    FILE is JSON lines with timestamp, input_length, output_length and hash_ids, or CSV with the columns
    TIMESTAMP, ContextTokens, GeneratedTokens or timestamp, prompt_tokens, cached_tokens, completion_tokens.
    """
    capacities = capacities_of(capacity_blocks)
    if fit:
        profile = fitted_profile(read_trace(_lines(file), block_tokens=block).parts, block_tokens=block)
        click.echo(profile.model_dump_json(exclude_unset=True, indent=2))
        return
    hits = trace_hits(read_trace(_lines(file), block_tokens=block), block_tokens=block, capacities=capacities)
    if hits.note:
        click.echo(hits.note, err=True)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(map(_cells, hits.rows))


def _cells(row: HitRow) -> list[str]:
    shares = (row.hit_blocks_share, row.hit_tokens_share)
    capacity = "" if row.capacity_blocks is None else format(row.capacity_blocks, ".0f")
    return [capacity, *("" if share is None else format(share, f".{_DECIMALS}f") for share in shares)]


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines of bounded length, with a progress bar on a terminal where the size is known."""
    size = _size(file)
    if not sys.stderr.isatty() or not size:
        yield from _bounded(file)
        return
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Requests", total=size)
        done = 0
        for line in _bounded(file):
            done += len(line)
            if done >= size // 200:
                progress.advance(task, done)
                done = 0
            yield line


def _bounded(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.readline(LONGEST_LINE_BYTES + 1), b"")


def _size(file: BinaryIO) -> int | None:
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, io.UnsupportedOperation):
        return None
