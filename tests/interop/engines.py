"""The engines, each as one function: a table's place -> all its rows as Arrow.

Every engine may be given a filter, as SQL that all of them understand the same
way; what an engine cannot push down it applies itself, so the rows must agree.
"""

import pathlib

import deltalake
import duckdb
import pyarrow as pa
from pyiceberg.table import StaticTable

ICEBERG = ["pyiceberg", "duckdb-iceberg", "duckdb-iceberg-path"]
DELTA = ["deltalake", "duckdb-delta"]
ALL = ICEBERG + DELTA

# Reads a NULL list of structs as an empty one: where it projects the elements, it
# rebuilds the list from its offsets without its validity (ArrowProjectionVisitor.list).
NULL_LIST_IS_EMPTY = {"pyiceberg"}


def metadata_file(table: pathlib.Path) -> pathlib.Path:
    """The current metadata, as the hint for readers by path names it."""
    folder = table / "iceberg" / "metadata"
    version = (folder / "version-hint.text").read_text().strip()
    for name in (f"v{version}.metadata.json", f"{version}.metadata.json"):
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"the hint names {version}, {folder} holds {sorted(p.name for p in folder.iterdir())}")


def static_table(table: pathlib.Path) -> StaticTable:
    return StaticTable.from_metadata(metadata_file(table).as_uri())


def connect() -> duckdb.DuckDBPyConnection:
    """DuckDB with the extensions that came as wheels; it fetches none by itself."""
    con = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    packages = pathlib.Path(duckdb.__file__).parent.parent
    for name in ("avro", "iceberg", "delta"):
        path = packages / f"duckdb_extension_{name}/extensions/v{duckdb.__version__}/{name}.duckdb_extension"
        con.execute(f"LOAD '{path}'")
    con.execute("SET TimeZone = 'UTC'")
    return con


def duckdb_source(engine: str, table: pathlib.Path) -> str:
    return {
        "duckdb-iceberg": f"iceberg_scan('{metadata_file(table)}')",
        # By folder alone, through version-hint.text.
        "duckdb-iceberg-path": f"iceberg_scan('{table}/iceberg')",
        "duckdb-delta": f"delta_scan('{table}/delta')",
    }[engine]


def read(engine: str, table: pathlib.Path, where: str | None = None) -> pa.Table:
    condition = f" WHERE {where}" if where else ""
    if engine == "pyiceberg":
        scan = static_table(table).scan(row_filter=where) if where else static_table(table).scan()
        return scan.to_arrow()
    if engine == "deltalake":
        query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table / "delta"))
        return pa.table(query.execute(f"SELECT * FROM t{condition}").read_all())
    result = connect().sql(f"SELECT * FROM {duckdb_source(engine, table)}{condition}").arrow()
    return result.read_all() if isinstance(result, pa.RecordBatchReader) else result


def sql(engine: str, table: pathlib.Path, query: str) -> list[tuple]:
    """An aggregate over `t`, computed by the engine itself where it has SQL."""
    if engine == "deltalake":
        builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table / "delta"))
        rows = pa.table(builder.execute(query).read_all())
        return [tuple(r.values()) for r in rows.to_pylist()]
    con = connect()
    if engine == "pyiceberg":
        con.register("t", static_table(table).scan().to_arrow())
    else:
        con.execute(f"CREATE VIEW t AS SELECT * FROM {duckdb_source(engine, table)}")
    return con.sql(query).fetchall()


def live_files_iceberg(table: pathlib.Path) -> dict[str, int]:
    """Live data files with their row counts, as pyiceberg tells them."""
    tasks = static_table(table).scan().plan_files()
    return {task.file.file_path.removeprefix("file://"): task.file.record_count for task in tasks}


def live_files_delta(table: pathlib.Path) -> dict[str, int]:
    """Live data files with their row counts, as deltalake tells them."""
    actions = pa.table(deltalake.DeltaTable(table / "delta").get_add_actions(flatten=True))
    return {
        str(table / "delta" / path): rows
        for path, rows in zip(actions["path"].to_pylist(), actions["num_records"].to_pylist())
    }


def versions() -> str:
    import importlib.metadata as md

    con = connect()
    extensions = con.sql(
        "SELECT extension_name || ' ' || extension_version FROM duckdb_extensions()"
        " WHERE extension_name IN ('iceberg', 'delta', 'avro')"
    ).fetchall()
    parts = [f"{p} {md.version(p)}" for p in ("pyiceberg", "deltalake", "duckdb", "pyarrow")]
    return ", ".join(parts + [f"duckdb {e}" for (e,) in extensions])
