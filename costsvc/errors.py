"""Every error a user can meet, as one tree. No HTTP here: `api/problems.py` maps each kind once.

CostsvcError
├── InvalidRequest          the request itself is wrong: a bound, a contradiction, an unknown word
│   ├── UnknownParameter    no such parameter; the nearest known one is named
│   └── RepeatedParameter   a parameter that may stand once stands twice
├── NotInCatalog            no such id; the nearest ids are named
│   ├── Ambiguous           a spelling that means several ids; the candidates are named
│   └── NotStored           no such quote is kept for the owner of the key
├── Infeasible              the request is valid, but no price exists for it
│   ├── ContextTooLong      the context is beyond the model's maximum
│   ├── DoesNotFit          weights plus one sequence do not fit the memory
│   ├── SloUnreachable      no deployment meets the latency objective
│   ├── UnsupportedLayout   the parallelism does not divide the model, or the card lacks a kernel
│   ├── NoPriceInForce      no offer is in force on the day
│   └── NoRateInForce       no rate of the currency is in force on the day
├── ConfigNotUnderstood     a model's configuration lacks, contradicts or says what its import cannot decide
├── InvalidCatalogFile      a catalog file was refused: file, line and field are named
├── NotAuthorized           a key that is missing or not valid
├── IdempotencyConflict     the idempotency key was used for another request
├── RateLimited             more requests than one caller may make at a time
└── Unavailable             the catalog cannot be read now
    └── Overloaded          more work than the service can do now
"""

from collections.abc import Mapping, Sequence


class CostsvcError(Exception):
    """Base of all errors whose message may be shown to a user.

    Parameters
    ----------
    message : str
        What was asked, what is there, what to do next.
    field : str or None
        The parameter or field that caused it, where one did.
    details : mapping
        Further facts for a program, such as `needed_bytes`.
    """

    def __init__(
        self, message: str, *, field: str | None = None, details: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.details: dict[str, object] = dict(details or {})


class InvalidRequest(CostsvcError):
    """A parameter is out of bounds, contradicts another or is not a known word."""


class UnknownParameter(InvalidRequest):
    """A parameter that does not exist."""

    def __init__(self, name: str, nearest: Sequence[str], known: Sequence[str]) -> None:
        hint = f"Did you mean {_either(nearest)}?" if nearest else f"Known are: {', '.join(known)}."
        super().__init__(f"There is no parameter '{name}'. {hint}", field=name)


class RepeatedParameter(InvalidRequest):
    """A parameter given more than once."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Parameter '{name}' is given more than once. Give it once.", field=name)


class NotInCatalog(CostsvcError):
    """An id or alias that the catalog does not hold."""

    def __init__(
        self, what: str, wanted: str, nearest: Sequence[str], *, listed_at: str | None = None
    ) -> None:
        hint = f"Nearest: {', '.join(nearest)}." if nearest else "Nothing in the catalog is close to it."
        where = f" See {listed_at} for all of them." if listed_at else ""
        super().__init__(
            f"No {what} '{wanted}' in the catalog. {hint}{where}",
            field=what,
            details={"nearest": list(nearest)},
        )


class Ambiguous(NotInCatalog):
    """A spelling that several entries share."""

    def __init__(self, what: str, wanted: str, candidates: Sequence[str]) -> None:
        CostsvcError.__init__(
            self,
            f"'{wanted}' can mean more than one {what}: {', '.join(candidates)}. Use one of these ids.",
            field=what,
            details={"candidates": list(candidates)},
        )
        self.candidates = tuple(candidates)


class NotStored(NotInCatalog):
    """No quote of this id is kept for the owner of the key."""

    def __init__(self, wanted: str) -> None:
        CostsvcError.__init__(
            self,
            f"No quote '{wanted}' is kept for the owner of this key. GET /quotes lists those that are; POST /quotes "
            f"keeps one and answers its id.",
            field="quote",
        )


class Infeasible(CostsvcError):
    """The request is valid, but no price exists for it."""


class ContextTooLong(Infeasible):
    """The context is longer than the model was made for."""


class DoesNotFit(Infeasible):
    """Weights plus the cache of one sequence exceed the memory."""


class SloUnreachable(Infeasible):
    """No deployment meets the latency objective, even with one sequence."""


class UnsupportedLayout(Infeasible):
    """The parallel layout does not divide the model, or no kernel serves the dtype on the card."""


class NoPriceInForce(Infeasible):
    """No offer of the asked kind is in force on the day."""


class NoRateInForce(Infeasible):
    """No rate of the asked currency is in force on the day."""


class ConfigNotUnderstood(CostsvcError):
    """A model's configuration leaves open what decides its size or its cache; nothing is guessed."""


class InvalidCatalogFile(CostsvcError):
    """A catalog file that was refused; nothing of it was loaded."""

    def __init__(
        self, path: str, complaint: str, *, line: int | None = None, field: str | None = None
    ) -> None:
        place = f"{path}:{line}" if line is not None else path
        subject = f"field '{field}': " if field else ""
        super().__init__(f"{place}: {subject}{complaint}", field=field, details={"path": path, "line": line})


class NotAuthorized(CostsvcError):
    """A key is needed and none was shown, or the one shown is unknown, has expired or was revoked."""


class IdempotencyConflict(CostsvcError):
    """The idempotency key was used before, for another request."""


class RateLimited(CostsvcError):
    """More requests than one key or address may make at a time; Retry-After says when the next is answered."""


class Unavailable(CostsvcError):
    """The catalog cannot be read now."""


class Overloaded(Unavailable):
    """The service has more work than it can do now; Retry-After says when it may have caught up."""


def _either(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
