"""The members of a configuration, read strictly: what was read is remembered, so that what was not shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from costsvc.errors import ConfigNotUnderstood

LARGEST_COUNT: Final = 1_000_000_000
_SHOWN_CHARACTERS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """One thing that was inferred, and what from."""

    what: str
    value: object
    read_from: str


class Fields:
    """One section of a configuration.

    A value that several spellings name must be the same in each; null is as good as absent.

    Parameters
    ----------
    place : str
        Where the section stands in the whole, such as `text_config.`.
    defaults : mapping
        What the model class takes where a nested section is silent: files of composite models leave out
        what equals the class.
    """

    def __init__(
        self, values: Mapping[str, Any], place: str = "", defaults: Mapping[str, Any] | None = None
    ) -> None:
        self._values = values
        self._place = place
        self._defaults = dict(defaults or {})
        self._read: set[str] = set()
        self.inferences: list[Inference] = []

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def any(self, *names: str) -> Any:
        """The value under one of these names, unchecked; None where there is none."""
        self._read.update(names)
        found = {name: self._values[name] for name in names if self._values.get(name) is not None}
        if len({repr(value) for value in found.values()}) > 1:
            said = ", ".join(f"{self._place}{name} is {shown(value)}" for name, value in found.items())
            raise ConfigNotUnderstood(
                f"The configuration contradicts itself: {said}. Keep the one that the weights have.",
                field=self._place + next(iter(found)),
            )
        if found:
            return next(iter(found.values()))
        return next((self._defaults[name] for name in names if self._defaults.get(name) is not None), None)

    def count(self, *names: str, least: int = 1, most: int = LARGEST_COUNT) -> int:
        """A whole number that must be there."""
        value = self.count_or_none(*names, least=least, most=most)
        if value is None:
            self.missing(*names)
        return value

    def count_or_none(self, *names: str, least: int = 1, most: int = LARGEST_COUNT) -> int | None:
        """A whole number, or None where none is stated."""
        value = self.any(*names)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.refuse(names, f"{shown(value)}; it must be a whole number from {least:,} to {most:,}")
        self.note(names[0], value, *names)
        return value

    def first_count(self, *names: str, least: int = 1, most: int = LARGEST_COUNT) -> int | None:
        """The first of several fields that is stated; the others may differ and count as understood."""
        found = None
        for name in names:
            if found is None:
                found = self.count_or_none(name, least=least, most=most)
        self.ignore(*names)
        return found

    def flag(self, *names: str, default: bool) -> bool:
        """Yes or no; `default` is what the model class takes where the configuration is silent."""
        value = self.any(*names)
        if value is None:
            self.note(names[0], default, because="not stated; the default of the model class")
            return default
        if not isinstance(value, bool):
            self.refuse(names, f"{shown(value)}; it must be true or false")
        self.note(names[0], value, *names)
        return value

    def on(self, name: str) -> bool:
        """Whether a flag that few families have is stated and true."""
        return name in self and self.flag(name, default=False)

    def text(self, *names: str) -> str | None:
        """A word, or None where none is stated."""
        value = self.any(*names)
        if value is not None and not isinstance(value, str):
            self.refuse(names, f"{shown(value)}; it must be a text")
        return value

    def per_layer(self, name: str, layers: int, kind: type[Any]) -> list[Any] | None:
        """A list with one value of a kind per layer, or None where none is stated."""
        value = self.any(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(
            isinstance(one, kind) and not (kind is int and isinstance(one, bool)) for one in value
        ):
            self.refuse((name,), f"{shown(value)}; it must be a list with one {kind.__name__} per layer")
        if len(value) != layers:
            self.refuse((name,), f"a list of {len(value)}, but there are {layers} layers")
        return value

    def indices(self, name: str, layers: int) -> frozenset[int] | None:
        """Layers by number, from 0."""
        value = self.any(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(one) is int and 0 <= one < layers for one in value):
            self.refuse((name,), f"{shown(value)}; it must list layers from 0 to {layers - 1}")
        return frozenset(value)

    def section(self, name: str) -> "Fields | None":
        """A nested object, or None where there is none."""
        value = self.any(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.refuse((name,), f"{shown(value)}; it must be an object")
        nested = Fields(value, f"{self._place}{name}.")
        nested.inferences = self.inferences
        return nested

    def note(self, what: str, value: object, *names: str, because: str = "") -> None:
        """Remember an inference: from the first of `names` that is stated, or for the given reason."""
        stated = next((name for name in names if self._values.get(name) is not None), None)
        origin = because or (
            f"{self._place}{stated}" if stated else "not stated; the default of the model class"
        )
        self.inferences.append(Inference(what=what, value=value, read_from=origin))

    def ignore(self, *names: str) -> None:
        """Count fields as understood that change nothing here."""
        self._read.update(names)

    def merged(self, *sections: str) -> "Fields":
        """The same with the members of nested sections as members of its own."""
        values = dict(self._values)
        for name in sections:
            nested = values.pop(name, None)
            if isinstance(nested, dict):
                values.update({part: value for part, value in nested.items() if part not in self._values})
        merged = Fields(values, self._place, self._defaults)
        merged.inferences = self.inferences
        return merged

    def must_state(self, *names: str) -> None:
        """Refuse a configuration with none of these fields; null says that there is no such thing."""
        if not any(name in self._values or name in self._defaults for name in names):
            self.missing(*names)

    def unread(self) -> list[str]:
        """Names of what was stated and never read; null, false, zero and empty values say that something is not."""
        return [name for name, value in self._values.items() if name not in self._read and value]

    def value(self, name: str) -> Any:
        """What stands under a name, without counting it as read."""
        return self._values.get(name)

    def placed(self, name: str) -> str:
        """The name with its place in the whole."""
        return f"{self._place}{name}"

    def missing(self, *names: str) -> NoReturn:
        """Refuse a configuration that lacks a decisive field."""
        also = f" (also spelled {', '.join(names[1:])})" if len(names) > 1 else ""
        raise ConfigNotUnderstood(
            f"The configuration does not state {self._place}{names[0]}{also}, and nothing else in it decides "
            f"the value. Add it as the model has it.",
            field=self._place + names[0],
        )

    def refuse(self, names: Sequence[str], complaint: str) -> NoReturn:
        """Refuse the value of a field."""
        stated = next((name for name in names if self._values.get(name) is not None), names[0])
        raise ConfigNotUnderstood(
            f"In the configuration {self._place}{stated} is {complaint}. Correct it as the model has it.",
            field=self._place + stated,
        )


def shown(value: object) -> str:
    """A value from outside, short and on one line."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
