"""What an operator sets, read from the environment (`COSTSVC_…`). No number of the model is here."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """How one process of the service runs."""

    # An empty variable is an unset one: compose files and build servers pass on variables without a value.
    model_config = SettingsConfigDict(env_prefix="COSTSVC_", env_ignore_empty=True, frozen=True)

    database_url: SecretStr = Field(
        SecretStr("sqlite:///costsvc.db"),
        description="`sqlite:///path` or `postgresql://user:password@host/name`; may hold a password.",
    )
    catalog_dir: Path | None = Field(None, description="Folder of catalog files; absent: the shipped one.")
    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    workers: int = Field(1, ge=1, le=256, description="Processes that answer requests.")
    poll_s: float = Field(
        1.0, gt=0, le=3600, allow_inf_nan=False, description="Pause between looks for a new catalog. [s]"
    )
    database_pool: int = Field(5, ge=1, le=100, description="Connections a process keeps to PostgreSQL.")
    database_timeout_s: float = Field(
        10.0, gt=0, le=600, allow_inf_nan=False, description="Longest wait for the database. [s]"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level logged.")
    log_format: Literal["text", "json"] = Field("text", description="Lines for people or for a collector.")
