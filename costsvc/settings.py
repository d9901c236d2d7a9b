"""What an operator sets, read from the environment (`COSTSVC_…`). No number of the model is here."""

from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


def _networks(text: str) -> str:
    """Refuse what is no address."""
    for part in filter(None, text.split(",")):
        ip_network(part.strip(), strict=False)
    return text


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
    keys: Literal["optional", "required"] = Field(
        "optional", description="`required`: reads need a key too, but for pages and health."
    )
    rate_burst: int = Field(
        3000,
        ge=100,
        le=10_000_000,
        description="Requests that one key, or one address without a key, may make at once.",
    )
    rate_per_s: float = Field(
        50.0,
        ge=0,
        le=1e6,
        allow_inf_nan=False,
        description="Requests it may make a second after that; 0: no limit.",
    )
    redis_url: SecretStr | None = Field(
        None,
        description="`redis://host:port/number` of a Redis or Valkey through which processes share the limits.",
    )
    trusted_proxies: Annotated[str, AfterValidator(_networks)] = Field(
        "",
        description="Addresses or networks, commas between, whose X-Forwarded-For is believed; none: nobody's.",
    )
    heavy_running: int = Field(
        2, ge=1, le=256, description="Comparisons, batches and the like computed at a time."
    )
    heavy_waiting: int = Field(
        32, ge=0, le=10_000, description="Of these, how many may wait; one more gets 503."
    )
    most_requests: int = Field(
        256, ge=1, le=100_000, description="Requests inside a process; one more gets 503."
    )
    answers_mib: int = Field(
        64, ge=1, le=65_536, description="Memory a process keeps answers in, to give them again. [MiB]"
    )
    client_timeout_s: float = Field(
        20.0,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="How long a client may take over headers or a body, or read nothing of its answer. [s]",
    )
    shutdown_s: int = Field(
        30, ge=0, le=3600, description="How long requests may go on when the service is told to stop. [s]"
    )
    access_log: bool = Field(False, description="A line per request; keys are left out of it.")
    tracing: bool = Field(
        False, description="Spans to the OpenTelemetry collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level logged.")
    log_format: Literal["text", "json"] = Field("text", description="Lines for people or for a collector.")
