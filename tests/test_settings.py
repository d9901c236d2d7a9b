"""Settings come from the environment, and a secret among them is not shown."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from costsvc.settings import Settings


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"COSTSVC_{name.upper()}", raising=False)


def test_without_settings_the_service_runs_on_a_file_in_the_current_folder() -> None:
    settings = Settings()
    assert settings.database_url.get_secret_value() == "sqlite:///costsvc.db"
    assert settings.catalog_dir is None


def test_every_setting_is_read_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "DATABASE_URL": "postgresql://host/name",
        "CATALOG_DIR": "facts",
        "HOST": "0.0.0.0",  # noqa: S104 - a value to be read, nothing listens
        "PORT": "9000",
        "WORKERS": "3",
        "POLL_S": "0.5",
        "DATABASE_POOL": "7",
        "DATABASE_TIMEOUT_S": "3",
        "KEYS": "required",
        "RATE_BURST": "500",
        "RATE_PER_S": "5",
        "REDIS_URL": "redis://u:hunter2@host/1",
        "TRUSTED_PROXIES": "10.0.0.0/8, 192.0.2.1",
        "HEAVY_RUNNING": "4",
        "HEAVY_WAITING": "8",
        "MOST_REQUESTS": "100",
        "ANSWERS_MIB": "16",
        "CLIENT_TIMEOUT_S": "5",
        "SHUTDOWN_S": "10",
        "ACCESS_LOG": "true",
        "TRACING": "true",
        "LOG_LEVEL": "debug",
        "LOG_FORMAT": "json",
    }
    assert {name.lower() for name in given} == set(Settings.model_fields)
    for name, value in given.items():
        monkeypatch.setenv(f"COSTSVC_{name}", value)
    settings = Settings()
    assert settings.database_url.get_secret_value() == "postgresql://host/name"
    assert (settings.catalog_dir, settings.port, settings.poll_s) == (Path("facts"), 9000, 0.5)
    default = Settings.model_construct()
    assert [name for name in Settings.model_fields if getattr(settings, name) == getattr(default, name)] == []


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSTSVC_PORT", "")
    assert Settings().port == 8000


@pytest.mark.parametrize("text", ["somewhere", "10.0.0.0/40", "10.0.0.1;10.0.0.2"])
def test_a_trusted_proxy_that_is_no_address_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("COSTSVC_TRUSTED_PROXIES", text)
    with pytest.raises(ValidationError, match="trusted_proxies"):
        Settings()


def test_a_setting_out_of_bounds_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSTSVC_POLL_S", "0")
    with pytest.raises(ValidationError, match="poll_s"):
        Settings()


def test_a_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSTSVC_DATABASE_URL", "postgresql://u:hunter2@host/name")
    monkeypatch.setenv("COSTSVC_REDIS_URL", "redis://u:hunter2@host/1")
    assert "hunter2" not in repr(Settings())
