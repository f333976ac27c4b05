"""A lake that was moved or copied opens where it is, without Node."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import make_small

import pitlake

SUPPLY = "supply/current_pit"
SCRIPTS = json.loads((Path(__file__).resolve().parents[2] / "golden/moved-scripts.json").read_text(encoding="utf8"))


@pytest.mark.parametrize("case", SCRIPTS, ids=lambda case: case["about"])
def test_the_paths_of_a_moved_script(case):
    assert pitlake.folder._renamed(case["script"], case["built"], case["folder"]) == case["moved"]


def told(folder, **state):
    """Whatever the views of a lake tell, and one join; the folder itself left out."""
    with pitlake.open(folder, **state) as lake:
        views = lake.sql("SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'lake' AND NOT internal ORDER BY ALL").df()
        rows = {}
        for schema, name in views.itertuples(index=False):
            exclude = " EXCLUDE folder" if name == "lake_info" else ""
            rows[schema, name] = sorted(map(repr, lake.sql(f'SELECT CAST(COLUMNS(*{exclude}) AS VARCHAR) FROM "{schema}"."{name}"')._relation.fetchall()))
        days = lake.calendar("2024-03-03", "2024-03-06", "1 day", ["BTC"])
        return rows, lake.panel(days, SUPPLY, fields=["v", "age"]).arrow().to_pylist(), lake.version


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Where a lake is now, and what it said in its place; both folders have awkward names, and no command is there."""
    own = make_small(tmp_path / "o'wn [1]")
    before = told(own), told(own, as_of="2024-03-03")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("PITLAKE_COMMAND")
    folder = tmp_path / "a 'b' [c]" / "l*ke"
    folder.parent.mkdir()
    own.rename(folder)
    return folder, before


def test_it_tells_what_it_told(elsewhere):
    folder, before = elsewhere
    assert (told(folder), told(folder, as_of="2024-03-03")) == before and len(before[0][0]) > 30
    with pitlake.open(folder) as lake:
        assert lake.status().df()["folder"].tolist() == [str(folder)] and lake.sql("SELECT state FROM lake_info").df()["state"].tolist() == ["in place"]
        for change in ("CREATE TABLE mine AS SELECT 1", "CREATE OR REPLACE VIEW points AS SELECT 1"):
            with pytest.raises(pitlake.LakeError, match="CREATE TEMP TABLE is allowed"):
                lake.sql(change)


def test_a_copy_reads_itself(own, tmp_path):
    shutil.copytree(own, tmp_path / "copy")
    make_small(own, "--more")
    with pitlake.open(own) as lake, pitlake.open(tmp_path / "copy") as copy:
        assert lake.points(SUPPLY).df()["v"].tolist() == [1, 2, 3, 4] and copy.points(SUPPLY).df()["v"].tolist() == [1, 2, 3]
        assert copy.sql(f"SELECT DISTINCT filename FROM read_parquet('{tmp_path}/copy/points/**/*.parquet', filename = true)").df().size
    shutil.rmtree(own)
    with pitlake.open(tmp_path / "copy") as copy:
        assert copy.points(SUPPLY).df()["v"].tolist() == [1, 2, 3]


def test_a_script_does_nothing_but_views(elsewhere, tmp_path):
    folder, before = elsewhere
    script, out = folder / "lake.sql", tmp_path / "out.csv"
    head, _, rest = script.read_text().partition("\n")
    script.write_text(f"{head}\nCOPY (SELECT 1) TO '{out}';\nCREATE TABLE t AS SELECT 1;\nATTACH '{out}' AS x;\n{rest}")
    assert told(folder) == before[0]
    assert not out.exists()


def test_a_link_is_the_same_folder(own, tmp_path, monkeypatch):
    monkeypatch.setattr(pitlake.folder, "_renamed", lambda *_: pytest.fail("made anew"))
    (tmp_path / "link").symlink_to(own)
    with pitlake.open(tmp_path / "link") as lake:
        assert lake.points(SUPPLY).df()["v"].tolist() == [1, 2, 3]
