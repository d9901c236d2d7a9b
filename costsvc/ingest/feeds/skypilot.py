"""GPU prices: the catalog that SkyPilot publishes, one `vms.csv` for each cloud.

It is refreshed every few hours from the clouds' own price calls, for AWS, GCP, Lambda, Nebius, OCI, RunPod and others.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

from costsvc.errors import InvalidRequest
from costsvc.ingest.feeds.fetched import read_bytes
from costsvc.ingest.feeds.published import Market, Published, PublishedOffer, distinct

ID: Final = "skypilot"
SHOWN_AT: Final = "https://github.com/skypilot-org/skypilot-catalog"
_FILE: Final = "vms.csv"
_COLUMNS: Final = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "SpotPrice", "Region")
_MEMORY: Final = re.compile(r"'SizeInMiB': (\d+)")
_PRICES: Final[tuple[tuple[Market, str], ...]] = (("on-demand", "Price"), ("spot", "SpotPrice"))
_MIB_PER_GIB: Final = 1024


def read(place: str | None) -> Published:
    """Offers of one cloud's file, or of every `<cloud>/vms.csv` below a folder.

    Parameters
    ----------
    place : str
        A file or an https address that ends in `<cloud>/vms.csv`, or a folder.

    Raises
    ------
    InvalidRequest
        There is no such file, or it is none of these.
    """
    if place is None:
        raise InvalidRequest(
            f"This feed reads files: give --from <cloud>/{_FILE} or a folder of them, as published at {SHOWN_AT} "
            "(catalogs/v8).",
            field="from",
        )
    files = sorted(Path(place).glob(f"*/{_FILE}")) if Path(place).is_dir() else [place]
    if not files:
        raise InvalidRequest(f"There is no <cloud>/{_FILE} below {place}.", field="from")
    return Published(
        source_id=ID,
        source={"title": "SkyPilot catalog", "url": SHOWN_AT, "locator": place, "kind": "third-party"},
        offers=tuple(offer for file in files for offer in _offers(str(file))),
    )


def _offers(place: str) -> Iterator[PublishedOffer]:
    provider, name = ("", *re.split(r"[\\/]", place))[-2:]
    if name != _FILE or not provider:
        raise InvalidRequest(
            f"{place} does not end in <cloud>/{_FILE}: the folder's name says whose prices they are.",
            field="from",
        )
    lines = csv.DictReader(io.StringIO(read_bytes(place).decode("utf-8", "replace")))
    if missing := sorted(set(_COLUMNS) - set(lines.fieldnames or ())):
        raise InvalidRequest(f"{place} lacks the columns {', '.join(missing)}.", field="from")
    for row in lines:
        if row["AcceleratorName"]:
            yield from _of_row(provider, row)


def _of_row(provider: str, row: Mapping[str, str]) -> Iterator[PublishedOffer]:
    card, gpus = row["AcceleratorName"], _number(row["AcceleratorCount"])
    memory = _MEMORY.search(row.get("GpuInfo") or "")
    gib = f"{int(memory[1]) // _MIB_PER_GIB}GB" if memory else ""
    for market, column in _PRICES:
        usd = _number(row[column])
        # A share of a card is no price of a card.
        if usd is None or gpus is None or gpus != int(gpus):
            continue
        yield PublishedOffer(
            provider=provider,
            gpu_spellings=distinct((row["InstanceType"], f"{card} {gib}" if gib else "", card)),
            instance_type=row["InstanceType"],
            gpus_per_instance=int(gpus),
            region=row["Region"],
            market=market,
            usd_per_instance_hour=usd,
        )


def _number(text: str | None) -> Decimal | None:
    try:
        number = Decimal(text or "")
    except InvalidOperation:
        return None
    return number if number.is_finite() and number > 0 else None
