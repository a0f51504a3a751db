"""Databases and tables: where they are, and how Spark comes to know them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakekit.catalog.base import Catalog
from lakekit.catalog.folder import FolderCatalog
from lakekit.catalog.session import SessionCatalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakekit.session.runner import Runner

__all__ = ["Catalog", "FolderCatalog", "SessionCatalog", "open_catalog"]


def open_catalog(spark: SparkSession, warehouse: str | None, runner: Runner) -> Catalog:
    """Opens the catalog of a warehouse, or that of the session where there is no warehouse.

    Args:
        spark: the session, classic or Connect.
        warehouse: absolute path or URI of the folder of all tables.
        runner: runs storage code where the warehouse can be reached.
    """
    if warehouse is None:
        return SessionCatalog(spark, runner)
    return FolderCatalog(spark, warehouse, runner)
