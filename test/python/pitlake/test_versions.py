"""A lake stands at its version while jobs write and vacuum frees; refresh moves on."""

import gc
import json
import multiprocessing
import os
import warnings

import duckdb
import pytest
from conftest import command, make_small

import pitlake

SUPPLY = "supply/current_pit"


def pins(folder):
    return sorted((folder / "locks").glob("pin-python-*.lock"))


def moved_on(folder):
    """Another day, every partition merged into one file, superseded ones freed."""
    make_small(folder, "--more")
    assert command("compact", "--data", folder).returncode == 0
    freed = command("vacuum", "--keep", "0s", "--yes", "--json", "--data", folder)
    assert freed.returncode == 0, freed.stderr
    return json.loads(freed.stdout)["data"]["files"]


def test_a_job_beside_changes_no_answer(own):
    lake = pitlake.open(own)
    answer, version = lake.points(SUPPLY, currency="*"), lake.version
    before = answer.df()
    assert moved_on(own) == 0, "the pin keeps what this version reads"
    assert answer.df().equals(before) and lake.points(SUPPLY, currency="*").df().equals(before) and lake.version == version
    beside = pitlake.open(own)
    assert beside.version > version and beside.points(SUPPLY).df()["v"].tolist() == [1, 2, 3, 4]
    assert lake.refresh() == beside.version and lake.points(SUPPLY).df()["v"].tolist() == [1, 2, 3, 4]
    assert answer.df().equals(before), "an answer stays at its version"
    del answer
    freed = command("vacuum", "--keep", "0s", "--yes", "--json", "--data", own)
    assert json.loads(freed.stdout)["data"]["files"] > 0, "nobody needs the earlier version any more"
    assert lake.points(SUPPLY).df()["v"].tolist() == [1, 2, 3, 4]
    lake.close(), beside.close()
    assert pins(own) == [] and not list((own / "locks").glob("pin-python-*"))


def test_nothing_is_kept_for_nobody(own):
    pitlake.open(own).close()
    assert moved_on(own) > 0


def opened_and_killed(folder):
    lake = pitlake.open(folder)
    assert lake._seat.pin.held
    os._exit(9)


def test_a_killed_reader_keeps_nothing(own):
    child = multiprocessing.get_context("fork").Process(target=opened_and_killed, args=(own,))
    child.start()
    child.join()
    assert child.exitcode == 9 and len(pins(own)) == 1
    assert moved_on(own) > 0


def test_a_forked_child_leaves_the_pin_alone(own):
    lake = pitlake.open(own)
    child = multiprocessing.get_context("fork").Process(target=lambda: lake._seat.pin.release())
    child.start()
    child.join()
    assert child.exitcode == 0 and len(pins(own)) == 1 and moved_on(own) == 0
    lake.close()


def test_a_collected_lake_lets_go(own):
    lake = pitlake.open(own)
    assert len(pins(own)) == 1
    del lake
    assert pins(own) == []


def test_a_folder_that_cannot_be_written_is_read_without_a_pin(own, monkeypatch):
    def denied(*_, **__):
        raise PermissionError("read-only")

    monkeypatch.setattr("pathlib.Path.mkdir", denied)
    lake = pitlake.open(own)
    assert not lake._seat.pin.held and lake.points(SUPPLY).df()["v"].tolist() == [1, 2, 3]
    lake.close()


def test_the_pin_says_since_when(own):
    with pitlake.open(own) as lake:
        [holder] = (own / "locks").glob("pin-python-*.json")
        said = json.loads(holder.read_text())
        assert said["pid"] == os.getpid()
        assert said["since"] == lake.sql("SELECT epoch_us(committed_at) AS at FROM lake_info").df()["at"][0]


def test_opening_and_closing_a_lake_leaves_no_file_open(own):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pitlake.open(own) as lake:
            lake.points(SUPPLY).df()
        del lake
        gc.collect()
    assert [str(one.message) for one in caught if one.category is ResourceWarning] == []


def test_two_states_in_one_process(own):
    with pitlake.open(own) as now, pitlake.open(own, as_of="2024-03-03") as then:
        assert now.points(SUPPLY).df()["v"].tolist() == [1, 2, 3] and then.points(SUPPLY).df()["v"].tolist() == [1]
        assert now.points(SUPPLY).df()["v"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("fails", [True, False])
def test_without_the_command_line(own, monkeypatch, fails):
    with pitlake.open(own) as lake:
        if fails:
            monkeypatch.delenv("PITLAKE_COMMAND")
            monkeypatch.setenv("PATH", "")
            for ask in (lambda: lake.stamp("SELECT 1 AS n", "x.parquet"), lambda: lake.replay("x"), lambda: lake.lookahead("SELECT 1"),
                        lambda: lake.stress("SELECT 1 AS n", "avg(n)")):
                with pytest.raises(pitlake.LakeError, match="not on the path: start Python in `make shell` of a checkout of pitlake, or set PITLAKE_COMMAND"):
                    ask()
            return
        query = f"WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('2024-03-03', '2024-03-06', '1 day')) SELECT ts, v FROM pit_join('d', '{SUPPLY}', '24h') ORDER BY ts"
        out = own.parent / "stamped.parquet"
        said = lake.stamp(query, out)
        assert said["rows"] == 3 and said["version"] == lake.version and out.exists()
        assert lake.replay(out)["same"] is True
        assert lake.lookahead(query)["verdict"] == "clean"
        ahead = f"SELECT t AS ts, v FROM points WHERE metric = '{SUPPLY}' AND currency = 'usd'"
        assert lake.lookahead(ahead)["verdict"] == "leak"
        stressed = lake.stress(query, "avg(v)", lags=["1h"], vintages=1, within=0.9)
        assert stressed["verdict"] == "holds" and stressed["statistic"] == 2
        assert lake.explain_change(out)["verdict"] == "same"
        with pytest.raises(pitlake.LakeError, match="nope"):
            lake.stamp("SELECT nope FROM points", out)


def test_a_verdict_is_about_the_lake_in_its_state(own):
    later = f"SELECT t + getvariable('days') * INTERVAL 1 DAY AS ts, v FROM points WHERE metric = '{SUPPLY}' AND currency = 'native'"
    known = f"SELECT available_at AS ts, v FROM points WHERE metric = '{SUPPLY}' AND currency = 'native'"
    with pitlake.open(own, as_of="2024-03-03T12:00:00", set={"Days": 2, "unread": "x"}) as lake:
        assert lake.lookahead(later)["verdict"] == "clean"
        assert lake.lookahead(known)["verdict"] == "clean", "a variable that the query does not read is no mistake"
        assert lake.stress(known, "avg(v)", lags=["1h"], vintages=0, within=0.9)["statistic"] == 1.5
        out = own.parent / "stamped.parquet"
        assert lake.stamp(later, out)["variables"] == {"as_of": "2024-03-03T12:00:00", "days": 2}
        assert lake.stress(out, "avg(v)", lags=["1h"], vintages=0, within=0.9)["statistic"] == 1.5, "a stamped result has its own state"
        with pytest.raises(pitlake.LakeError, match="lookahead: shift: expected a function, got a query"):
            lake.lookahead(known, shift="1D")
    with pitlake.open(own, set={"days": 1}) as lake:
        assert lake.lookahead(later)["verdict"] == "leak"


def test_a_look_at_a_function_leaves_as_of_to_the_test(own):
    def counted(lake):
        return lake.sql(f"SELECT available_at AS ts, getvariable('days') AS n FROM points WHERE metric = '{SUPPLY}' AND currency = 'native'").df()

    with pitlake.open(own, set={"AS_OF": "2024-03-03", "Days": 2}) as lake:
        for verdict in (lake.lookahead(counted, cutoffs=3), pitlake.lookahead(counted, own, cutoffs=3, set={"As_Of": "2024-03-03", "days": 2})):
            assert verdict and verdict.facts["rows"] == 3


def test_when_finds_the_time_from_whose_knowledge_a_frame_comes(own):
    query = f"WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('2024-03-02', '2024-03-06', '1 day')) SELECT ts, asset, v AS supply FROM pit_join('d', '{SUPPLY}', '24h') ORDER BY ts"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pitlake.open(own, as_of="2024-03-03T12:00:00") as then:
            frame = then.sql(query).df()
    with pitlake.open(own) as lake:
        dated = lake.when(frame, metrics={"supply": SUPPLY})
        assert dated and dated.as_of[0].start <= "2024-03-03T12:00:00" < dated.as_of[0].end
        assert lake.when(frame, claimed="2024-03-03T12:00:00", metrics={"supply": SUPPLY}).verdict == "dated"
        frame.loc[0, "supply"] = 12345.5
        changed = lake.when(frame, metrics={"supply": SUPPLY})
        assert not changed and changed.as_of == [] and changed.contradiction["first"][0]["value"] == 12345.5


def turned(file, how):
    """Writes to a file, and sets its times back."""
    facts = file.stat()
    file.write_bytes(how(file.read_bytes()))
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.mark.parametrize("pattern, fix", [("points/**/*.parquet", "pitlake doctor"), ("exports/endpoints-*.parquet", "pitlake views")])
def test_files_that_were_changed_are_refused(own, pattern, fix):
    file = next(own.glob(pattern))
    turned(file, lambda own: own[:99] + bytes([own[99] ^ 1]) + own[100:])
    with pytest.raises(pitlake.LakeError, match=f"{file.name}: expected the bytes that were .*, got others; run `{fix}`"):
        pitlake.open(own)
    assert pins(own) == []


def test_a_lake_with_changed_files_leaves_no_session_open(own, monkeypatch):
    file = next(own.glob("points/**/*.parquet"))
    turned(file, lambda own: own + b" ")
    opened, connect = [], duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *given, **more: opened.append(connect(*given, **more)) or opened[-1])
    with pytest.raises(pitlake.LakeError, match="bytes that were committed"):
        pitlake.open(own)
    with pytest.raises(duckdb.ConnectionException, match="closed"):
        opened[0].execute("SELECT 1")


def test_a_file_of_another_size_is_refused(own):
    file = next(own.glob("points/**/*.parquet"))
    turned(file, lambda own: own + b" ")
    with pytest.raises(pitlake.LakeError, match=r"expected the \d+ bytes that were committed, got \d+ bytes"):
        pitlake.open(own)
    with pytest.raises(pitlake.LakeError, match="that were committed"):
        pitlake.lookahead(lambda lake: lake.points(SUPPLY), own)


def test_what_was_proved_where_it_stands_is_not_read_again(tmp_path, monkeypatch):
    own, read = make_small(tmp_path / "lake"), []
    monkeypatch.setattr(pitlake.folder, "_digest", lambda path: read.append(path) or "")
    pitlake.open(own).close()
    assert read == []
    touched = next(own.glob("points/**/*.parquet"))
    os.utime(touched)
    with pytest.raises(pitlake.LakeError, match="got others"):
        pitlake.open(own)
    assert read == [touched]


VIEWS = ("lake.duckdb", "lake.sql", "lake.manifest.json")


def left_behind(folder):
    """Another day, and the views as they were: what a kill between commit and views leaves."""
    kept = {name: (folder / name).read_bytes() for name in VIEWS}
    make_small(folder, "--more")
    for name, data in kept.items():
        (folder / name).write_bytes(data)


@pytest.mark.dear
def test_views_that_were_left_behind_are_said_once_while_a_lake_is_open(own):
    with warnings.catch_warnings():
        warnings.simplefilter("error", pitlake.LakeWarning)
        lake = pitlake.open(own)
        version = lake.version
    left_behind(own)
    said = f"the views of this lake are of version {version}, the lake is at {version + 1}: run pitlake views"
    with pytest.warns(pitlake.LakeWarning, match=said):
        lake.points(SUPPLY)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pitlake.LakeWarning)
        assert lake.refresh() == version
    with pytest.warns(pitlake.LakeWarning, match=said):
        pitlake.open(own).close()
    assert command("views", "--data", own).returncode == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", pitlake.LakeWarning)
        assert lake.refresh() == version + 1
        assert lake.points(SUPPLY).df()["v"].tolist() == [1, 2, 3, 4]
    lake.close()
