"""Commands about the catalog."""

from costsvc.cli.lazy import LazyGroup

catalog = LazyGroup(
    name="catalog",
    help="Check the catalog files, load them into the database, or add a model to them.",
    commands={
        "check": ("costsvc.cli.catalog_files:check", "Read every file; refuse by file, line and field."),
        "import-hf": (
            "costsvc.cli.catalog_import:import_hf",
            "A model's config.json as a file of the catalog.",
        ),
        "load": ("costsvc.cli.catalog_load:load", "Make the files the newest revision of the database."),
    },
)
