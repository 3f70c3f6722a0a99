"""Runs pipelines through the built binary and keeps what was sent."""

import dataclasses
import os
import pathlib
import subprocess
import time

import pyarrow as pa
import pytest

import engines
import plain

HERE = pathlib.Path(__file__).parent
BINARY = os.environ["MANAGED_LAKEHOUSE"]
DATA = pathlib.Path(os.environ.get("LAKEHOUSE_TEST_DATA", HERE.parent.parent.parent / "shared" / "data"))


def pytest_report_header():
    return engines.versions()


@dataclasses.dataclass
class Pipeline:
    """Pipelines over one warehouse, and the rows that they were sent."""

    folder: pathlib.Path
    sent: list[dict] = dataclasses.field(default_factory=list)

    @property
    def warehouse(self) -> pathlib.Path:
        return self.folder / "warehouse"

    def table(self, name: str = "default/events") -> pathlib.Path:
        return self.warehouse / name

    def run(self, config: str, lines: list[str], timeout: float = 60) -> str:
        """Runs config (INPUT and WAREHOUSE are set for it) until it ends; its log."""
        number = len(list(self.folder.glob("*.yaml"))) + 1
        conf, data = self.folder / f"{number}.yaml", self.folder / f"{number}.ndjson"
        conf.write_text(config)
        data.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        env = os.environ | {"INPUT": str(data), "WAREHOUSE": str(self.warehouse), "SCRATCH": str(self.folder)}
        start = time.monotonic()
        done = subprocess.run(
            [BINARY, "run", conf], env=env, cwd=self.folder, timeout=timeout, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, done.stdout
        print(f"run {number}: {len(lines)} rows in {time.monotonic() - start:.1f} s")
        self.sent += plain.parse(lines)
        return done.stdout


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory, request) -> Pipeline:
    return Pipeline(tmp_path_factory.mktemp(request.module.__name__))


def config(options: str = "", table: str = "events") -> str:
    """A pipeline from a file of lines into a table; options are YAML of the output."""
    body = "".join(f"    {line}\n" for line in options.strip().splitlines())
    return (
        "input:\n"
        "  file:\n"
        '    paths: ["${INPUT}"]\n'
        "output:\n"
        "  managed_lakehouse:\n"
        "    warehouse: ${WAREHOUSE}\n"
        f"    table: {table}\n" + body
    )


def assert_rows(engine: str, got: pa.Table, sent: list[dict], schema: pa.Schema) -> None:
    """Every row as sent."""
    want, have = plain.conform(sent, schema), plain.rows(got)
    if engine in engines.NULL_LIST_IS_EMPTY:
        struct = pa.struct(list(schema))
        want, have = ([plain.without_empty(row, struct) for row in rows] for rows in (want, have))
    diff = plain.difference(want, have)
    assert not diff, f"{engine}:\n{diff}"


def assert_exact(engine: str, table: pathlib.Path, sent: list[dict], schema: pa.Schema) -> None:
    """Every row and every type, as sent."""
    got = engines.read(engine, table)
    assert {f.name: f.type for f in plain.normalised(got).schema} == {f.name: f.type for f in schema}
    assert_rows(engine, got, sent, schema)


def assert_same_files(table: pathlib.Path) -> None:
    iceberg, delta = engines.live_files_iceberg(table), engines.live_files_delta(table)
    assert iceberg == delta
    assert iceberg
    on_disk = {str(p) for p in (table / "delta").rglob("*.parquet") if "_delta_log" not in p.parts}
    assert on_disk == set(iceberg), "every data file on disk is live, as nothing was deleted"
