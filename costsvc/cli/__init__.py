"""The command line: the same use cases as the service, with the same words for what goes wrong."""

import os

from costsvc.cli.lazy import LazyGroup

# The systems that a calibration solves are small: threads of the linear algebra would only wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

main = LazyGroup(
    name="costsvc",
    help="What a token of a large language model really costs.",
    commands={
        "quote": ("costsvc.cli.quote:quote", "Price one model on one GPU."),
        "batch": ("costsvc.cli.batch:batch", "Price each row of a file."),
        "predict": ("costsvc.cli.points:predict", "Throughput and latency of each row of a CSV file."),
        "capacity": ("costsvc.cli.points:capacity", "KV-cache capacity of each row of a CSV file."),
        "trace": ("costsvc.cli.trace:trace", "Hit rates of a recorded trace by cache capacity."),
        "calibrate": (
            "costsvc.cli.calibration:calibrate_command",
            "Fit the calibration to measured points.",
        ),
        "validate": (
            "costsvc.cli.calibration:validate_command",
            "Report the error on measured points.",
        ),
        "catalog": ("costsvc.cli.catalog:catalog", "Check the catalog files, or load them."),
        "db": ("costsvc.cli.database:database", "Prepare, copy and restore the database."),
        "keys": ("costsvc.cli.keys:keys", "Create, list and revoke keys."),
        "serve": ("costsvc.cli.serve:serve", "Start the service."),
    },
)
