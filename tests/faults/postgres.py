"""A PostgreSQL of one's own: the only kind that a test may stop and crash."""

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Final, Self

import psycopg

from tests.faults.processes import Process, free_port, once

# PostgreSQL does not run as root; Debian's package makes this user.
_USER: Final = "postgres"
_DATABASE: Final = "costsvc"


def postgres_programs() -> Path | None:
    """Folder of the newest installed PostgreSQL's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    elsewhere = shutil.which("initdb")
    return found[-1].parent if found else Path(elsewhere).resolve().parent if elsewhere else None


class OwnPostgres(Process):
    """A cluster in a folder that goes with it. It ends as `pg_ctl stop -m fast` ends one: sessions are cut off."""

    ends_at = signal.SIGINT

    def __init__(self, log: Path) -> None:
        programs = postgres_programs()
        assert programs is not None
        user = _USER if os.geteuid() == 0 else None
        # Not below the folders of tests, which are closed to other users.
        self._whole = Path(tempfile.mkdtemp(prefix="costsvc-postgres-"))
        if user:
            shutil.chown(self._whole, user)
        data = self._whole / "data"
        subprocess.run(
            [
                programs / "initdb",
                "--username=postgres",
                "--auth=trust",
                "--encoding=UTF8",
                "--no-sync",
                "-D",
                data,
            ],
            user=user,
            cwd=self._whole,
            check=True,
            capture_output=True,
        )
        self.port = free_port()
        self._admin = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/{_DATABASE}"
        settings = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        super().__init__(
            [str(programs / "postgres"), "-D", str(data), *given], log, folder=self._whole, user=user
        )

    def execute(self, statement: str) -> None:
        """Run a statement from outside the service's database."""
        with psycopg.connect(self._admin, autocommit=True) as connection:
            connection.execute(statement.encode())

    def crash(self) -> None:
        """End it at once, without a last checkpoint: at its next start it recovers from its log."""
        self.kill(signal.SIGQUIT)

    def __enter__(self) -> Self:
        super().__enter__()
        once(self.is_answering, "PostgreSQL answers")
        self.execute(f"CREATE DATABASE {_DATABASE}")
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        shutil.rmtree(self._whole)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self._admin, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True
