"""Lakes for the tests of the package: the small one of its examples, and the one of the notebooks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NODE = ["node", "-r", str(ROOT / "scripts" / "fixed-node.cjs")]
if "PITLAKE_INSTALLED" not in os.environ:
    sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("PITLAKE_COMMAND", f"node {ROOT / 'scripts' / 'launch.cjs'}")

import pitlake  # noqa: E402


def pytest_configure(config):
    # Of DuckDB itself.
    config.addinivalue_line("filterwarnings", "ignore:The inplace keyword")


def pytest_terminal_summary(terminalreporter):
    """The counts as vitest tells its own, for scripts/counts.ts."""
    report = os.environ.get("PITLAKE_REPORT")
    if report is None:
        return
    stats = terminalreporter.stats
    left = [{"name": str(ROOT / one.nodeid.split("::")[0]), "status": "passed",
             "assertionResults": [{"status": "skipped", "meta": {"lacks": one.longrepr[2].removeprefix("Skipped: ")}}]}
            for one in stats.get("skipped", [])]
    lost = [{"name": str(ROOT / one.nodeid.split("::")[0]), "status": "failed",
             "assertionResults": [{"status": "failed", "fullName": one.nodeid.partition("::")[2]}]}
            for one in stats.get("failed", []) + stats.get("error", [])]
    passed, failed = len(stats.get("passed", [])), len(lost)
    Path(report).write_text(json.dumps({"numPassedTests": passed, "numFailedTests": failed, "testResults": left + lost}))


def make_small(folder: Path, *more: str) -> Path:
    subprocess.run([*NODE, str(ROOT / "test/python/pitlake/small-lake.ts"), str(folder), *more], check=True, cwd=ROOT)
    return folder


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    line = [*os.environ["PITLAKE_COMMAND"].split(), *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The folder of the small lake; nobody writes to it."""
    return make_small(tmp_path_factory.mktemp("small") / "lake")


@pytest.fixture(scope="session")
def restored(tmp_path_factory):
    """A small lake in its place, and a copy that can be put there again: views name their files by the full path."""
    place = tmp_path_factory.mktemp("own")
    make_small(place / "lake")
    shutil.copytree(place, place.with_suffix(".kept"))
    return place


@pytest.fixture
def own(restored):
    """A small lake of the test's own, in a folder of its own."""
    shutil.rmtree(restored)
    shutil.copytree(restored.with_suffix(".kept"), restored)
    return restored / "lake"


@pytest.fixture
def lake(small):
    with pitlake.open(small) as opened:
        yield opened


@pytest.fixture(scope="session")
def notebooks():
    """The folder of the notebooks' lake."""
    folder = Path(os.environ.get("PITLAKE_NOTEBOOK_LAKE", ROOT / ".cache" / "notebook-lake"))
    if not (folder / "lake.duckdb").exists():
        pytest.fail("the lake of the notebooks is not there: scripts/notebook-lake.sh makes it")
    return folder
