"""What others publish against the catalog files: proposals for a person, printed or as YAML."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final, cast

import click
import yaml

from costsvc.cli.environment import DIRECTORY, environment
from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest
from costsvc.ingest.feeds.compared import Compared, Proposal, Sellers, compare
from costsvc.ingest.feeds.published import Published
from costsvc.ingest.files import catalog_root, read_catalog, read_providers

# By name: a feed's library is imported where the feed is asked for.
FEEDS: Final = {
    "genai-prices": "costsvc.ingest.feeds.genai_prices:read",
    "skypilot": "costsvc.ingest.feeds.skypilot:read",
}
_NOTE: Final = (
    "# Proposed by `costsvc catalog diff`, and read by nothing. Check each entry against its seller, then copy what\n"
    "# is right into the file it stands under: prices of an offer below its `prices`, new offers below `offers`,\n"
    "# token prices as an observation; and the source into sources.yaml, unless it is there.\n"
)


@click.command
@click.option("--feed", type=click.Choice(list(FEEDS)), required=True, help="Who publishes.")
@click.option("--from", "place", help="A file, folder or https address of the feed; absent: its own.")
@click.option("--provider", "providers", multiple=True, help="Only this provider; may be given again.")
@click.option(
    "--observed",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Day on which the feed said so; absent: today (UTC).",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the proposals there as YAML; a file that is there is never overwritten.",
)
@DIRECTORY
def diff(
    feed: str,
    place: str | None,
    providers: tuple[str, ...],
    observed: datetime | None,
    out: Path | None,
    directory: Path | None,
) -> None:
    """Compare a feed with the catalog files and propose what to add; the files are never changed."""
    if out is not None and out.exists():
        raise InvalidRequest(f"{out} is there already. Name another file, or move it away.", field="out")
    root = catalog_root(directory or environment().catalog_dir)
    sellers = Sellers(read_providers(root))
    wanted = _only(sellers, providers)
    read = cast("Callable[[str | None], Published]", resolve_name(FEEDS[feed]))
    compared = compare(
        Catalog(read_catalog(root), None),
        sellers,
        read(place),
        observed.date() if observed else _today(),
        wanted,
    )
    for proposal in compared.proposals:
        click.echo(_line(proposal))
    if out is not None and compared.proposals:
        out.write_text(_NOTE + proposed(compared), encoding="utf-8")
    for reason, count in compared.left_out.items():
        click.echo(f"{count:6,} left out: {reason}", err=True)
    kinds = [one.kind for one in compared.proposals]
    click.echo(
        f"{compared.same:,} prices agree, {kinds.count('changed'):,} changed, {kinds.count('new'):,} are new."
        + (f" Proposals: {out}." if out is not None and kinds else ""),
        err=True,
    )


def proposed(compared: Compared) -> str:
    """Proposals as YAML in the form of the catalog's files."""
    files: dict[str, dict[str, list[Any]]] = {}
    for one in compared.proposals:
        file = files.setdefault(one.file, {})
        file.setdefault(one.kind, []).append(dict(one.entry))
    document: dict[str, Any] = {"source": dict(compared.source), "observed": compared.observed, **files}
    text: str = yaml.dump(document, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=120)
    return text


class _Plain(yaml.SafeDumper):
    """A day that stands twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        """No references: each entry is copied alone."""
        return True


def _only(sellers: Sellers, providers: tuple[str, ...]) -> Callable[[str], bool]:
    ids = set()
    for text in providers:
        if (found := sellers.find(text)) is None:
            raise InvalidRequest(
                f"There is no provider '{text}' in providers.yaml. Add it, or ask for another.",
                field="provider",
            )
        ids.add(found[0])
    return lambda id: not ids or id in ids


def _line(one: Proposal) -> str:
    came = one.after if one.before is None else f"{one.before} → {one.after}"
    return f"{one.kind:8}{one.what}: {came}"


def _today() -> date:
    return datetime.now(UTC).date()
