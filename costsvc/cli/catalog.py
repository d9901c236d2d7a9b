"""Commands about the catalog."""

from costsvc.cli.lazy import LazyGroup

catalog = LazyGroup(
    name="catalog",
    help="Check the catalog files, load them, add a model to them, or compare them with what others publish.",
    commands={
        "check": ("costsvc.cli.catalog_files:check", "Read every file; refuse by file, line and field."),
        "import-hf": (
            "costsvc.cli.catalog_import:import_hf",
            "A model's config.json as a file of the catalog.",
        ),
        "load": ("costsvc.cli.catalog_load:load", "Make the files the newest revision of the database."),
        "diff": ("costsvc.cli.catalog_diff:diff", "Compare what others publish with the files, and propose."),
    },
)
