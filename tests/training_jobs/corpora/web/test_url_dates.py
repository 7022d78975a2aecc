"""The day in a URL: the shapes that real addresses have, and what only looks like a day."""

import datetime

import pytest

from training_jobs.corpora.web.url_dates import AMBIGUOUS, IMPOSSIBLE, NO_DATE, NO_DAY, NO_URL, date_in_url

DAY = datetime.date(2016, 11, 28)


@pytest.mark.parametrize(
    "path",
    [
        "/2016/11/28/first-talks/", "/2016/11/28/first-talks.html", "/news/2016-11-28/doubletree",
        "/2016_11_28_archive.html",
        "/blog/2016/nov/28/green", "/story/2016/november/28/1234/", "/20161128/1521842772.html", "/a/2016.11.28/b",
        "/toledo/20161128110136006768.html", "/post-20161128.htm", "/28-11-2016/", "/11-28-2016", "/28/11/2016/x",
        "/news-28-november-2016-talks", "/nov-28-2016", "/november-28,-2016/x", "/28th-nov-2016", "/%5B2016-11-28%5D",
        "/events?day=28&month=11&year=2016", "/edit.php?room=18&hour=12&minute=30&year=2016&month=11&day=28",
        "/x.html?from=2016-11-28&to=2016-12-01", "/2016/11/28/x?date=2001-01-01", "/2016-11-28T10:00/x",
    ],
)  # fmt: skip
def test_a_day_is_read(path: str) -> None:
    assert date_in_url(f"http://2011.conf.example{path}").day == DAY


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (None, NO_URL), ("", NO_URL), ("http://2016-11-28.example/a", NO_DATE),
        ("https://a.example/wiki/Guide", NO_DATE),
        ("https://a.example/2016/11/quiz.html", NO_DAY), ("https://a.example/blog/february-2018/x", NO_DAY),
        ("https://a.example/05/06/2019/", AMBIGUOUS), ("https://a.example/2016/13/28/", NO_DATE),
        ("https://a.example/2015/02/30/x", NO_DAY), ("https://a.example/1398/03/27/2034347/", NO_DATE),
        ("https://a.example/RP-P-1909-1779", NO_DATE), ("https://a.example/1966-05-10-game", IMPOSSIBLE),
        ("https://a.example/questions/201491128/x", NO_DATE),
        ("https://a.example/?pid=S1851-94902007000100012", NO_DATE),
        ("https://a.example/p?showComment=1310491615547", NO_DATE), ("https://a.example/2017-2018", NO_DATE),
        ("http://[broken/2016/11/28/", NO_DATE), ("https://a.example/x?day=x&month=11&year=2016", NO_DATE),
    ],
)  # fmt: skip
def test_what_is_no_day_says_why(url: str | None, why: object) -> None:
    assert date_in_url(url) == why


def test_a_page_is_not_written_after_its_download() -> None:
    url = "https://a.example/2022/08/05/booking?seen=2016-11-28"
    assert date_in_url(url).day == datetime.date(2022, 8, 5)
    assert date_in_url(url, latest=datetime.date(2019, 7, 1)).day == DAY


def test_the_same_day_and_month_are_not_ambiguous() -> None:
    assert date_in_url("https://a.example/05-05-2019/").day == datetime.date(2019, 5, 5)
