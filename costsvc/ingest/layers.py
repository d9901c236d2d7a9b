"""The order of a model's layers as one line: `10*(5*sliding+dense, full+dense), 2*sliding+dense`.

A layer is a mixer, a feed-forward block, or both joined by `+`; `n*layer` and `n*(…)` repeat.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

_TOKEN = re.compile(r"\s*(?:(\d+)\s*\*|([a-z][a-z0-9_-]*(?:\+[a-z][a-z0-9_-]*)?)|([(),]))")
MOST_LAYERS = 1000
LONGEST_PERIOD = 64


class Layer(NamedTuple):
    """Names of a layer's mixer and feed-forward block; one of them may be missing."""

    attention: str | None
    ffn: str | None


def layer_order(text: str, attention: set[str], ffn: set[str]) -> list[Layer]:
    """The layers that `text` spells out, in order.

    Raises
    ------
    ValueError
        The text does not follow the grammar, or names a block that is not defined.

    Examples
    --------
    >>> [layer.attention for layer in layer_order("2*(local+mlp, full+mlp)", {"local", "full"}, {"mlp"})]
    ['local', 'full', 'local', 'full']
    """
    tokens = _tokens(text)
    names = _sequence(tokens)
    if tokens:
        raise ValueError(f"'{tokens[0]}' is not expected in the layers")
    layers = {name: _layer(name, attention, ffn) for name in dict.fromkeys(names)}
    return [layers[name] for name in names]


def spelled(layers: Sequence[str]) -> str:
    """The shortest such line for these layers, as far as repeating neighbours shorten it.

    Examples
    --------
    >>> spelled(["local", "local", "full"] * 4 + ["local"])
    '4*(2*local, full), local'
    """
    parts: list[str] = []
    start = 0
    while start < len(layers):
        period, times = _repetition(layers[start:])
        item = layers[start] if period == 1 else f"({spelled(layers[start : start + period])})"
        parts.append(f"{times}*{item}" if times > 1 else item)
        start += period * times
    return ", ".join(parts)


def _repetition(layers: Sequence[str]) -> tuple[int, int]:
    """Length and number of the repeats at the beginning that cover most, of these the shortest."""
    best = (1, 1)
    for period in range(1, min(len(layers) // 2, LONGEST_PERIOD) + 1):
        times = 1
        while layers[times * period : (times + 1) * period] == layers[:period]:
            times += 1
        if times > 1 and period * times > best[0] * best[1]:
            best = (period, times)
    return best


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"The layers cannot be read at '{text[position:].strip()[:20]}'")
        times, name, sign = match.groups()
        tokens.append(f"{times}*" if times else name or sign)
        position = match.end()
    return tokens


def _sequence(tokens: list[str]) -> list[str]:
    names = _item(tokens)
    while tokens and tokens[0] == ",":
        tokens.pop(0)
        names += _item(tokens)
    if len(names) > MOST_LAYERS:
        raise ValueError(f"A model has at most {MOST_LAYERS} layers")
    return names


def _item(tokens: list[str]) -> list[str]:
    if not tokens:
        raise ValueError("The layers end where another layer is expected")
    first = tokens.pop(0)
    if first.endswith("*"):
        times = int(first[:-1])
        if not 0 < times <= MOST_LAYERS:
            raise ValueError(f"Layers repeat 1 to {MOST_LAYERS} times, not {times}")
        return _item(tokens) * times
    if first == "(":
        names = _sequence(tokens)
        if not tokens or tokens.pop(0) != ")":
            raise ValueError("A bracket in the layers is not closed")
        return names
    if first in "),":
        raise ValueError(f"'{first}' is not expected in the layers")
    return [first]


def _layer(name: str, attention: set[str], ffn: set[str]) -> Layer:
    mixer, _, block = name.partition("+")
    if not block:
        if (mixer in attention) == (mixer in ffn):
            raise ValueError(f"The layer '{name}' is defined under neither or both of attention and ffn")
        return Layer(mixer, None) if mixer in attention else Layer(None, mixer)
    if mixer not in attention:
        raise ValueError(f"The layers name '{mixer}', which attention does not define")
    if block not in ffn:
        raise ValueError(f"The layers name '{block}', which ffn does not define")
    return Layer(mixer, block)
