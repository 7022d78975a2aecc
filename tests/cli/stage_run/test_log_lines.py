"""A stamped log in any pieces, asked for again after it broke: every line once."""

from __future__ import annotations

import datetime as dt

from cli.stage_run.log_lines import LogLines

LINES = [f"2026-11-21T16:00:0{n // 2}.{n:09d}Z line {n} é" for n in range(12)]


def ask(log: LogLines, lines: list[str], size: int = 1000, ended: bool = False) -> list[str]:
    """What `log` makes of the answer to its question, in pieces of ``size``: a log of ``lines``."""
    since = log.since()
    whole = [one for one in lines if since is None or dt.datetime.fromisoformat(one.split()[0]) >= since]
    data = "".join(f"{one}\n" for one in whole).encode()
    return list(log.fresh((data[at : at + size] for at in range(0, len(data), size)), ended=ended))


def test_every_line_is_given_once_however_often_it_comes() -> None:
    for size in (1, 7, 1000):
        log = LogLines()
        given = [ask(log, LINES[:end], size) for end in (0, 4, 5, 9, 12, 12)]
        assert [line for part in given for line in part] == [f"line {n} é" for n in range(12)]
        assert given[-1] == []
        assert log.since() == dt.datetime(2026, 11, 21, 16, 0, 3, tzinfo=dt.UTC)


def test_lines_with_one_stamp_and_out_of_order_are_all_kept() -> None:
    """As two streams of a container write them."""
    stamps = ["16:00:05.2", "16:00:05.1", "16:00:05.2", "16:00:04.9"]
    lines = [f"2026-11-21T{stamp}Z same" for stamp in stamps]
    log = LogLines()
    assert ask(log, lines[:1]) + ask(log, lines[:3]) + ask(log, lines) == ["same"] * 4


def test_stamps_of_a_nodes_own_time_zone() -> None:
    log = LogLines()
    assert ask(log, ["2026-11-22T01:00:05.5+09:00 here"]) == ["here"]
    assert log.since() == dt.datetime(2026, 11, 21, 16, 0, 3, tzinfo=dt.UTC)


def test_a_line_that_was_cut_comes_again_and_one_without_an_end_is_given_at_the_end() -> None:
    log = LogLines()
    cut, whole = b"2026-11-21T16:00:00Z no e", b"no stamp\r\n2026-11-21T16:00:00Z no end"
    assert list(log.fresh([cut], ended=False)) == []
    assert list(log.fresh([whole], ended=True)) == ["no stamp", "no end"]
