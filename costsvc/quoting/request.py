"""What a user may ask of a quote: names, bounds and meaning of every parameter, said once.

The service, the command line and the batch calls all read their input through `parse_request`.
"""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from costsvc.db.entries import Market
from costsvc.errors import InvalidRequest, UnknownParameter

MAX_CONTEXT_TOKENS = 100_000_000
MAX_GPUS = 4096

Text = Annotated[str, Field(min_length=1, max_length=200)]
Tokens = Annotated[int, Field(ge=1, le=MAX_CONTEXT_TOKENS)]
Width = Annotated[int, Field(ge=1, le=MAX_GPUS)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class TrafficProfile(BaseModel):
    """Where a load's lengths and its sharing come from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input_tokens: Tokens = Field(description="Mean prompt length, shared parts included. [token]")
    output_tokens: Tokens = Field(description="Mean output length. [token]")
    input_cv: float = Field(
        0.0,
        ge=0,
        le=10,
        allow_inf_nan=False,
        description="Coefficient of variation of the prompt length. [1]",
    )
    output_cv: float = Field(
        0.0,
        ge=0,
        le=10,
        allow_inf_nan=False,
        description="Coefficient of variation of the output length. [1]",
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
    turns: float = Field(
        1.0,
        ge=1,
        le=10_000,
        allow_inf_nan=False,
        description="Mean number of requests in a conversation. [requests]",
    )
    think_s: float = Field(
        60.0,
        gt=0,
        le=30 * 86_400,
        allow_inf_nan=False,
        description="Mean pause between an answer and the next request. [s]",
    )

    @model_validator(mode="after")
    def parts_fit_the_whole(self) -> Self:
        """A shared prompt is part of the prompt; the longest context is no shorter than the mean."""
        if self.system_prompt_tokens >= self.input_tokens:
            raise ValueError(
                f"system_prompt_tokens is {self.system_prompt_tokens} but the whole prompt has "
                f"{self.input_tokens} tokens; leave at least one token that is not shared"
            )
        if (
            self.max_context_tokens is not None
            and self.max_context_tokens < self.input_tokens + self.output_tokens
        ):
            raise ValueError(
                f"max_context_tokens is {self.max_context_tokens}, below the mean request of "
                f"{self.input_tokens} + {self.output_tokens} tokens; raise it"
            )
        return self


class QuoteRequest(BaseModel):
    """One quote, as asked. Absent parameters are chosen by the use case and echoed in the answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Text = Field(description="Model id or alias (Hugging Face id, common spelling).")
    gpu: Text = Field(description="GPU id or alias; `h100` is the H100 SXM 80GB.")
    ctx: Tokens | None = Field(
        None,
        description="Context per request, prompt plus output. Required unless a profile is given. [token]",
    )
    output: Tokens | None = Field(
        None, description="Output tokens; absent: 512, or a quarter of ctx if that is less. [token]"
    )
    gpus: Width | None = Field(None, description="GPUs of one replica; absent: the cheapest feasible number.")
    tp: Width | None = Field(None, description="Tensor parallelism.")
    pp: Width | None = Field(None, description="Pipeline parallelism.")
    ep: Width | None = Field(None, description="Expert parallelism.")
    dp: Width | None = Field(None, description="Attention data-parallelism.")
    weights: Text | None = Field(None, description="Weight dtype; absent: as released.")
    kv: Text | None = Field(None, description="KV-cache dtype; absent: 16-bit.")
    stack: Text | None = Field(None, description="Serving stack; absent: generic.")
    mode: Literal["colocated", "disaggregated"] = Field(
        "colocated", description="One pool, or a prefill pool and a decode pool."
    )
    allocation: Literal["paged", "contiguous"] = Field("paged", description="How KV memory is reserved.")
    kv_cache: bool = Field(
        True, description="off: every step recomputes the whole prefix (a counterfactual)."
    )
    profile: TrafficProfile | None = Field(
        None, description="A traffic profile (POST only), in place of ctx and output."
    )
    prefix_tokens: int | None = Field(
        None, ge=0, le=MAX_CONTEXT_TOKENS, description="Shared system prompt. [token]"
    )
    prefix_share: Share | None = Field(
        None, description="Share of requests with the system prompt; absent: 1. [1]"
    )
    turns: float | None = Field(
        None, ge=1, le=10_000, allow_inf_nan=False, description="Requests in a conversation; absent: 1."
    )
    think_s: float | None = Field(
        None,
        gt=0,
        le=30 * 86_400,
        allow_inf_nan=False,
        description="Pause between turns; absent: an assumption. [s]",
    )
    hit_rate: float | None = Field(
        None,
        ge=0,
        lt=1,
        allow_inf_nan=False,
        description="Share of input tokens found in the prefix cache; absent: 0. [1]",
    )
    rps: float | None = Field(
        None,
        gt=0,
        le=1e9,
        allow_inf_nan=False,
        description="Offered requests per second; absent: saturated. [1/s]",
    )
    ttft_ms: float | None = Field(
        None, gt=0, le=1e9, allow_inf_nan=False, description="Objective for the time to first token. [ms]"
    )
    tpot_ms: float | None = Field(
        None, gt=0, le=1e9, allow_inf_nan=False, description="Objective for the time per output token. [ms]"
    )
    slo: Literal["interactive", "strict", "batch"] = Field(
        "interactive",
        description="interactive: TPOT <= 50 ms; strict: TPOT <= 25 ms and TTFT <= 1 s; batch: none.",
    )
    price_usd_per_gpu_hour: Decimal | None = Field(
        None,
        gt=0,
        le=Decimal(1_000_000),
        allow_inf_nan=False,
        description="Your own GPU price, in place of the catalog's. [USD/h]",
    )
    provider: Text | None = Field(None, description="Price of this provider; absent: the reference price.")
    market: Market = Field("on-demand", description="Market of the GPU price.")
    region: Text | None = Field(None, description="Region of the offers.")
    utilization: float | None = Field(
        None,
        gt=0,
        le=1,
        allow_inf_nan=False,
        description="Share of the saturated rate that is sold (headroom where rps is given). [1]",
    )
    margin: float = Field(
        0.0, ge=0, le=100, allow_inf_nan=False, description="Added on cost: 0.2 is 20 %. [1]"
    )
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = Field(
        "USD", description="ISO code; other than USD needs fx_rate."
    )
    fx_rate: Decimal | None = Field(
        None, gt=0, le=Decimal(1_000_000_000), allow_inf_nan=False, description="Units of currency per USD."
    )
    as_of: date | None = Field(None, description="Day whose prices are used; absent: today (UTC).")
    revision: int | None = Field(None, ge=1, description="Catalog revision; absent: the newest.")
    attribution: Literal["marginal", "step", "pools"] = Field("marginal", description="Who pays for what.")
    trace: bool = Field(False, description="Show every intermediate with formula, inputs and source.")

    @model_validator(mode="after")
    def parameters_agree(self) -> Self:
        """Contradictions between parameters, each in one sentence."""
        complaint = next((text for wrong, text in self._contradictions() if wrong), None)
        if complaint:
            raise ValueError(complaint)
        return self

    def _contradictions(self) -> list[tuple[bool, str]]:
        shaped = [
            n
            for n in ("ctx", "output", "prefix_tokens", "prefix_share", "turns", "think_s", "hit_rate")
            if getattr(self, n) is not None
        ]
        return [
            (
                self.ctx is None and self.profile is None,
                "ctx is missing: give the context per request in tokens, such as ctx=8192",
            ),
            (
                self.profile is not None and bool(shaped),
                f"profile already says what {', '.join(shaped)} would; give one or the other",
            ),
            (
                self.ctx is not None and self.output is not None and self.output >= self.ctx,
                f"output is {self.output} but ctx, prompt plus output, is {self.ctx}; raise ctx or lower output",
            ),
            (
                self.ctx == 1,
                "ctx is 1: a request needs at least one prompt and one output token; give ctx of 2 or more",
            ),
            (
                self.hit_rate is not None and (self.prefix_tokens is not None or self.turns is not None),
                "hit_rate is given and also what it would follow from (prefix_tokens, turns); give one or the other",
            ),
            (
                self.prefix_share is not None and self.prefix_tokens is None,
                "prefix_share needs prefix_tokens: how long is the shared prompt?",
            ),
            (
                self.think_s is not None and self.turns is None,
                "think_s needs turns: the pause is between the turns of a conversation",
            ),
            (
                self.currency != "USD" and self.fx_rate is None,
                f"currency is {self.currency} without fx_rate; give the units of {self.currency} per USD",
            ),
            (
                self.currency == "USD" and self.fx_rate is not None,
                "fx_rate is given but currency is USD; name the currency",
            ),
            (
                self.price_usd_per_gpu_hour is not None
                and (self.provider is not None or self.region is not None),
                "price_usd_per_gpu_hour replaces the catalog's price, so provider and region have no meaning; give one or the other",
            ),
            (
                self.attribution == "pools" and self.mode != "disaggregated",
                "attribution=pools needs mode=disaggregated: one pool has no separate bills",
            ),
            (
                not self.kv_cache and bool(self.hit_rate or self.prefix_tokens or self.turns),
                "kv_cache=off keeps nothing, so no prefix can be found in it; drop the prefix parameters",
            ),
        ]


PARAMETERS: tuple[str, ...] = tuple(QuoteRequest.model_fields)


def parse_request(given: Mapping[str, Any]) -> QuoteRequest:
    """Read a request from texts or JSON values.

    Parameters
    ----------
    given : mapping
        Parameter names to values; texts are converted, `on`/`off` included.

    Raises
    ------
    UnknownParameter
        A name that is not in `PARAMETERS`.
    InvalidRequest
        A value out of bounds or a contradiction; `details["errors"]` lists each field.
    """
    for name in given:
        if name not in QuoteRequest.model_fields:
            raise UnknownParameter(name, get_close_matches(name, PARAMETERS, n=3), PARAMETERS)
    try:
        return QuoteRequest.model_validate(dict(given))
    except ValidationError as error:
        raise invalid_request(error) from error


def invalid_request(error: ValidationError) -> InvalidRequest:
    """Say a validation error in the user's words: one sentence per field."""
    faults = [
        {"field": ".".join(str(part) for part in fault["loc"]), "detail": _sentence(fault)}
        for fault in error.errors()
    ]
    first = faults[0]
    return InvalidRequest(
        " ".join(f"{fault['detail']}" for fault in faults),
        field=first["field"] or None,
        details={"errors": faults},
    )


def _sentence(fault: Any) -> str:
    name = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "value_error":
        return f"{str(fault['ctx']['error']).capitalize() if not name else fault['ctx']['error']}."
    if fault["type"] == "missing":
        return f"{name} is missing."
    message = fault["msg"].removeprefix("Input ")
    return f"{name} is {_shown(fault['input'])}; it {message}."


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
