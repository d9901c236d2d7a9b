"""A quote on a terminal: the prices first, then what they follow from."""

import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.table import Table

from costsvc.quoting.flat import quote_row, quote_table
from costsvc.quoting.tables.as_csv import to_csv

_CLASSES = (
    ("input", "Input"),
    ("cached_input", "Cached input"),
    ("output", "Output"),
    ("blended", "Blended"),
)
_SHOWN_DIGITS = 4
_GIGA = 1e9
_USD = "usd"


def print_csv(answer: Mapping[str, Any]) -> None:
    """A header and one row."""
    sys.stdout.write(to_csv(quote_table([quote_row(answer)])).decode())


def print_table(answer: Mapping[str, Any]) -> None:
    """Tables as wide as the terminal; without one, as wide as they need."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    request, deployment = answer["request"], answer["deployment"]
    console.print(
        f"{request['model']} on {deployment['gpus']} × {request['gpu']}, "
        f"{request['ctx']:,} tokens of context, prices of {answer['as_of']}",
        markup=False,
    )
    console.print(_prices(answer))
    console.print(_facts(answer))
    for warning in answer["warnings"]:
        console.print(f"! {warning}", markup=False)


def _prices(answer: Mapping[str, Any]) -> Table:
    prices = answer["prices"]
    code = prices["currency"].lower()
    shown = ("usd_per_mtok", "low", "high")
    if code != _USD:
        shown = (f"{code}_per_mtok", f"low_{code}_per_mtok", f"high_{code}_per_mtok")
    table = Table()
    table.add_column(f"{prices['currency']} per 1,000,000 tokens")
    for heading in ("Price", "Low", "High"):
        table.add_column(heading, justify="right")
    for name, heading in _CLASSES:
        price = prices[name]
        table.add_row(heading, *(_short(price[part]) for part in shown))
    return table


def _facts(answer: Mapping[str, Any]) -> Table:
    deployment, cost, latency = answer["deployment"], answer["cost"], answer["latency"]
    memory, concurrency = answer["memory"], answer["concurrency"]
    layout = " ".join(f"{name}={deployment[name]}" for name in ("tp", "pp", "dp", "ep"))
    facts: Sequence[tuple[str, str]] = (
        (
            "Deployment",
            f"{layout}, weights {deployment['weights']}, KV {deployment['kv']}, {deployment['stack']}",
        ),
        *_speculation(deployment),
        ("Chosen", deployment["chosen"]),
        ("GPU price", f"{_short(cost['gpu_price']['usd_per_gpu_hour'])} USD/h: {cost['gpu_price']['basis']}"),
        (
            "One request",
            f"{_short(cost['request_usd'])} USD{_also(answer)} at {cost['utilization']:.0%} utilization",
        ),
        ("Concurrency", f"{concurrency['limit']} sequences, bound by {concurrency['bound']}"),
        ("Latency", f"TPOT {latency['tpot_ms']:.1f} ms, TTFT {latency['ttft_ms']:.0f} ms"),
        ("Throughput", f"{answer['throughput']['output_tok_s']:,.0f} output tokens/s per replica"),
        (
            "Memory per GPU",
            f"weights {memory['weights_bytes'] / _GIGA:.1f} GB and KV cache "
            f"{memory['kv_budget_bytes'] / _GIGA:.1f} GB of {memory['usable_bytes'] / _GIGA:.1f} GB",
        ),
        (
            "Catalog",
            "shipped files"
            if answer["catalog_revision"] is None
            else f"revision {answer['catalog_revision']}",
        ),
    )
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column()
    for name, fact in facts:
        table.add_row(name, fact)
    return table


def _also(answer: Mapping[str, Any]) -> str:
    """What a request costs in the asked currency, and at which rate."""
    prices = answer["prices"]
    if "exchange" not in prices:
        return ""
    currency, rate = prices["currency"], prices["exchange"]
    day = f" of {rate['first_day']}" if rate["first_day"] else ""
    return f" ({_short(answer['cost'][f'request_{currency.lower()}'])} {currency}, {rate['units_per_usd']} a USD{day})"


def _speculation(deployment: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = deployment.get("speculation")
    if found is None:
        return []
    proposer = found["draft_model"] or found["proposer"]
    accepted = f"{found['draft_tokens']} tokens by {proposer}, {found['acceptance_rate']:.0%} accepted"
    return [("Speculation", f"{accepted}: {found['tokens_per_step']:.2f} tokens a step")]


def _short(amount: str) -> str:
    """A price as people compare them: four decimals, more where it is small."""
    exact = Decimal(amount)
    decimals = max(_SHOWN_DIGITS, _SHOWN_DIGITS - 1 - exact.adjusted()) if exact else _SHOWN_DIGITS
    return f"{exact:.{decimals}f}"
