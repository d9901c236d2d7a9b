"""What a launch check is asked: a quote's parameters, who will use the feature, and what runs today."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from costsvc.quoting.evaluate import validated
from costsvc.quoting.request import QuoteRequest, Text, Tokens, Width

ANY_GPU = "any"

Positive = Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False)]


class LaunchRequest(QuoteRequest):
    """A feature before launch: the quote it needs, its users, and today's configuration."""

    gpu: Text = Field(description="GPU id or alias, or `any`: the one on which a request costs least.")
    users: Positive | None = Field(
        None, description="People using the feature at one time; rps follows by Little's law. [users]"
    )
    pause_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] | None = Field(
        None, description="Pause of a user between an answer and the next request; absent: an assumption. [s]"
    )
    peak_ratio: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] | None = Field(
        None, description="Busiest hour over the mean; absent: of the profile, else an assumption. [1]"
    )
    today_ctx: Tokens | None = Field(
        None,
        description="Context per request today, for comparison; absent: an assumption, or a profile's own mean "
        "where that is shorter. [token]",
    )
    today_output: Tokens | None = Field(
        None, description="Output tokens today; absent: as the feature's. [token]"
    )
    today_gpu: Text | None = Field(None, description="GPU today; absent: the feature's.")
    today_gpus: Width | None = Field(None, description="GPUs of one replica today; absent: the cheapest.")
    today_weights: Text | None = Field(None, description="Weight dtype today; absent: the feature's.")
    today_kv: Text | None = Field(None, description="KV-cache dtype today; absent: the feature's.")

    @model_validator(mode="after")
    def says_how_much_traffic(self) -> Self:
        """Users or a rate, in one way."""
        if self.users is not None and self.rps is not None:
            raise ValueError("users and rps each say how much traffic comes; give one of them")
        if self.users is None and self.rps is None and self.profile is None:
            raise ValueError("users or rps is missing: how many people, or requests per second, will come?")
        if self.pause_s is not None and self.users is None:
            raise ValueError("pause_s needs users: it is the pause of a user")
        return self

    def feature(self, gpu: str) -> QuoteRequest:
        """The quote of the feature on one GPU, saturated: rates come later."""
        return validated({**self._given(), "gpu": gpu})

    def today(
        self, gpu: str, today_context_tokens: int, output_tokens: int, hit_share: float
    ) -> QuoteRequest:
        """The quote of what runs today, with the feature's objectives, prices and stack.

        Parameters
        ----------
        output_tokens : int
            Fewer than the context. [token]
        hit_share : float
            Share of the prompt that the feature finds in its prefix cache, where that follows from its
            traffic: today's requests are shorter, but begin as much alike. Of theirs, too, at least one token
            is computed. [1]
        """
        dropped = ("profile", "prefix_tokens", "prefix_share", "turns", "think_s", "retention_s")
        tiers = ("dram_gb_per_gpu", "nvme_gb_per_gpu", "object_gb_per_gpu")
        layout = ("gpus", "tp", "pp", "ep", "dp")
        given = {
            name: value for name, value in self._given().items() if name not in (*dropped, *tiers, *layout)
        }
        own = {"gpus": self.today_gpus, "weights": self.today_weights, "kv": self.today_kv}
        given |= {name: value for name, value in own.items() if value is not None}
        traffic: dict[str, float] = {"output": output_tokens}
        if found := hit_share or self.hit_rate:
            traffic["hit_rate"] = min(found, 1.0 - 1.0 / max(today_context_tokens - output_tokens, 1))
        return validated({**given, **traffic, "gpu": self.today_gpu or gpu, "ctx": today_context_tokens})

    def _given(self) -> dict[str, object]:
        names = self.model_fields_set & set(QuoteRequest.model_fields)
        return {name: getattr(self, name) for name in names - {"rps", "gpu", "trace"}}
