"""What 1,000 more tokens of context in every request cost all users together."""

import numpy as np

from costsvc.engine.units import HOURS_PER_MONTH, SECONDS_PER_HOUR
from costsvc.quoting.answer.plain import Section, number, number_exact
from costsvc.quoting.contexts import chosen_at, of_chosen
from costsvc.quoting.evaluate import Evaluated
from costsvc.quoting.launch.traffic import Offered
from costsvc.quoting.money import money

MORE_TOKENS = 1000
MONTH_S = HOURS_PER_MONTH * SECONDS_PER_HOUR


def longer_section(running: Evaluated, offered: Offered) -> Section:
    """The same layout, output, hit rate and requests/s with longer prompts; null where it does not hold them."""
    here = number_exact(running.choice.lengths.context_limit)
    ctx = int(np.ceil(here)) + MORE_TOKENS
    section: Section = {"ctx": ctx, "tokens": MORE_TOKENS, "usd_per_month": None}
    window = running.scenario.model.spec.max_context_tokens
    if ctx > window:
        return section | {"why_null": f"the model takes at most {window:,} tokens"}
    longer = chosen_at(running, of_chosen(running), ctx, 0)
    if np.isnan(number_exact(longer.choice.state.sequences)):
        return section | {"why_null": "the layout does not hold one such request within the objectives"}
    requests = offered.rps * MONTH_S
    return section | {
        "usd_per_month": money((longer.request_usd - running.request_usd) * requests),
        "request_usd": money(longer.request_usd - running.request_usd),
        "gpus": longer.fleet_gpus(offered.rps) - running.fleet_gpus(offered.rps),
        "requests_per_s_per_replica": number(
            longer.choice.state.requests_per_s - running.choice.state.requests_per_s
        ),
        "means": "differences to the feature as it is; USD at the utilization sold, GPUs of whole replicas",
    }
