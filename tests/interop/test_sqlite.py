"""The SQL catalog in SQLite, opened by pyiceberg's own catalog of that kind."""

import json

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import engines
from conftest import assert_exact, assert_rows, assert_same_files, config

OPTIONS = """
namespace: shop.web
streaming: {enabled: true}
catalog:
  sql: {driver: sqlite, dsn: "file:${SCRATCH}/catalog.db", name: lake}
"""
SCHEMA = pa.schema([("id", pa.int64()), ("o", pa.struct([("s", pa.string()), ("n", pa.int64())]))])
TABLE = "shop/web/events"


@pytest.fixture(scope="module")
def sqlite(pipeline):
    pipeline.run(config(OPTIONS), [json.dumps({"id": i, "o": {"s": str(i)}}) for i in range(100)])
    pipeline.run(config(OPTIONS), [json.dumps({"id": i, "o": {"s": None, "n": i}}) for i in range(100, 150)])
    return pipeline


def catalog_table(pipeline):
    catalog = SqlCatalog("lake", uri=f"sqlite:///{pipeline.folder}/catalog.db", warehouse=pipeline.warehouse.as_uri())
    return catalog.load_table("shop.web.events")


def test_catalog(sqlite):
    assert_rows("pyiceberg", catalog_table(sqlite).scan().to_arrow(), sqlite.sent, SCHEMA)


def test_hint_is_current(sqlite):
    assert catalog_table(sqlite).metadata_location == engines.metadata_file(sqlite.table(TABLE)).as_uri()


@pytest.mark.parametrize("engine", engines.ALL)
def test_every_row(sqlite, engine):
    assert_exact(engine, sqlite.table(TABLE), sqlite.sent, SCHEMA)


def test_live_files(sqlite):
    assert_same_files(sqlite.table(TABLE))
