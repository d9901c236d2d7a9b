"""What a description of a model family can say: how its class builds what the configuration only names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from costsvc.ingest.hugging_face.fields import Fields

Bias: TypeAlias = Literal["none", "qkv", "qkvo"]
Norm: TypeAlias = Literal["none", "head", "full"]
Gate: TypeAlias = Literal["none", "full", "head"]
Mixer: TypeAlias = Literal["heads", "latent", "compressed"]
Recurrent: TypeAlias = Literal[
    "", "mamba1", "mamba2", "gated_delta", "kimi_delta", "lightning", "short_convolution"
]
ExpertRule: TypeAlias = Literal[
    "", "always", "first_dense", "step", "interleaved", "period", "range", "dense_layers", "flagged"
]
Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch(Generic[Value_co]):
    """One of two forms, by a flag of the configuration; `default` is the class's where the flag is absent."""

    flag: str
    on: Value_co
    off: Value_co
    default: bool = False

    def of(self, fields: Fields) -> Value_co:
        """The form that a configuration has."""
        return self.on if fields.flag(self.flag, default=self.default) else self.off


@dataclass(frozen=True, slots=True, kw_only=True)
class Worded(Generic[Value_co]):
    """One of several forms, by a word of the configuration; `default` is the class's where it is absent."""

    field: str
    default: str
    forms: Mapping[str, Value_co]

    def of(self, fields: Fields) -> Value_co:
        """The form that a configuration has."""
        word = fields.text(self.field) or self.default
        if word not in self.forms:
            fields.refuse((self.field,), f"'{word}'; known are {', '.join(self.forms)}")
        fields.note(self.field, word, self.field)
        return self.forms[word]


Form: TypeAlias = Value | Switch[Value] | Worded[Value]


def form(fields: Fields, said: Form[Value]) -> Value:
    """A form that a family fixes, or that the configuration chooses."""
    return said.of(fields) if isinstance(said, Switch | Worded) else said


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """How attention with heads is built.

    Parameters
    ----------
    head_dim, kv_heads : int or None
        What the class takes where the configuration is silent. Without `head_dim` it takes the hidden size over
        the heads; without `kv_heads` they must be stated; "all": one per query head.
    single_kv_head : str
        The flag that leaves one head of keys and values (multi-query attention).
    of_kind : mapping
        Other names of the shape fields in one kind of layer, tried before the usual ones.
    decisive : mapping
        Fields that must be stated where there is such a layer, if only as null: the class takes another width.
    values_are_keys : str
        The flag that lets one projection make keys and values, in full layers.
    """

    bias: Form[Bias] = "none"
    qk_norm: Form[Norm] = "none"
    output_gate: Form[Gate] = "none"
    sinks: Mapping[str, Form[bool]] = field(default_factory=dict)
    head_dim: int | None = None
    kv_heads: int | Literal["all"] | None = None
    single_kv_head: str = ""
    of_kind: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    decisive: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    values_are_keys: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """How feed-forward blocks are built.

    Parameters
    ----------
    experts : str
        The rule that says which layers have experts.
    width, dense_width : tuple of str
        Fields that hold the inner size of an expert, and of a dense block.
    dense_ratio : int or None
        A dense block's inner size over the hidden size, where no field states it.
    dense_size : callable or None
        A dense block's inner size from the stated one, where the class changes it.
    shares : bool
        The class has shared experts, so that the configuration must say how many or how large.
    shared : tuple of str
        Fields that hold the inner size of all shared experts together, tried before their number.
    shared_gate : bool
        A vector per layer scales the shared experts.
    """

    gated: bool = True
    bias: Form[bool] = False
    experts: ExpertRule = ""
    width: tuple[str, ...] = ("moe_intermediate_size",)
    dense_width: tuple[str, ...] = ("intermediate_size",)
    dense_ratio: int | None = None
    dense_size: Callable[[Fields, int], int] | None = None
    shares: bool = False
    shared: tuple[str, ...] = ()
    shared_gate: bool = False
    router_bias: Form[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """How a multi-token-prediction layer is built: a layer of full attention, and what joins it to the model.

    Parameters
    ----------
    counted_by : tuple of str
        Fields that hold the number of such layers.
    joins : int
        Matrices of the hidden size squared that join the hidden state and the next token.
    norm_vectors : int
        Norms beside the layer's own.
    tables : int
        Copies of the token tables in the released file.
    dense : bool
        The layer's block is dense where others have experts.
    """

    counted_by: tuple[str, ...] = ("num_nextn_predict_layers",)
    joins: int = 2
    norm_vectors: int = 3
    tables: int = 0
    dense: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What every layer shares."""

    hidden_size: int
    vocab_size: int
    layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The classes of one or more values of `model_type`, whose layers are built alike.

    Parameters
    ----------
    order : tuple of str or callable
        Rules for the kind of each layer; the first that the configuration states holds, else all are `otherwise`;
        where that is empty the configuration must state one.
    indexed : bool
        An indexer picks the tokens of latent attention, so that the configuration must say how.
    value_dim_from_hidden_size : bool
        A value head of latent attention is the hidden size over the heads where no field states it.
    tied : bool or None
        What the class takes where the configuration is silent; None where only the configuration may say.
    norm_vectors, final_norm_vectors : int
        Vectors of the hidden size that norms hold: in a layer, and after the last one.
    position_offset : int or None
        Learned positions, this many more than the longest context; None: positions are not learned.
    further : callable
        Further text parameters. [parameters]
    head_bias : bool or Switch
        The language-model head has a bias.
    mtp : Prediction or None
        How prediction layers are built; None: what a configuration says of them is not counted.
    defaults : mapping
        What the class takes where a nested section is silent.
    merged : tuple of str
        Sections whose fields count as the configuration's own.
    """

    types: tuple[str, ...]
    order: tuple[str | Callable[[Fields, int], list[str] | None], ...] = ()
    otherwise: str = "full"
    mixer: Form[Mixer] = "heads"
    value_dim_from_hidden_size: bool = False
    indexed: bool = False
    recurrent: Recurrent = ""
    heads: Heads = Heads()
    blocks: Blocks = Blocks()
    tied: bool | None = False
    norm_vectors: Form[int] | Callable[[Fields], int] = 2
    final_norm_vectors: int = 1
    position_offset: int | None = None
    further: Callable[[Fields, Sizes], int] | None = None
    head_bias: Form[bool] = False
    mtp: Prediction | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    merged: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
