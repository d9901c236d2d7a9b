"""Fit the calibration to measured points, and report how far the catalog is from them."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from costsvc.cli.environment import environment
from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.ingest.knobs import read_knobs
from costsvc.quoting.accuracy import Figure, headline
from costsvc.quoting.bands import bands, measured_region
from costsvc.quoting.calibrate import FOLDS, HELD_OUT_TOGETHER, ITERATIONS, Fitted, calibrate
from costsvc.quoting.calibration_files import Heading, changes, judgement_file
from costsvc.quoting.kernel_tables import kernel_priors
from costsvc.quoting.knobs import names
from costsvc.quoting.measured import Measurement, read_measurements
from costsvc.quoting.report import write_report
from costsvc.quoting.validation import held_out_rows, point_files, validation_of
from costsvc.quoting.validation_file import HELD_OUT

FITTED, BANDS = "calibration/fitted.yaml", "calibration/bands.yaml"
SHOWN_CHANGES = 40

_FOLDER = click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))


@click.command("calibrate")
@_FOLDER
@click.option("--dry-run", is_flag=True, help="Show what would change and write nothing.")
@click.option(
    "--hold-out",
    type=click.Choice(list(HELD_OUT_TOGETHER)),
    default="configuration",
    show_default=True,
    help="What is kept whole out of a fit to measure its error; nothing is written for any but configurations.",
)
def calibrate_command(folder: Path, dry_run: bool, hold_out: str) -> None:
    """Fit efficiencies and overheads to the measured points in FOLDER.

    FOLDER holds throughput_*.csv and, where there are any, kernel_*.csv.gz. Writes calibration/fitted.yaml,
    calibration/bands.yaml and fit/held_out.csv of the catalog, and prints what changed.
    """
    root = catalog_root(environment().catalog_dir)
    catalog = Catalog(read_catalog(root), revision=None)
    today = datetime.now(UTC).date()
    measurements, left = _points(catalog, folder)
    with _progress("Fitting", ITERATIONS + FOLDS) as step:
        fitted = calibrate(
            catalog,
            read_knobs(root),
            measurements,
            kernel_priors(catalog, folder),
            today,
            "fit",
            step,
            together=hold_out,
        )
    click.echo(f"{len(measurements)} points used, {left} rows left out.")
    for title, errors in (("in sample", fitted.in_sample), ("held out", fitted.held_out)):
        for figure in headline(errors.of_mode("colocated")):
            click.echo(f"{title}: {_sentence(figure)}")
    replaced = names(fitted.settings)
    before = [one for one in catalog.content.judgements if one.name in replaced]
    lines = changes(before, fitted.judgements)
    for line in lines[:SHOWN_CHANGES]:
        click.echo(line)
    if len(lines) > SHOWN_CHANGES:
        click.echo(f"... and {len(lines) - SHOWN_CHANGES} more")
    if not dry_run and hold_out == "configuration":
        _write(root, fitted, measurements, today)


@click.command("validate")
@_FOLDER
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("docs"),
    show_default=True,
    help="Where accuracy.md and its pictures go.",
)
def validate_command(folder: Path, out: Path) -> None:
    """Report how far the catalog's predictions are from the measured points in FOLDER."""
    root = catalog_root(environment().catalog_dir)
    catalog = Catalog(read_catalog(root), revision=None)
    validation, errors = validation_of(catalog, folder, root / HELD_OUT)
    write_report(out, validation, errors, root)
    for figure in headline(errors):
        click.echo(_sentence(figure))
    click.echo(f"Wrote {out / 'accuracy.md'}.")


def _points(catalog: Catalog, folder: Path) -> tuple[list[Measurement], int]:
    files = point_files(folder)
    measurements, left = read_measurements(catalog, files)
    if not measurements:
        raise InvalidRequest(
            f"{folder} has no usable points: it needs throughput_*.csv tables with model, gpu, isl and osl.",
            field="folder",
        )
    return measurements, len(left)


def _write(root: Path, fitted: Fitted, measurements: list[Measurement], today: date) -> None:
    """All files, or none: they are made before the first is written."""
    fit = Heading(
        comment="Written by `costsvc calibrate`: what operators, links, hosts and loops reach, by scope.",
        title="Fit to published measurements",
        locator="robust least squares on measured kernels and end-to-end points (docs/accuracy.md)",
        dated=today,
    )
    residuals = Heading(
        comment="Written by `costsvc calibrate`: error bands, and where measured points end.",
        title="Errors of the fit on held-out configurations",
        locator="10th and 90th percentile of predicted over measured output tokens/s",
        dated=today,
    )
    together = [one for one in measurements if one.point.deployment.mode == "colocated"]
    spread = [*bands(fitted.held_out, today, "fit"), *measured_region(together, today, "fit")]
    texts = {FITTED: judgement_file(fit, fitted.judgements), BANDS: judgement_file(residuals, spread)}
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")
    with (root / HELD_OUT).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(held_out_rows(fitted.held_out))
    click.echo(f"Wrote {', '.join([*texts, HELD_OUT])} in the catalog.")


def _sentence(figure: Figure) -> str:
    return (
        f"{figure.quantity}, {figure.regime}: median error {figure.median_error_share:.1%}, 90th percentile "
        f"{figure.p90_error_share:.1%}, bias {figure.bias_share:+.1%} ({figure.points} points)"
    )


@contextmanager
def _progress(description: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, nothing in a pipe."""
    console = Console(stderr=True)
    columns = (TextColumn(description), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total)
        yield lambda: bar.advance(task)
