"""The shipped set-up: compose file, nginx and alert rules agree with each other and with the service."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from costsvc.api.problems import KINDS
from costsvc.api.traces import MOST_TRACE_BYTES
from costsvc.api.watch.metrics import Metrics
from costsvc.settings import Settings
from tests.docs.pages import ROOT

NGINX = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OWN = {name: one for name, one in SERVICES.items() if one["image"] == "costsvc"}
ALERTS: list[dict[str, Any]] = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text(encoding="utf-8"))[
    "groups"
][0]["rules"]


def test_nginx_knows_every_replica_and_no_other() -> None:
    replicas = {name for name, one in OWN.items() if "serve" in one["command"]}
    assert len(replicas) == 3
    assert {f"server {name}:8000" for name in replicas} == set(re.findall(r"server costsvc-\d:8000", NGINX))


def test_nginx_lets_the_largest_body_through_and_keeps_figures_inside() -> None:
    largest = re.search(r"client_max_body_size (\d+)m;", NGINX)
    assert largest is not None
    assert int(largest[1]) * 1024**2 >= MOST_TRACE_BYTES
    assert re.search(r"location = /metrics \{\s*return 404;", NGINX)


def test_nginx_writes_no_query_into_its_lines() -> None:
    (form,) = re.findall(r"log_format [^;]*;", NGINX)
    assert not {"$request ", "$request_uri", "$args", "$query_string"} & set(re.findall(r"\$\w+ ?", form))
    assert "error_log stderr crit;" in NGINX


def test_nginx_can_read_its_file(tmp_path: Path) -> None:
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if nginx is None:
        pytest.skip("nginx is not on this machine (apt install nginx-light)")
    # Names of the compose network mean nothing here.
    here = re.sub(r"server costsvc-\d:8000", "server 127.0.0.1:18000", NGINX)
    here = re.sub(r"(?<=[ ;])/tmp(?=/)", str(tmp_path), here)
    (tmp_path / "nginx.conf").write_text(here, encoding="utf-8")
    tried = subprocess.run(
        [nginx, "-t", "-c", str(tmp_path / "nginx.conf")], capture_output=True, text=True, check=False
    )
    assert tried.returncode == 0, tried.stderr


@pytest.mark.parametrize("name", OWN)
def test_the_service_runs_without_rights_on_a_root_that_nobody_writes(name: str) -> None:
    one = OWN[name]
    assert one["read_only"] is True
    assert one["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in one["security_opt"]
    assert "ports" not in one
    for variable in one["environment"]:
        assert variable.removeprefix("COSTSVC_").lower() in Settings.model_fields
    assert (
        int(one.get("stop_grace_period", "40s").removesuffix("s"))
        > Settings.model_fields["shutdown_s"].default
    )


def test_the_image_does_not_run_as_root() -> None:
    steps = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    users = [line.split()[1] for line in steps if line.startswith("USER ")]
    assert users == ["costsvc"]


def test_images_of_others_are_of_one_version_and_only_nginx_is_reachable() -> None:
    for name, one in SERVICES.items():
        assert name in OWN or re.search(r":\d+\.\d+", one["image"]), name
    assert [name for name, one in SERVICES.items() if "ports" in one] == ["nginx"]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_an_alert_is_described_and_watches_figures_that_there_are(alert: dict[str, Any]) -> None:
    shown = Metrics(problems=KINDS, shares_limits=True)
    shown.looked_up(is_held=True)
    text = shown.exposed().decode()
    described = set(re.findall(r"# TYPE (\w+)", text))
    for name in re.findall(r"costsvc_\w+", alert["expr"]):
        assert name.removesuffix("_bucket") in described
    for kind in re.findall(r'kind="([\w-]+)"', alert["expr"]):
        assert f'kind="{kind}"' in text
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert f"| `{alert['alert']}` |" in page


def test_every_figure_is_described() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    text = Metrics(problems=KINDS, shares_limits=True).exposed().decode()
    for name in re.findall(r"# TYPE (costsvc_\w+)", text):
        assert f"| `{name}` |" in page
