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


def test_a_setting_out_of_bounds_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSTSVC_POLL_S", "0")
    with pytest.raises(ValidationError, match="poll_s"):
        Settings()


def test_a_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSTSVC_DATABASE_URL", "postgresql://u:hunter2@host/name")
    assert "hunter2" not in repr(Settings())
