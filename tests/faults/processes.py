"""Real processes on this machine: replicas of the service, a Redis of one's own, and nginx with the shipped file."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self

import httpx
from redis import Redis
from redis.exceptions import RedisError

from tests.docs.pages import ROOT

PATIENCE_S: Final = 90
_PAUSE_S: Final = 0.05
_SERVICE: Final = (sys.executable, "-c", "from costsvc.cli import main; main()")
_PLACES: Final = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def once(is_so: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    """Wait until something is so.

    Raises
    ------
    AssertionError
        It is not in time.
    """
    deadline_s = time.monotonic() + within_s
    while time.monotonic() < deadline_s:
        if is_so():
            return
        time.sleep(_PAUSE_S)
    raise AssertionError(f"not within {within_s:g} s: {what}")


def program(name: str) -> str | None:
    """Where a program of the machine is, also one for administrators."""
    return shutil.which(name, path=_PLACES)


class Process(ABC):
    """A program that is started, ended and started again; what it prints goes to a file.

    Parameters
    ----------
    folder : Path, optional
        Where it runs; absent: where it prints.
    user : str, optional
        Whose process it is; absent: of who runs the tests.
    """

    ends_at: signal.Signals = signal.SIGTERM

    def __init__(
        self,
        command: list[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        *,
        folder: Path | None = None,
        user: str | None = None,
    ) -> None:
        self._command = command
        self._environment = environment
        self._folder = folder or log.parent
        self._user = user
        self.log = log
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Number of the process that runs."""
        assert self._running is not None
        return self._running.pid

    def start(self) -> None:
        """Start it, without waiting until it answers."""
        with self.log.open("ab") as output:
            self._running = subprocess.Popen(
                self._command,
                env=self._environment,
                stdout=output,
                stderr=output,
                cwd=self._folder,
                user=self._user,
            )

    def is_answering(self) -> bool:
        """Whether it does its work; one that ended is an error."""
        assert self._running is not None
        assert self._running.poll() is None, self.log.read_text()[-4000:]
        return self._answers()

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it, at once unless `how` says otherwise."""
        if self._running is not None and self._running.poll() is None:
            self._running.send_signal(how)
            self._running.wait(PATIENCE_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill(self.ends_at)

    @abstractmethod
    def _answers(self) -> bool:
        """Whether it does its work."""


def environment(settings: Mapping[str, str], code: Path | None = None) -> dict[str, str]:
    """Variables for a command of the service with these settings and no others, run from its code in a folder."""
    bare = {name: text for name, text in os.environ.items() if not name.startswith("COSTSVC_")}
    given = {f"COSTSVC_{name.upper()}": value for name, value in settings.items()}
    return {**bare, **given, **({} if code is None else {"PYTHONPATH": str(code)})}


def run(*arguments: str, database_url: str, code: Path | None = None) -> str:
    """What a command of the service prints.

    Raises
    ------
    AssertionError
        It fails.
    """
    done = subprocess.run(
        [*_SERVICE, *arguments],
        env=environment({"database_url": database_url}, code),
        cwd=code,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Replica(Process):
    """`costsvc serve` on a port of its own; `code` is the folder of another version of it."""

    def __init__(
        self, folder: Path, name: str, settings: Mapping[str, str], code: Path | None = None
    ) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._settings = settings
        super().__init__(
            [*_SERVICE, "serve", "--no-migrate", "--port", str(self.port)],
            folder / f"{name}.log",
            environment(settings, code),
        )

    def upgrade(self) -> None:
        """Start it from the code of this checkout, from the next start on."""
        self._environment = environment(self._settings)

    def ready(self) -> dict[str, object] | None:
        """What /readyz says; None while it does not answer 200."""
        try:
            answer = httpx.get(f"{self.address}/readyz", timeout=PATIENCE_S)
        except httpx.TransportError:
            return None
        return dict(answer.json()) if answer.is_success else None

    def _answers(self) -> bool:
        return self.ready() is not None


class OwnRedis(Process):
    """A Redis that nobody else uses."""

    def __init__(self, folder: Path) -> None:
        found = program("redis-server")
        assert found is not None
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        command = [found, "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        super().__init__(command, folder / "redis.log")

    def _answers(self) -> bool:
        with Redis.from_url(self.url, socket_connect_timeout=1) as redis:
            try:
                return bool(redis.ping())
            except RedisError:
                return False


class Nginx(Process):
    """nginx with `deploy/nginx.conf`, whose names of the compose network become ports of this machine."""

    def __init__(self, folder: Path, ports: list[int]) -> None:
        found = program("nginx")
        assert found is not None
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
        for number, port in enumerate(ports, start=1):
            text = text.replace(f"server costsvc-{number}:8000", f"server 127.0.0.1:{port}")
        text = text.replace("listen 8000;", f"listen 127.0.0.1:{self.port};")
        text = re.sub(r"(?<=[ ;])/tmp(?=/)", str(folder), text)
        assert "costsvc-" not in text
        path = folder / "nginx.conf"
        path.write_text(text, encoding="utf-8")
        # Its workers would else be of a user that may not read the folders of tests.
        user = "user root; " if os.geteuid() == 0 else ""
        super().__init__([found, "-c", str(path), "-g", f"{user}daemon off;"], folder / "nginx.log")

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.address}/healthz", timeout=PATIENCE_S).is_success
        except httpx.TransportError:
            return False
