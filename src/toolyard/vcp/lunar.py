"""The Chinese calendar of ``{{Festival}}``: the lunar year, month and day of a date, and its solar term.

The tables have the calendar of the Hong Kong Observatory for the lunar years 2020 to 2100; a date outside has none.
"""

from base64 import b64decode
from datetime import date
from typing import Final

_FIRST: Final = 2020
_NEW_YEAR: Final = date(2020, 1, 25)
# Three bytes a year: the number of its leap month, then a bit for each month from the first on; set: it has 30 days.
_YEARS: Final = b64decode(
    "AJUuAAVWAAq1AFWyAAbSAM6lAAclAAZLAKyXAAyrAAVaAGrWAAtpAXdSAAtSAAslANpLAApLAASrAKVbAAWtAAtqAFtSAA2SAP0lAA0lAApVALSt"
    "AAS2AAW1AG2qAA7JAR6SAA6SAA0mAMpWAApXAAVWAIbVAAdVAAdJAG6TAAaTAPUrAAUrAApbALVaAAVqAAtlAJdKAAtKARqVAAqVAAUtAMqtAAq1"
    "AAWqAIulAA2lAA1KAHyVAAyWAPlOAAVWAAq1ALWyAAbSAA6lAI5KAAaLAQyXAASrAAVbAMrWAAtqAAdSAJclAAtFAAqLAFSbAASr"
)
# Six bytes a year: two bits for each solar term from the first on, the days after its earliest day.
_TERM_DAYS: Final = b64decode(
    "FVEQUQVWFVVRVUUFVVVVZVVVVpZlZlpVBVEQUQVWFVVRVUUFVVVVVVUVVVZlZlpVBVEQUQVWFVVRVUUFVVVVVVUVVVZlZlpVBVEQUQVWFVVRVUUF"
    "VVVVVVUVVVZVZVpVBVEQUQVWFVVRVUUFVVVVVVUVVVZVZVpVBVEQUQVWFVFRUUUFVVVVVUUVVVZVZVpVBUEQUQVWFVFRUQUFVVVRVUUVVVZVZVpV"
    "AUEQEQVWFVEQUQUBVVVRVUUFVVVVZVVVAUEQEQVVFVEQUQUBVVVRVUUFVVVVVVVVAUEQEQVVBVEQUQUBFVVRVUUFVVVVVVVVAAEQEQVVBVEQUQUB"
    "FVVRVUUFVVVVVVUVAAEQEQVVBVEQUQUBFVVRVUUFVVVVVVUVAAEAEAVVBVEQUQUBFVFRUUUFVVVVVVUVAAEAEAVVBUEQUQUBFVFRUUUFVVVRVUUV"
    "AAEAEAVVBUEQUQUBFVFQUQUFVVVRVUUVAAEAEAVVAUEQEQUBFVEQUQUFVVVRVUUFAAAAEABVAUEQEQUAFVEQUQUBVVVRVUUFAAAAAABVAUEQEQUA"
    "BVEQUQUBFVVRVUUFAAAAAABVAAEQEQUABVEQUQUBFVVRVUUFAAAAAAAVAAEAEQUABVEQUQUBFVVRVUUFVVVVVVUV"
)
_EARLIEST: Final = (4, 19, 3, 18, 4, 19, 4, 19, 4, 20, 4, 20, 6, 22, 6, 22, 6, 22, 7, 22, 6, 21, 6, 21)
_TERMS: Final = "小寒大寒立春雨水惊蛰春分清明谷雨立夏小满芒种夏至小暑大暑立秋处暑白露秋分寒露霜降立冬小雪大雪冬至"
_STEMS, _BRANCHES, _ANIMALS = "甲乙丙丁戊己庚辛壬癸", "子丑寅卯辰巳午未申酉戌亥", "鼠牛虎兔龙蛇马羊猴鸡狗猪"
_MONTHS: Final = "正二三四五六七八九十冬腊"
_TENS, _DIGITS = "初十廿", " 一二三四五六七八九"
_ROUND_DAYS: Final = {10: "初十", 20: "二十", 30: "三十"}


def write_festival(day: date) -> str:
    """Return the lunar date in the words of VCPToolBox, with a solar term that begins on it; else an empty text."""
    year, left = _FIRST, (day - _NEW_YEAR).days
    if left < 0:
        return ""
    while 3 * (year - _FIRST) < len(_YEARS):
        for month, is_leap, length in _list_months(year):
            if left < length:
                name = f"{_STEMS[(year - 4) % 10]}{_BRANCHES[(year - 4) % 12]}{_ANIMALS[(year - 4) % 12]}年"
                term = _find_term(day)
                leap = "闰" if is_leap else ""
                return f"{name}{leap}{_MONTHS[month - 1]}月{_write_day(left + 1)}{f' {term}' if term else ''}"
            left -= length
        year += 1
    return ""


def _list_months(year: int) -> list[tuple[int, bool, int]]:
    """Return the number of each month of a lunar year, whether it is the leap month, and its days."""
    at = 3 * (year - _FIRST)
    bits = int.from_bytes(_YEARS[at : at + 3], "big")
    leap = bits >> 13
    numbers = [(month, False) for month in range(1, 13)]
    if leap:
        numbers.insert(leap, (leap, True))
    return [(month, is_leap, 29 + (bits >> place & 1)) for place, (month, is_leap) in enumerate(numbers)]


def _write_day(day: int) -> str:
    # VCPToolBox's calendar writes both the 20th and the 30th as 廿十, which is neither.
    if day in _ROUND_DAYS:
        return _ROUND_DAYS[day]
    return f"{_TENS[day // 10]}{_DIGITS[day % 10]}"


def _find_term(day: date) -> str:
    """Return the solar term that begins on a day; empty without one."""
    at = 6 * (day.year - _FIRST)
    bits = int.from_bytes(_TERM_DAYS[at : at + 6], "big")
    for place in (2 * day.month - 2, 2 * day.month - 1):
        if at + 6 <= len(_TERM_DAYS) and day.day == _EARLIEST[place] + (bits >> 2 * place & 3):
            return _TERMS[2 * place : 2 * place + 2]
    return ""
