"""What a reader of a quote should know before trusting its number: each warning is a sentence or two."""

from costsvc.quoting.answer.plain import Plain
from costsvc.quoting.bill import Bill
from costsvc.quoting.choice import Choice
from costsvc.quoting.scenario import Scenario
from costsvc.quoting.steep import steep_warnings

DEAR_INPUT = (
    "An input token costs more than an output token here, because the time per output token binds: prompts "
    "lengthen the steps that all running requests wait for, so each lets fewer of them run. attribution=step "
    "prices tokens by the work they take."
)


def warnings_of(scenario: Scenario, choice: Choice, bill: Bill) -> list[Plain]:
    """All of them, those of the facts first."""
    found: list[Plain] = [*scenario.warnings, *choice.warnings, *steep_warnings(scenario, choice)]
    if bill.tokens.uncached > bill.tokens.output:
        found.append(DEAR_INPUT)
    margin = scenario.request.margin
    if margin > 1.0:
        found.append(f"margin={margin:g} adds {100 * margin:,.0f} % to the cost; 20 % is margin=0.2.")
    return found
