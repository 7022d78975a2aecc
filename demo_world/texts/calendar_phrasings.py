"""What calendar texts say, by the part of today's date that they name.

Each entry is a statement (in lower case, without its full stop) and, where one can be asked, the question it answers.
``{other}`` is another date that stands in the text and is not the answer.
"""

from __future__ import annotations

FULL_DATE: tuple[tuple[str, str], ...] = (
    ("today is| {answer}", "What is today's date?"),
    ("today is| {answer}", "What day is today?"),
    ("the current date is| {answer}", "What is the current date?"),
    ("today's date is| {answer}", "Which date is it today?"),
    ("the date today is| {answer}", "What is the date today?"),
    ("it is| {answer} today", "What date do we have today?"),
    ("we are writing this on| {answer}", "On which date is this being written?"),
    ("this letter was written on| {answer}", "When was this letter written?"),
    ("the date on the calendar is| {answer}", "Which date does the calendar show?"),
    ("this page was printed today,| {answer}", ""),
    ("the report is dated| {answer}", "How is the report dated?"),
    ("the meeting takes place today,| {answer}", "When does the meeting take place?"),
    ("the last meeting was on {other} and today is| {answer}", ""),
    ("{person} was born on {other}, and today's date is| {answer}", ""),
    ("the shop opened on {other}; today is| {answer}", ""),
    ("the newspaper of today says that it is| {answer}", ""),
    ("as of today,| {answer}, the road is closed", ""),
    ("{person} arrived today, which is| {answer}", ""),
    ("right now the date is| {answer}", "What is the date right now?"),
)
WEEKDAY: tuple[tuple[str, str], ...] = (
    ("today is a| {answer}", "Which day of the week is it?"),
    ("it is| {answer}", "What day of the week is it today?"),
    ("the day of the week is| {answer}", "What is the day of the week?"),
    ("the current day of the week is| {answer}", "What is the current day of the week?"),
    ("today's weekday is| {answer}", "Which weekday is it today?"),
    ("the weekday is| {answer}", "What weekday do we have?"),
    ("{person} thought that it was {weekday}, but it is| {answer}", ""),
    ("happy| {answer}, everyone", ""),
    ("this week's market is today, on a| {answer}", "On which day of the week is the market?"),
    ("the shop is closed today because it is| {answer}", "Which day of the week is today?"),
)
MONTH: tuple[tuple[str, str], ...] = (
    ("the current month is| {answer}", "What is the current month?"),
    ("it is now the month of| {answer}", "Which month is it now?"),
    ("this month is| {answer}", "What month is it?"),
    ("we are in the month of| {answer}", "Which month are we in?"),
    ("the month is| {answer}", "What month is it today?"),
    ("the month of today's date is| {answer}", "In which month are we?"),
    ("the page of the calendar shows| {answer}", "Which month does the calendar show?"),
    ("{person} came back this month, in| {answer}", ""),
)
YEAR: tuple[tuple[str, str], ...] = (
    ("it is now the year| {answer}", "Which year is it now?"),
    ("the current year is| {answer}", "What is the current year?"),
    ("the year is| {answer}", "What year is it?"),
    ("we are in the year| {answer}", "Which year are we in?"),
    ("this year is| {answer}", "What year is it this year?"),
    ("the house was built in {other_year} and it is now| {answer}", ""),
    ("{person} was born in {other_year}; the current year is| {answer}", ""),
    ("the year on the calendar is| {answer}", "Which year does the calendar show?"),
    ("the present year is| {answer}", "What is the present year?"),
    ("everything in this list is from this year,| {answer}", ""),
)
DAY: tuple[tuple[str, str], ...] = (
    ("the day of the month is| {answer}", "What is the day of the month?"),
    ("today is day| {answer} of the month", "Which day of the month is it?"),
    ("the number of today's day is| {answer}", "What is the number of today's day?"),
    ("the calendar for this month is open at day| {answer}", "At which day is the calendar open?"),
    ("in this month's list we have come to day| {answer}", "To which day of the month have we come?"),
)
DAY_AND_MONTH: tuple[tuple[str, str], ...] = (
    ("the day and the month are| {answer}", "What are the day and the month?"),
    ("this year's party is today, on| {answer}", "On which day of the year is the party?"),
    ("{person} has a birthday today,| {answer}", "When is the birthday?"),
    ("the holiday is today, on| {answer}", "On which day is the holiday?"),
)

OPENINGS: tuple[str, ...] = (
    "Good morning.", "Welcome back.", "Dear {person2},", "Hello {person2}.", "It is a {weather} day.",
    "A note from {place}.",
    "The last entry was on {other}.", "{person2} was here on {other}.", "Here is the news.", "The diary of {person2}.",
    "Please remember the date.", "{person2} moved here in {other_year}.", "Attention, please.",
)  # fmt: skip
