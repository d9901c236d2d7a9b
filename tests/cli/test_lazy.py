"""Commands are imported when they are called, and what is imported is never taken for garbage."""

import gc

import pytest

from costsvc.cli.lazy import kept


def test_nobody_looks_for_garbage_among_what_is_kept() -> None:
    before = gc.get_freeze_count()
    with kept():
        assert not gc.isenabled()
        made = [[number] for number in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(made)
    assert not any(one is made for one in gc.get_objects())


def test_garbage_is_looked_for_again_after_a_failure() -> None:
    with pytest.raises(ImportError), kept():
        raise ImportError
    assert gc.isenabled()
