"""Functions as machine code: compiled by Numba once, and loaded from its cache without its compiler.

What the compiler knows of types and functions takes thrice the memory and twice the time of loading what it compiled,
and would bring SciPy's linear algebra. Compiled code needs nothing of it but Numba's memory manager.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache
from numba.core.runtime import nrt

Function = TypeVar("Function", bound=Callable[..., Any])

_manager: Any = nrt
for _name, _address in _manager._nrt.c_helpers.items():
    _manager.ll.add_symbol(_name if _name.startswith("_") else f"NRT_{_name}", _address)


class _Cache(FunctionCache):
    """Loads as Numba does, but leaves it to the compiler to make itself ready, where there is something to compile.

    What was compiled is stale too where the file of a function that it calls has changed.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        called = [function.__globals__.get(name) for name in function.__code__.co_names]
        caches = [cache for one in called if isinstance(cache := getattr(one, "_cache", None), _Cache)]
        file: Any = self._cache_file
        file._source_stamp = (file._source_stamp, *(one._cache_file._source_stamp for one in caches))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for these types, or None."""
        return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


def inlined(function: Function) -> Function:
    """The same for a function that others call: its code stands in theirs, where a call takes as long as its work."""
    return compiled(function, forceinline=True)


def compiled(function: Function, *, forceinline: bool = False) -> Function:
    """The function as machine code, made at its first call and kept beside its source, or in the user's cache.

    Where neither can be written, each process makes it anew: NUMBA_CACHE_DIR names another place.
    """
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy", forceinline=forceinline)(function)
    with suppress(RuntimeError):
        dispatcher._cache = _Cache(function)
    return cast(Function, dispatcher)


def settled(functions: Iterable[object]) -> None:
    """Take functions that were called for ready: no call makes them anew, for other types, from here on.

    So a request never waits for the compiler, and what only that needs of them is let go of.
    """
    for function in functions:
        dispatcher: Any = function
        if isinstance(getattr(function, "_cache", None), _Cache) and dispatcher.overloads:
            dispatcher.disable_compile()
            for made in dispatcher.overloads.values():
                made.library._shared_module = None
