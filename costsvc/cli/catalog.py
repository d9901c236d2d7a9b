"""Commands about the catalog."""

from costsvc.cli.lazy import LazyGroup

catalog = LazyGroup(
    name="catalog",
    help="Check the catalog files, or load them into the database.",
    commands={
        "check": ("costsvc.cli.catalog_files:check", "Read every file; refuse by file, line and field."),
        "load": ("costsvc.cli.catalog_load:load", "Make the files the newest revision of the database."),
    },
)
