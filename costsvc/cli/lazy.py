"""Commands that are imported when they are called: `costsvc quote` need not wait for a web framework."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pkgutil import resolve_name
from typing import Any

import click

from costsvc.errors import CostsvcError, InvalidRequest

FAILED = 1


class BadUsage(click.ClickException):
    """A request that is wrong in itself."""

    exit_code = 2


@contextmanager
def kept() -> Iterator[None]:
    """What is made meanwhile stays, as modules do: nobody looks for garbage until it is made, nor in it later."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class LazyGroup(click.Group):
    """A group whose commands are named as `module:attribute`, each with its line of help."""

    def __init__(self, *, name: str, help: str, commands: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(name=name, help=help)
        self._targets = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order they were given."""
        return list(self._targets)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self._targets:
            return None
        with kept():
            command = resolve_name(self._targets[cmd_name][0])
        if not isinstance(command, click.Command):
            raise TypeError(f"{self._targets[cmd_name][0]} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self._targets.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an error whose words are meant for users ends it with them."""
        try:
            return super().invoke(ctx)
        except InvalidRequest as error:
            raise BadUsage(error.message) from error
        except CostsvcError as error:
            raise click.ClickException(error.message) from error
