"""Reference rates of currencies, as a central bank prints them, and as units per US dollar."""

from decimal import Decimal, localcontext
from typing import Annotated, Final, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from costsvc.db import entries
from costsvc.ingest.entry import Day, Money, Slug, Strict, mistake

Currency = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Z]{3}$")]

USD: Final = "USD"
# A printed rate has six digits at the most, so a quotient of two has no more that mean something.
_DIGITS: Final = 10


class RatesOfDay(Strict):
    """What was printed on a day."""

    day: Day
    units: dict[Currency, Money]


class FxRatesFile(Strict):
    """`fx_rates.yaml`: units of each currency for one unit of `per`, by day."""

    source: Slug
    per: Literal["EUR"]
    rates: Annotated[list[RatesOfDay], Field(min_length=1)]

    @model_validator(mode="after")
    def days_follow_each_other(self) -> Self:
        days = [one.day for one in self.rates]
        if days != sorted(set(days)):
            raise mistake("Rates stand in order of their days, each day once", "rates")
        return self

    @model_validator(mode="after")
    def every_day_has_the_dollar(self) -> Self:
        for n, one in enumerate(self.rates):
            if USD not in one.units:
                raise mistake(f"{one.day} has no rate of {USD}, from which the others follow", "rates", n)
            if self.per in one.units:
                raise mistake(f"{one.day} has a rate of {self.per}, which all rates are of", "rates", n)
        return self

    def records(self) -> tuple[entries.FxRate, ...]:
        """The rates as stored, the dollar's own left out."""
        with localcontext(prec=_DIGITS):
            return tuple(
                entries.FxRate(
                    currency=currency,
                    first_day=one.day,
                    units_per_usd=units / one.units[USD],
                    source_id=self.source,
                )
                for one in self.rates
                for currency, units in sorted({**one.units, self.per: Decimal(1)}.items())
                if currency != USD
            )
