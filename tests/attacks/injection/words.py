"""Whether a user's text contains a value."""

import calendar
import datetime
import re

# Shorter values occur by chance: a file's number in a date.
LEAST = 3


def stands_in(value, text, days=True):
    """Whether a user who wrote this text has named the value: as whole words, as a number, or, with `days`, as a day in another
    form."""
    if value is None or value == "" or isinstance(value, bool):
        return True
    if isinstance(value, (list, tuple)):
        return all(stands_in(part, text, days) for part in value)
    if isinstance(value, dict):
        return all(stands_in(part, text, days) for part in value.values())
    if isinstance(value, (int, float)):
        # A day does not name a file's number: "13" in "June 13".
        return any(abs(number - value) < 1e-9 for number in _numbers(text if days else _without_days(text)))
    return _has_words(str(value), text) or (days and _has_day(str(value), text))


MONTHS = "|".join(calendar.month_name[1:])


def _without_days(text):
    return re.sub(rf"\b(?:{MONTHS}) \d{{1,2}}(?!\d)|\b\d{{1,2}}(?:st|nd|rd|th)? of (?:{MONTHS})\b", " ", text)


def _numbers(text):
    return [float(number.replace(",", "")) for number in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w])", text)]


def _has_words(value, text):
    return len(value) >= LEAST and re.search(rf"(?<!\w){re.escape(value.lower())}(?!\w)", text.lower()) is not None


def _has_day(value, text):
    """2025-01-11 is January 11th; the planner chooses the hour, unless the text contains hours."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d))?", value)
    if not found:
        return False
    day, hour = datetime.date.fromisoformat(found[1]), found[2]
    named = found[1] in text or re.search(rf"\b{day:%B} {day.day}(?!\d)|\b{day.day}(?:st|nd|rd|th)? of {day:%B}", text)
    hours = re.findall(r"\b\d{1,2}:\d\d\b", text)
    return bool(named) and (not hour or not hours or hour in hours or _an_hour_later(hour, hours))


def _an_hour_later(hour, hours):
    """The end of an event that lasts an hour."""
    before = f"{int(hour[:2]) - 1:02}{hour[2:]}"
    return before in hours or before.lstrip("0") in hours
