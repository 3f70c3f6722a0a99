"""The first thing a user does: the example as it is, and each line that it prints
for opening the table."""

import os
import pathlib
import re
import subprocess

import pyarrow as pa
import pytest

import engines
import plain
from conftest import BINARY, HERE, assert_same_files

EXAMPLE = HERE.parent.parent / "config" / "examples" / "quickstart.yaml"
ROWS = 250_000
FIGURES = (
    "SELECT count(*), count(DISTINCT event_id), min(event_id), max(event_id), count(revenue),"
    " sum(revenue), min(occurred_at), max(occurred_at), count(DISTINCT kind) FROM t"
)


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quickstart")
    done = subprocess.run(
        [BINARY, "run", EXAMPLE], cwd=folder, timeout=120, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def table(quickstart) -> pathlib.Path:
    return quickstart[0] / "lakehouse" / "web" / "events"


@pytest.mark.parametrize("engine", engines.ALL)
def test_figures(quickstart, engine):
    got = engines.sql(engine, table(quickstart), FIGURES)[0]
    assert got[0] == got[1] == ROWS
    assert got[3] - got[2] == ROWS - 1, "ids are consecutive"
    first = engines.sql("duckdb-delta", table(quickstart), FIGURES)[0]
    assert [str(plain.plain(v)) for v in got] == [str(plain.plain(v)) for v in first]


def test_same_rows_everywhere(quickstart):
    """One row in a hundred or so, with all its values."""
    rows = {}
    for engine in engines.ALL:
        got = engines.read(engine, table(quickstart), "event_id < 9007199254743000")
        struct = pa.struct(list(plain.normalised(got).schema))
        rows[engine] = [plain.without_empty(row, struct) for row in plain.rows(got)]
    assert len(rows["deltalake"]) > 2000
    for engine in engines.ALL:
        diff = plain.difference(rows["deltalake"], rows[engine])
        assert not diff, f"{engine} and deltalake:\n{diff}"


def test_several_commits(quickstart):
    assert len(engines.static_table(table(quickstart)).metadata.snapshots) > 1


def test_live_files(quickstart):
    assert_same_files(table(quickstart))


def test_summary(quickstart):
    assert re.search(r'"totalRows": ?250000\b', quickstart[1]), quickstart[1]
    assert re.search(r'"pendingRows": ?0\b', quickstart[1])


def printed(quickstart, engine: str) -> str:
    return re.search(rf"(?m)^\s+{engine}\s+(.*)$", quickstart[1])[1]


def run_python(line: str):
    *setup, last = line.split("; ")
    scope: dict = {}
    exec("\n".join(setup), scope)
    return eval(last, scope)


def test_line_for_pyiceberg(quickstart):
    assert run_python(printed(quickstart, "pyiceberg")).num_rows == ROWS


def test_line_for_deltalake(quickstart):
    assert run_python(printed(quickstart, "deltalake")).num_rows == ROWS


def test_line_for_duckdb(quickstart):
    # The extension is loaded already, from its wheel.
    query = printed(quickstart, "DuckDB").replace("INSTALL iceberg; LOAD iceberg; ", "")
    assert engines.connect().sql(query).fetchone() == (ROWS,)


def test_again(quickstart):
    """A second run adds to the same table."""
    folder, _ = quickstart
    done = subprocess.run([BINARY, "run", EXAMPLE], cwd=folder, timeout=120, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    for engine in ("pyiceberg", "deltalake"):
        assert engines.sql(engine, table(quickstart), "SELECT count(*) FROM t")[0][0] == 2 * ROWS
    assert_same_files(table(quickstart))
