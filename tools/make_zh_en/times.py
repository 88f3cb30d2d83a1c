"""Lexicon and small grammar of numbers, dates, clock times and other expressions of time."""

from random import Random

from .nouns import rows
from .phrase import Phrase, arrange, sequence, unit

DIGITS_ZH = "零一二三四五六七八九"
SMALL_EN = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS_EN = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
IRREGULAR_ORDINALS = {1: "1st", 2: "2nd", 3: "3rd", 21: "21st", 22: "22nd", 23: "23rd", 31: "31st"}
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
WEEKDAYS = dict(
    zip(
        "一二三四五六日",
        ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
        strict=True,
    )
)

# Near times suit anything one does; far times only what one remembers for months.
_NEAR = {
    "past": """
昨天, yesterday
前天, the day before yesterday
昨天 晚上, last night
昨天 下午, yesterday afternoon
昨天 早上, yesterday morning
今天 早上, this morning
刚才, just now
上 个 周末, last weekend
""",
    "future": """
明天, tomorrow
后天, the day after tomorrow
明天 早上, tomorrow morning
明天 下午, tomorrow afternoon
明天 晚上, tomorrow night
今天 晚上, tonight
这 个 周末, this weekend
""",
    "habit": """
每天, every day
每天 早上, every morning
每天 晚上, every evening
每天 下午, every afternoon
每 个 周末, every weekend
""",
}
_FAR = {
    "past": "上 个 星期, last week\n上 个 月, last month\n去年, last year",
    "future": "下 个 星期, next week\n下 个 月, next month\n明年, next year",
    "habit": "每 个 星期, every week\n每 个 月, every month",
}
# Days that a clock time may follow (昨天下午三点), and the hours that make sense there.
_CLOCK_DAYS = {
    "past": """
昨天 下午, yesterday afternoon
昨天 早上, yesterday morning
今天 早上, this morning
昨天, yesterday
""",
    "future": """
明天 早上, tomorrow morning
明天 下午, tomorrow afternoon
明天, tomorrow
""",
    "habit": """
每天 早上, every morning
每天 下午, every afternoon
每天, every day
""",
}
_HOURS = {"早上": (6, 11), "下午": (1, 6)}


def number_zh(value: int) -> str:
    """The Chinese numeral for 1..999, words divided by spaces; before a measure word see `counted`."""
    words: list[str] = []
    pending_zero = False
    for size, name in ((100, "百"), (10, "十"), (1, "")):
        digit = value // size % 10
        if digit == 0:
            pending_zero = bool(words)
            continue
        if pending_zero:
            words.append("零")
            pending_zero = False
        if not (size == 10 and digit == 1 and not words):
            words.append("两" if size == 100 and digit == 2 else DIGITS_ZH[digit])
        if name:
            words.append(name)
    return " ".join(words)


def number_en(value: int) -> str:
    """The English numeral for 1..999."""
    if value >= 100:
        rest = value % 100
        return f"{number_en(value // 100)} hundred" + (f" and {number_en(rest)}" if rest else "")
    if value < 20:
        return SMALL_EN[value]
    return TENS_EN[value // 10] + (f"-{SMALL_EN[value % 10]}" if value % 10 else "")


def number(value: int) -> Phrase:
    """A numeral on its own or inside a date."""
    return unit(number_zh(value), number_en(value))


def counted(value: int) -> Phrase:
    """A numeral before a measure word: 两, not 二, for 2."""
    return unit("两" if value == 2 else number_zh(value), number_en(value))


def date(month: int, day: int) -> Phrase:
    """三月五日, "March 5th"."""
    ordinal = IRREGULAR_ORDINALS.get(day, f"{day}th")
    return sequence(unit(f"{number_zh(month)} 月", MONTHS[month - 1]), unit(f"{number_zh(day)} 日", ordinal))


def any_date(rng: Random) -> Phrase:
    """A date of the year."""
    return date(rng.randint(1, 12), rng.randint(1, 28))


def weekday(rng: Random, before: str = "", before_en: str = "") -> Phrase:
    """星期三, "Wednesday", with 上个/下个/每个 before it if wanted."""
    zh, en = rng.choice(list(WEEKDAYS.items()))
    day = unit(f"星期{zh}", en)
    return sequence(unit(before, before_en), day) if before else day


def clock(rng: Random, first_hour: int = 1, last_hour: int = 12) -> Phrase:
    """A time on the clock: 三点半, "half past three"."""
    hour = rng.randint(first_hour, last_hour)
    hour_zh = unit(f"{'两' if hour == 2 else number_zh(hour)} 点", number_en(hour))
    kind = rng.choice(("full", "full", "half", "quarter", "past", "to"))
    if kind == "full":
        return arrange(zh=(hour_zh,), en=(hour_zh, "o'clock"))
    if kind == "to":
        minute = rng.choice((5, 10))
        minutes = unit(f"差 {number_zh(minute)} 分", f"{number_en(minute)} to")
        return sequence(minutes, hour_zh)
    if kind == "past":
        minute = rng.choice((5, 10, 20))
        minutes = unit(f"{'零 ' if minute < 10 else ''}{number_zh(minute)} 分", f"{number_en(minute)} past")
    else:
        minutes = unit("半", "half past") if kind == "half" else unit("一 刻", "a quarter past")
    return arrange(zh=(hour_zh, minutes), en=(minutes, hour_zh))


PERIODS = (("分钟", "", "minute", "minutes"), ("小时", "个 ", "hour", "hours"), ("天", "", "day", "days"))


def period(rng: Random, *, days: bool) -> Phrase:
    """A length of time: 三个小时, "three hours"; hours or days if `days`, else minutes or hours."""
    zh, measure, singular, plural = rng.choice(PERIODS[1:] if days else PERIODS[:2])
    if zh == "分钟":
        value = rng.choice((10, 20, 30, 40, 50))
    else:
        value = rng.randint(1, 6)
    noun = unit(measure + zh, singular if value == 1 else plural)
    one = unit("一", "an" if zh == "小时" else "one")
    return sequence(one if value == 1 else counted(value), noun)


def long_period(rng: Random) -> Phrase:
    """Days, weeks, months or years, as in 三年以前."""
    zh, en = rng.choice((("天", "day"), ("个 星期", "week"), ("个 月", "month"), ("年", "year")))
    value = rng.randint(1, 9)
    return sequence(counted(value), unit(zh, en + ("" if value == 1 else "s")))


def when(rng: Random, sort: str, *, far: bool = False, near: bool = True, exact: bool = True) -> Phrase:
    """A point of time, as a phrase that English puts last.

    Args:
        rng: source of choices.
        sort: past, future or habit.
        far: also allow weeks, months, years and dates.
        near: allow days and parts of days.
        exact: allow times on the clock.
    """
    kind = rng.random() if near else rng.uniform(0.3, 1)
    if not far and kind > 0.85:
        return _some_weekday(rng, sort)
    if not far or kind < 0.3:
        if exact and not far and kind < 0.3:
            return _clock_of_day(rng, sort)
        return _row(rng, _NEAR[sort])
    if kind < 0.5:
        return _row(rng, _FAR[sort])
    if sort == "habit" or kind < 0.6:
        return _some_weekday(rng, sort)
    if kind < 0.85:
        day = any_date(rng)
        if rng.random() < 0.5:
            return arrange(zh=(day,), en=("on", day))
        return arrange(zh=(year := _year(sort), day), en=("on", day, year))
    length = long_period(rng)
    if sort == "past":
        return sequence(length, unit("以前", "ago"))
    after = unit("以后", "in")
    return arrange(zh=(length, after), en=(after, length))


def _some_weekday(rng: Random, sort: str) -> Phrase:
    return weekday(
        rng, *{"past": ("上 个", "last"), "future": ("下 个", "next"), "habit": ("每 个", "every")}[sort]
    )


def _year(sort: str) -> Phrase:
    return unit("去年", "last year") if sort == "past" else unit("明年", "next year")


def _row(rng: Random, table: str) -> Phrase:
    zh, en = rng.choice(rows(table))
    return unit(zh, en)


def _clock_of_day(rng: Random, sort: str) -> Phrase:
    zh, en = rng.choice(rows(_CLOCK_DAYS[sort]))
    hour = clock(rng, *_HOURS.get(zh.split()[-1], (1, 12)))
    return arrange(zh=(day := unit(zh, en), hour), en=("at", hour, day))
