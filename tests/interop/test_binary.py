"""What the binary itself promises: commands, standard input, a signal, exit codes."""

import json
import os
import signal
import subprocess
import time

import pyarrow as pa
import pytest

import engines
from conftest import BINARY, HERE, assert_rows, config

EXAMPLES = HERE.parent.parent / "config" / "examples"
SCHEMA = pa.schema([("id", pa.int64())])


def command(*args, **kwargs) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, *args], text=True, capture_output=True, timeout=60, **kwargs)


def test_examples_lint():
    done = command("lint", *sorted(EXAMPLES.glob("*.yaml")))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "options, says",
    [
        ("row_limits: 5", "row_limits"),
        ("formats: [delta]", "formats"),
        ("tier: premium\nstreaming: {enabled: true, commit_interval: 10s}", "commit_interval"),
        ("catalog: {filesystem: {}, sql: {dsn: x.db}}", "catalog"),
    ],
)
def test_wrong_settings_do_not_lint(tmp_path, options, says):
    conf = tmp_path / "wrong.yaml"
    conf.write_text(config(options))
    env = os.environ | {"INPUT": "in.ndjson", "WAREHOUSE": str(tmp_path / "warehouse")}
    done = command("lint", conf, env=env)
    assert done.returncode != 0
    assert says in done.stdout + done.stderr
    assert not (tmp_path / "warehouse").exists(), "nothing was made"


def test_created_config_lints(tmp_path):
    done = command("create", "generate//managed_lakehouse")
    assert done.returncode == 0, done.stderr
    conf = tmp_path / "created.yaml"
    conf.write_text(done.stdout)
    done = command("lint", conf)
    assert done.returncode == 0, done.stdout + done.stderr


def test_list():
    assert "managed_lakehouse" in command("list", "outputs").stdout


def test_unwritable_warehouse(tmp_path):
    """A folder below a file can be made by nobody, root included."""
    (tmp_path / "file").write_text("x")
    conf = tmp_path / "c.yaml"
    conf.write_text(config())
    (tmp_path / "in.ndjson").write_text('{"id":1}\n')
    done = command("run", conf, env=os.environ | {"INPUT": str(tmp_path / "in.ndjson"), "WAREHOUSE": str(tmp_path / "file" / "lake")})
    assert done.returncode != 0
    assert "warehouse" in done.stdout + done.stderr


def test_stdin(tmp_path):
    """Ends by itself after the last line, long before the interval."""
    lines = [{"id": i} for i in range(1000)]
    done = command(
        "run", EXAMPLES / "stdin.yaml", input="".join(json.dumps(x) + "\n" for x in lines),
        env=os.environ | {"WAREHOUSE": str(tmp_path), "TABLE": "lines"}, cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "trigger=idle" in done.stdout, "the end of input must not wait for the interval"
    for engine in engines.ALL:
        assert_rows(engine, engines.read(engine, tmp_path / "default" / "lines"), lines, SCHEMA)


def until(true, seconds=60):
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_sigterm_commits_what_is_pending(tmp_path):
    """The input never ends and no trigger would come for a minute."""
    conf = tmp_path / "c.yaml"
    conf.write_text(
        "input: {stdin: {}}\n"
        "output:\n"
        "  managed_lakehouse:\n"
        f"    warehouse: {tmp_path}\n"
        "    table: events\n"
        "    streaming: {enabled: true, idle: 0s}\n"
        "shutdown_timeout: 60s\n"
    )
    rows = [{"id": i} for i in range(500)]
    log = tmp_path / "log"
    with open(log, "w") as out, subprocess.Popen(
        [BINARY, "run", conf], text=True, stdin=subprocess.PIPE, stdout=out, stderr=out
    ) as process:
        process.stdin.write("".join(json.dumps(x) + "\n" for x in rows))
        process.stdin.flush()
        until(lambda: "Output type managed_lakehouse is now active" in log.read_text())
        time.sleep(2)
        assert not (tmp_path / "default").exists(), "nothing is committed yet"
        process.send_signal(signal.SIGTERM)
        # Standard input stays open: the signal alone must end the run.
        code = process.wait(timeout=50)
    out = log.read_text()
    assert code == 0, out
    assert "trigger=drain" in out, "the signal itself must make the commit"
    assert '"totalRows":500' in out.replace(" ", ""), out
    for engine in engines.ALL:
        assert_rows(engine, engines.read(engine, tmp_path / "default" / "events"), rows, SCHEMA)
