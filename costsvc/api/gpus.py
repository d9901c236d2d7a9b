"""Accelerators of the catalog."""

from costsvc.api.lists import entry_of, list_of
from costsvc.quoting.listing.gpus import GpuFilter, list_gpus, show_gpu
from costsvc.quoting.tables.listings import GPUS

get_gpus = list_of(
    "/gpus",
    list_gpus,
    wanted=GpuFilter,
    columns=GPUS,
    answers="Gpus",
    summary="Accelerators, each with its reference price on the day",
)
get_gpu = entry_of("/gpus", show_gpu, answers="Gpu", summary="An accelerator and its sources")
