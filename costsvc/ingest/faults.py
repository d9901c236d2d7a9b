"""What a schema refuses, in the user's words: one sentence for each field, with the way out where it is plain."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from costsvc.errors import InvalidRequest

_WHOLE: Final = "should be a whole number, in digits alone"
_NUMBER: Final = "should be a number, with a point before its decimals and no unit"
_DAY: Final = "should be a day, written like 2026-11-29"
_FIELDS: Final = "should be an object with named fields"
# What a kind of fault asks for, where its own words are those of a programmer.
_ASKS: Final[Mapping[str, str]] = {
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "float_parsing": _NUMBER,
    "decimal_parsing": _NUMBER,
    "bool_parsing": "should be on or off",
    "date_from_datetime_parsing": _DAY,
    "date_from_datetime_inexact": _DAY,
    "date_type": _DAY,
    "int_type": _WHOLE,
    "float_type": _NUMBER,
    "list_type": "should be a list",
    "model_type": _FIELDS,
    "dict_type": _FIELDS,
}
_WRITTEN: Final = re.compile(r"[$€£]?\s*(\d[\d.,'_ ]*?)\s*([%kKmM]?)")
_GROUPED: Final = re.compile(r"\d{1,3}([.,'_ ]\d{3})+")
_DECIMAL: Final = re.compile(r"\d+([.,]\d+)?")
_FACTORS: Final[Mapping[str, tuple[Decimal, ...]]] = {
    "": (Decimal(1),),
    "%": (Decimal("0.01"),),
    "k": (Decimal(1000), Decimal(1024)),
    "m": (Decimal(1000**2), Decimal(1024**2)),
}
# What people call parameters whose names spell otherwise.
_ALSO_CALLED: Final[Mapping[str, str]] = {
    "context_length": "ctx",
    "input": "ctx",
    "input_tokens": "ctx",
    "prompt": "ctx",
    "prompt_tokens": "ctx",
    "tokens": "ctx",
    "output_tokens": "output",
    "max_tokens": "output",
    "dtype": "weights",
    "precision": "weights",
    "quantization": "weights",
    "kv_dtype": "kv",
    "cache": "kv",
    "engine": "stack",
    "accelerator": "gpu",
    "cloud": "provider",
    "date": "as_of",
    "day": "as_of",
    "price": "price_usd_per_gpu_hour",
    "qps": "rps",
    "requests_per_second": "rps",
    "cache_hit_rate": "hit_rate",
    "itl_ms": "tpot_ms",
    "latency_ms": "tpot_ms",
}
_LONGEST_NUMBER: Final = 30
_SHOWN: Final = 60


def invalid_request(error: ValidationError, schema: type[BaseModel]) -> InvalidRequest:
    """A validation error of a schema as the error that its caller reads."""
    faults = [
        {"field": _field(fault, schema) or None, "detail": _sentence(fault, schema)}
        for fault in error.errors()
    ]
    return InvalidRequest(
        " ".join(f"{fault['detail']}" for fault in faults),
        field=faults[0]["field"],
        details={"errors": faults},
    )


def nearest_parameters(name: str, known: Sequence[str]) -> list[str]:
    """Known parameters that a name may have been meant as."""
    also = _ALSO_CALLED.get(name.lower(), name)
    return [also] if also in known else get_close_matches(name, known, n=3)


def readings(text: str, *, whole: bool) -> list[str]:
    """Numbers that a text with separators, a per cent sign, a currency sign, k or M may mean.

    Examples
    --------
    >>> [readings(text, whole=True) for text in ("8,192", "128k", "many")]
    [['8192'], ['128000', '131072'], []]
    >>> [readings(text, whole=False) for text in ("80%", "$2,50", "1,250")]
    [['0.8'], ['2.5'], ['1250', '1.25']]
    """
    found = _WRITTEN.fullmatch(text.strip()[:_LONGEST_NUMBER])
    if found is None:
        return []
    digits, unit = found.groups()
    spellings = [re.sub(r"\D", "", digits)] if _GROUPED.fullmatch(digits) else []
    if not (whole and spellings) and _DECIMAL.fullmatch(digits):
        spellings.append(digits.replace(",", "."))
    factors = _FACTORS[unit.lower()]
    numbers = [(Decimal(one) * factor).normalize() for one in spellings for factor in factors]
    return [f"{number:f}" for number in numbers if not whole or number == number.to_integral_value()]


def _sentence(fault: Any, schema: type[BaseModel]) -> str:
    name, kind = _name(fault), fault["type"]
    if kind == "value_error":
        complaint = str(fault["ctx"]["error"])
        return complaint if complaint.endswith((".", "?")) else f"{complaint}."
    if kind == "missing":
        return f"{name} is missing."
    if kind == "extra_forbidden":
        return f"There is no field '{name}'. {_known_fields(fault, schema)}"
    return f"{name} {_given(fault, schema)}."


def complaint_of(fault: Any, schema: type[BaseModel]) -> str:
    """The same beside the name of the field, as a refusal of a catalog file has it."""
    kind = fault["type"]
    if kind == "extra_forbidden":
        return f"there is no such field. {_known_fields(fault, schema)}"
    if kind == "missing":
        return "is missing"
    if kind in ("value_error", "mistake"):
        return str(fault["msg"]).removeprefix("Value error, ")
    return _given(fault, schema)


def _given(fault: Any, schema: type[BaseModel]) -> str:
    return f"is {_shown(fault['input'])}; it {_asked(fault, schema)}"


def _asked(fault: Any, schema: type[BaseModel]) -> str:
    """What a field should be, with what the given one may have been meant as."""
    kind, given = fault["type"], fault["input"]
    if kind == "string_pattern_mismatch":
        examples = [one for field in _fields(fault, schema) for one in field.examples or ()]
        if examples:
            return f"should be written like {examples[0]}"
    if asks := _ASKS.get(kind):
        near = readings(given, whole=asks is _WHOLE) if isinstance(given, str) else []
        return f"{asks}, such as {' or '.join(near)}" if near else asks
    message = re.sub(r"^(Input|String|List|Tuple|Dictionary|Value) (?=should |must )", "", fault["msg"])
    if 1 in (fault.get("ctx", {}).get("le"), fault.get("ctx", {}).get("lt")):
        message = f"{message}: 80 % is 0.8"
    if message[0].isupper():
        message = f"is refused: {message[0].lower()}{message[1:]}"
    return message


def _known_fields(fault: Any, schema: type[BaseModel]) -> str:
    known = [name for holder in _holders(fault, schema) for name in holder.model_fields]
    near = get_close_matches(str(fault["loc"][-1]), known, n=1)
    return f"Did you mean '{near[0]}'?" if near else f"Known are: {', '.join(known)}."


def _field(fault: Any, schema: type[BaseModel]) -> str:
    """Where a fault is; a contradiction between parameters begins with the one to change."""
    name = _name(fault)
    if name or fault["type"] != "value_error":
        return name
    first = re.match(r"\w+", str(fault["ctx"]["error"]))
    return first[0] if first and first[0] in schema.model_fields else ""


def _name(fault: Any) -> str:
    # Tags of unions stand in braces; a user has written none of them.
    return ".".join(str(part) for part in fault["loc"] if not str(part).startswith("{"))


def _holders(fault: Any, schema: type[BaseModel]) -> list[type[BaseModel]]:
    """The schemas that the last part of a fault's place may be a field of."""
    holders = [schema]
    for part in fault["loc"][:-1]:
        fields = [holder.model_fields[part] for holder in holders if part in holder.model_fields]
        if fields:
            holders = [inner for field in fields for inner in _schemas(field.annotation)]
    return holders


def _fields(fault: Any, schema: type[BaseModel]) -> list[FieldInfo]:
    last = fault["loc"][-1]
    return [holder.model_fields[last] for holder in _holders(fault, schema) if last in holder.model_fields]


def _schemas(annotation: Any) -> Iterator[type[BaseModel]]:
    """The schemas inside a type, such as a list or a union of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _schemas(inner)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
