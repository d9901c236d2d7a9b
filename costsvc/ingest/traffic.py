"""What a traffic profile says: when requests come, how long they are, and what of them was seen before.

The same fields stand in catalog files, in the body of a quote and in POST /profiles.
"""

from itertools import pairwise
from typing import Annotated, ClassVar, Final, Self, TypeAlias

import numpy as np
from pydantic import Field, model_validator

from costsvc.engine.moments import LengthMoments, quantile_moments, sample_moments
from costsvc.ingest.entry import Strict

MAX_CONTEXT_TOKENS: Final = 100_000_000
HOURS: Final = 24
_SHORTEST_PAUSE_S: Final = 1e-6
_LONGEST_PAUSE_S: Final = 30 * 86_400
# One request in thirty years.
_LEAST_RPS: Final = 1e-9
_LEAST_PART: Final = 1e-9
_ROUNDING: Final = 1e-6
_MOST_BINS: Final = 10_000

Tokens: TypeAlias = Annotated[int, Field(ge=1, le=MAX_CONTEXT_TOKENS)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Spread: TypeAlias = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
Pause: TypeAlias = Annotated[float, Field(ge=_SHORTEST_PAUSE_S, le=_LONGEST_PAUSE_S, allow_inf_nan=False)]
Rate: TypeAlias = Annotated[float, Field(ge=_LEAST_RPS, le=1e9, allow_inf_nan=False)]
Number: TypeAlias = Annotated[float, Field(ge=1, le=10_000, allow_inf_nan=False)]


class Quantile(Strict):
    """This share of requests are at most so long."""

    share: Share = Field(description="Share of requests. [1]")
    tokens: Tokens = Field(description="Their greatest length. [token]")


class LengthBin(Strict):
    """This share of requests have these two lengths."""

    input_tokens: Tokens = Field(description="Prompt length. [token]")
    output_tokens: Tokens = Field(description="Output length. [token]")
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = Field(
        description="Share of requests. [1]"
    )


class SystemPrompt(Strict):
    """A prompt that this share of requests begin with."""

    tokens: Tokens = Field(description="Its length. [token]")
    share: Share = Field(description="Share of requests. [1]")


class DocumentReuse(Strict):
    """Documents put before questions, the popular ones more often."""

    count: int = Field(ge=1, le=1_000_000_000, description="How many documents there are. [documents]")
    tokens: Tokens = Field(description="Length of one. [token]")
    share: Share = Field(1.0, description="Share of conversations about one of them. [1]")
    zipf_exponent: float = Field(
        1.0, ge=0, le=5, allow_inf_nan=False, description="Popularity falls with rank to this power. [1]"
    )


class AgentLoop(Strict):
    """An agent that calls tools: several requests for one turn of its user."""

    steps: Number = Field(description="Mean requests in a turn. [requests]")
    pause_s: Pause = Field(description="Mean time a tool takes. [s]")


class TrafficProfile(Strict):
    """Where a load's lengths and its sharing come from."""

    input_tokens: Tokens | None = Field(
        None,
        description="Mean prompt length, shared parts included; absent: from quantiles, histogram or "
        "growth_tokens. [token]",
    )
    output_tokens: Tokens | None = Field(
        None, description="Mean output length; absent: from quantiles or histogram. [token]"
    )
    input_cv: Spread = Field(0.0, description="Coefficient of variation of the prompt length. [1]")
    output_cv: Spread = Field(0.0, description="Coefficient of variation of the output length. [1]")
    length_correlation: float = Field(
        0.0, ge=-1, le=1, allow_inf_nan=False, description="Correlation of prompt and output length. [1]"
    )
    input_quantiles: list[Quantile] | None = Field(
        None, max_length=100, description="Prompt lengths by quantile, in place of input_tokens and input_cv."
    )
    output_quantiles: list[Quantile] | None = Field(
        None,
        max_length=100,
        description="Output lengths by quantile, in place of output_tokens and output_cv.",
    )
    histogram: list[LengthBin] | None = Field(
        None,
        min_length=1,
        max_length=_MOST_BINS,
        description="Both lengths together, in place of all of these.",
    )
    growth_tokens: Tokens | None = Field(
        None,
        description="New prompt tokens of each request: the mean prompt follows from it, in place of "
        "input_tokens. [token]",
    )
    max_context_tokens: Tokens | None = Field(
        None, description="Longest context that must fit; absent: the mean prompt plus output. [token]"
    )
    system_prompt_tokens: int = Field(
        0,
        ge=0,
        le=MAX_CONTEXT_TOKENS,
        description="Tokens of a prompt shared by `system_prompt_share` of the requests. [token]",
    )
    system_prompt_share: Share = Field(
        1.0, description="Share of requests that begin with the system prompt. [1]"
    )
    system_prompts: list[SystemPrompt] = Field(
        [], max_length=1000, description="Further system prompts, each with its share of the requests."
    )
    turns: Number = Field(1.0, description="Mean user turns of a conversation. [turns]")
    think_s: Pause = Field(60.0, description="Mean pause between an answer and the next turn. [s]")
    documents: DocumentReuse | None = Field(None, description="Documents that prompts contain.")
    agent: AgentLoop | None = Field(None, description="Requests of an agent within a turn.")
    rps: Rate | None = Field(None, description="Mean rate of requests over a day; absent: saturated. [1/s]")
    hourly_shape: list[Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]] | None = Field(
        None,
        min_length=HOURS,
        max_length=HOURS,
        description="Rate of each hour of the day, in any unit; absent: the same all day. [1]",
    )

    _LENGTHS: ClassVar = ("input_tokens", "input_cv", "input_quantiles", "growth_tokens")
    _OUTPUTS: ClassVar = ("output_tokens", "output_cv", "output_quantiles")

    @property
    def calls(self) -> float:
        """Mean requests of a conversation. [requests]"""
        return self.turns * (self.agent.steps if self.agent else 1.0)

    @property
    def shared_tokens(self) -> float:
        """Mean tokens of system prompt and document. [token]"""
        documents = self.documents.tokens * self.documents.share if self.documents else 0.0
        prompts = sum(prompt.tokens * prompt.share for prompt in self.system_prompts)
        return self.system_prompt_tokens * self.system_prompt_share + prompts + documents

    def moments(self) -> LengthMoments:
        """Means, spreads and correlation of the two lengths, however they were given."""
        if self.histogram is not None:
            pairs = np.asarray([(one.input_tokens, one.output_tokens, one.share) for one in self.histogram])
            return sample_moments(*pairs.T.astype(np.float64))
        output, output_cv = float(self.output_tokens or 0), self.output_cv
        if self.output_quantiles is not None:
            output, output_cv = _moments(self.output_quantiles)
        if self.input_quantiles is not None:
            prompt, input_cv = _moments(self.input_quantiles)
        elif self.growth_tokens is not None:
            calls, input_cv = self.calls, self.input_cv
            prompt = self.shared_tokens + self.growth_tokens * (calls + 1) / 2 + output * (calls - 1) / 2
        else:
            prompt, input_cv = float(self.input_tokens or 0), self.input_cv
        return LengthMoments(
            input_tokens=prompt,
            output_tokens=output,
            input_cv=input_cv,
            output_cv=output_cv,
            length_correlation=self.length_correlation,
        )

    def stretched(self, factor_ratio: float, max_context_tokens: int) -> Self:
        """The same load with prompts, and all that they share, so many times as long; outputs stay as they are.

        Raises
        ------
        ValidationError
            So short that the parts no longer fit the whole.
        """

        def longer(tokens: int) -> int:
            return max(round(tokens * factor_ratio), 1)

        changes: dict[str, object] = {"max_context_tokens": max_context_tokens}
        if self.growth_tokens is not None:
            changes |= {"growth_tokens": None, "input_tokens": longer(round(self.moments().input_tokens))}
        elif self.input_tokens is not None:
            changes["input_tokens"] = longer(self.input_tokens)
        for name in ("input_quantiles", "system_prompts"):
            parts = getattr(self, name)
            if parts:
                changes[name] = [one.model_copy(update={"tokens": longer(one.tokens)}) for one in parts]
        if self.histogram is not None:
            changes["histogram"] = [
                one.model_copy(update={"input_tokens": longer(one.input_tokens)}) for one in self.histogram
            ]
        if self.system_prompt_tokens:
            changes["system_prompt_tokens"] = longer(self.system_prompt_tokens)
        if self.documents is not None:
            tokens = longer(self.documents.tokens)
            changes["documents"] = self.documents.model_copy(update={"tokens": tokens})
        given = {name: getattr(self, name) for name in self.model_fields_set} | changes
        return type(self).model_validate({name: value for name, value in given.items() if value is not None})

    @model_validator(mode="after")
    def lengths_are_given_once(self) -> Self:
        """One way to say how long prompts are, and one for outputs."""
        given = self.model_fields_set
        if self.histogram is not None:
            if twice := sorted(given & {*self._LENGTHS, *self._OUTPUTS, "length_correlation"}):
                raise ValueError(
                    f"histogram already says what {', '.join(twice)} would; give one or the other"
                )
            if abs(sum(one.share for one in self.histogram) - 1.0) > _ROUNDING:
                raise ValueError("the shares of histogram do not add up to 1; give each bin its part of all")
            return self
        for names, what in ((self._LENGTHS, "input"), (self._OUTPUTS, "output")):
            ways = [name for name in names if getattr(self, name) is not None and not name.endswith("_cv")]
            if len(ways) > 1:
                raise ValueError(f"{' and '.join(ways)} each say how long an {what} is; give one of them")
            if not ways:
                raise ValueError(
                    f"{what}_tokens is missing: give the mean {what} length, quantiles or a histogram"
                )
            quantiles = getattr(self, f"{what}_quantiles")
            if quantiles is not None:
                _refuse_falling(quantiles, f"{what}_quantiles", spread_too=f"{what}_cv" in given)
        return self

    @model_validator(mode="after")
    def parts_fit_the_whole(self) -> Self:
        """Shared parts are part of the prompt; the longest context is no shorter than the mean."""
        share = (self.system_prompt_share if self.system_prompt_tokens else 0.0) + sum(
            one.share for one in self.system_prompts
        )
        if share > 1.0 + _ROUNDING:
            raise ValueError(
                f"the shares of the system prompts add up to {share:g}; a request begins with at most one"
            )
        if self.hourly_shape is not None and not sum(self.hourly_shape):
            raise ValueError("hourly_shape is zero all day; give the rate of each hour in any unit")
        busiest = max(self.hourly_shape or [0.0])
        if any(0 < part < busiest * _LEAST_PART for part in self.hourly_shape or []):
            raise ValueError(
                f"hourly_shape has an hour of less than {_LEAST_PART:g} of the busiest; give 0 where nothing comes"
            )
        lengths = self.moments()
        prompt, output = lengths.input_tokens, lengths.output_tokens
        longest = max([self.system_prompt_tokens, *(one.tokens for one in self.system_prompts)])
        for name, tokens in (
            ("system_prompt_tokens", float(self.system_prompt_tokens)),
            ("the longest of system_prompts", float(longest)),
            ("the mean of system prompts and documents", self.shared_tokens),
        ):
            if tokens >= prompt:
                raise ValueError(
                    f"{name} is {tokens:g} but the whole prompt has {prompt:g} tokens; leave at least one "
                    f"token that is not shared"
                )
        if self.max_context_tokens is not None and self.max_context_tokens < prompt + output:
            raise ValueError(
                f"max_context_tokens is {self.max_context_tokens}, below the mean request of "
                f"{prompt:g} + {output:g} tokens; raise it"
            )
        return self


def _moments(quantiles: list[Quantile]) -> tuple[float, float]:
    table = np.asarray([(one.share, one.tokens) for one in quantiles], dtype=np.float64)
    return quantile_moments(table[:, 0], table[:, 1])


def _refuse_falling(quantiles: list[Quantile], name: str, *, spread_too: bool) -> None:
    if not quantiles:
        raise ValueError(f"{name} is empty; give at least one")
    if spread_too:
        raise ValueError(
            f"{name} already say how much lengths spread; leave the coefficient of variation out"
        )
    for before, after in pairwise(quantiles):
        if after.share <= before.share or after.tokens < before.tokens:
            raise ValueError(
                f"{name} fall from {before.tokens} tokens at {before.share:g} to {after.tokens} at "
                f"{after.share:g}; shares and tokens must rise"
            )
