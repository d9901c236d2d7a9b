"""Mixers whose memory does not grow with the context."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from costsvc.engine.attention.base import FLOP_PER_MULTIPLY_ADD, Floats, Mixer


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentState(Mixer):
    """A mixer whose memory does not grow: Mamba, gated delta networks, linear attention, short convolution.

    Parameters
    ----------
    variant : str
        The mechanism's name, for the reader.
    state_values, conv_values : int
        Recurrent and convolution state of one sequence. [values]
    state_value_bytes, conv_value_bytes : float
        Bytes per value of each; engines keep the recurrent state wider than the cache. [B]
    parameters : int
        All parameters of the mixer; they split over TP. [parameters]

    References
    ----------
    .. [1] Dao and Gu, "Transformers are SSMs," ICML 2024, arXiv:2405.21060, section 7 (state size).
    """

    variant: Literal["mamba1", "mamba2", "gdn", "kda", "lightning", "shortconv"]
    state_values: int
    conv_values: int
    parameters: int
    state_value_bytes: float = 4.0
    conv_value_bytes: float = 2.0
    kind: Literal["recurrent"] = "recurrent"

    keeps_tokens: ClassVar[bool] = False

    def kv_values(self, context_tokens: Floats) -> Floats:
        """Nothing grows with the context. [values]"""
        return 0.0 * context_tokens

    def state_bytes(self) -> float:
        """Memory of a sequence that does not grow with it. [B]"""
        return self.state_values * self.state_value_bytes + self.conv_values * self.conv_value_bytes

    def kv_share(self, tp: Floats) -> Floats:
        """The state splits over heads. [1]"""
        return 1.0 / tp

    def visible_integral(self, position: Floats) -> Floats:
        """No token is visible. [token^2]"""
        return 0.0 * position

    def read_values(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """No cache is read; the state's bytes are counted by `state_bytes`. [values]"""
        return 0.0 * visible_tokens

    def decode_flops(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """Update and read of the state for one token: three multiply-adds per value. [FLOP]"""
        return 3 * FLOP_PER_MULTIPLY_ADD * self.state_values + 0.0 * visible_tokens

    def prefill_flops(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """The same for one prompt token. [FLOP]"""
        return self.decode_flops(visible_tokens, context_tokens)

    def sharded_parameters(self, hidden_size: int) -> int:
        """All parameters of the mixer. [parameters]"""
        return self.parameters

    def replicated_parameters(self, hidden_size: int) -> int:
        """None. [parameters]"""
        return 0
