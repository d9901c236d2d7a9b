"""What `docker-compose.yml` and the Dockerfile say, run without Docker: commands and variables of the service's parts.

Each runs from an installed copy, on a root that nobody can write but for its `/tmp`, without any capability.
"""

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.docs.pages import ROOT
from tests.faults.conftest import running
from tests.faults.postgres import OwnPostgres
from tests.faults.processes import Nginx, OwnRedis, Process, free_port, once

PASSWORD = "a password"
STARTED_WITHIN_S = 300
IMAGE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
SERVICES: Mapping[str, Mapping[str, Any]] = yaml.safe_load(
    (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
)["services"]
# As the container runtime does for `read_only`, `tmpfs`, `cap_drop` and `no-new-privileges`.
CONTAINED = (
    "unshare",
    "--mount",
    "sh",
    "-c",
    'mount -t tmpfs tmpfs "$0" && mount -o remount,ro,bind / && cd / &&'
    ' exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all "$@"',
)


COMPILED_ANEW = (
    "from costsvc.engine import ray, ready, search, tape; ready.make_ready(); "
    "compiled = [one for part in (ray, search, tape) for one in vars(part).values() if hasattr(one, 'stats')]; "
    "print(sum(sum(one.stats.cache_misses.values()) for one in compiled))"
)


class Part(Process):
    """A service of the compose file that runs until it is told to stop."""

    def __init__(self, command: list[str], log: Path, environment: Mapping[str, str], port: int) -> None:
        super().__init__(command, log, environment)
        self.port = port

    def stop(self) -> int:
        """End it as the container runtime does; its exit status."""
        assert self._running is not None
        self.kill(self.ends_at)
        return self._running.returncode

    def _answers(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/readyz", timeout=60).is_success
        except httpx.TransportError:
            return False


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is `/tmp` of a part: empty, and its own."""
    path = tmp_path_factory.mktemp("scratch")
    tried = subprocess.run([*CONTAINED, path, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"this user may not make a root that is only read: {tried.stderr}")
    return path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as pip lays it out."""
    built = tmp_path_factory.mktemp("built")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(built / "site-packages")
    (compiling,) = re.findall(r"^RUN (NUMBA_CACHE_DIR=.*)", IMAGE, re.MULTILINE)
    environment = {**os.environ, **_of_image(built), "PYTHONPATH": str(built / "site-packages")}
    subprocess.run(["sh", "-c", _here(compiling, built)], cwd=built, env=environment, check=True)
    return built / "site-packages"


def _here(text: str, built: Path) -> str:
    """Words of the Dockerfile, with the place of what it builds."""
    return text.replace("/opt/costsvc", str(built)).replace("python ", f"{sys.executable} ")


def _entry(installed: Path) -> list[str]:
    """What the image runs before each command."""
    (words,) = re.findall(r"^ENTRYPOINT (.*)", IMAGE, re.MULTILINE)
    return [_here(word, installed.parent) for word in json.loads(words)]


def _of_image(scratch: Path) -> dict[str, str]:
    """Variables that the Dockerfile sets for whoever runs the service."""
    said = dict(
        pair.split("=", 1) for line in re.findall(r"^ENV (.*)", IMAGE, re.MULTILINE) for pair in line.split()
    )
    return {name: value.replace("/tmp", str(scratch)) for name, value in said.items()}  # noqa: S108 - of the image


def _environment(name: str, places: Mapping[str, str], installed: Path, scratch: Path) -> dict[str, str]:
    """Variables of a service, with the names of the compose network replaced by places on this machine."""
    given = {"POSTGRES_PASSWORD": PASSWORD.replace(" ", "%20")}
    said = {}
    for variable, text in SERVICES[name]["environment"].items():
        filled = re.sub(r"\$\{(\w+):[-?]([^}]*)\}", lambda found: given.get(found[1], found[2]), text)
        for place, here in places.items():
            filled = filled.replace(place, here)
        said[variable] = filled
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    bare = {"PATH": path, "PYTHONPATH": str(installed), "TMPDIR": str(scratch), "HOME": "/nowhere"}
    return {**_of_image(scratch), **bare, **said}


def test_the_parts_of_the_compose_file_run_together(
    postgres: OwnPostgres, installed: Path, scratch: Path, folder: Path
) -> None:
    postgres.execute(f"CREATE ROLE costsvc LOGIN PASSWORD '{PASSWORD}'")
    postgres.execute("ALTER DATABASE costsvc OWNER TO costsvc")
    redis = OwnRedis(folder)
    places = {
        "@db:5432": f"@127.0.0.1:{postgres.port}",
        "valkey:6379": f"127.0.0.1:{redis.port}",
        "172.30.0.0/24": "127.0.0.1",
    }

    def run(name: str, *command: str) -> str:
        environment = _environment(name, places, installed, scratch)
        done = subprocess.run(
            [*CONTAINED, scratch, *_entry(installed), *command],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    where = run("migrate", "python", "-c", "import costsvc; print(costsvc.__file__)")
    assert where == str(installed / "costsvc" / "__init__.py")
    with pytest.raises(AssertionError, match="Read-only file system"):
        run("migrate", "touch", str(installed / "written"))
    assert run("costsvc-1", "python", "-c", COMPILED_ANEW) == "0"
    run("migrate", *SERVICES["migrate"]["command"])
    port = free_port()
    command = [str(port) if word == "8000" else word for word in SERVICES["costsvc-1"]["command"]]
    replica = Part(
        [*CONTAINED, str(scratch), *_entry(installed), *command],
        folder / "costsvc-1.log",
        _environment("costsvc-1", places, installed, scratch),
        port,
    )
    nginx = Nginx(folder, [port, port, port])
    key = run(
        "costsvc-1",
        *["costsvc", "keys", "create", "--scope", "quote", "--label", "tests", "--owner", "finance"],
    )
    with running(redis, replica, within_s=STARTED_WITHIN_S), running(nginx):
        once(lambda: httpx.get(f"{nginx.address}/readyz").json()["limits"] == "shared", "limits are shared")
        with httpx.Client(base_url=nginx.address, headers={"X-API-Key": key}, timeout=60) as client:
            asked = "model=llama-3-70b&gpu=h100&ctx=8192"
            for suffix in ("", ".csv", ".xml", ".xlsx"):
                assert client.get(f"/quote{suffix}?{asked}").status_code == 200, suffix
            kept = client.post("/quotes", json={"model": "llama-3-70b", "gpu": "h100", "ctx": 8192})
            assert kept.status_code == 201, kept.text
            line = '{"timestamp":%d,"input_length":600,"output_length":9,"hash_ids":[0,1]}\n'
            trace = "".join(line % second for second in range(5000))
            counted = client.post("/traces", content=trace, headers={"Content-Type": "application/x-ndjson"})
            assert counted.status_code == 200, counted.text
            assert client.get("/metrics").status_code == 404
        # The server raises the signal again once it has ended its work.
        assert replica.stop() in (0, -replica.ends_at)
    assert "Traceback" not in replica.log.read_text()
