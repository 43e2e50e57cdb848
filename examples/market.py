#!/usr/bin/env python3
"""Makes market.csv: one year of daily prices of a share that does not exist.

    python3 examples/market.py

writes the committed file again, byte for byte. The price is a random walk whose restlessness comes in phases; volume
grows with it. Only Random.random() is used, the one method whose numbers Python promises never to change.
"""

import math
from datetime import date, timedelta
from pathlib import Path
from random import Random

FIRST, LAST = date(2024, 1, 2), date(2024, 12, 31)
CLOSED = {
    date(2024, month, day)
    for month, day in [(1, 15), (2, 19), (3, 29), (5, 27), (6, 19), (7, 4), (9, 2), (11, 28), (12, 25)]
}


def bell(random):
    """About a standard normal number."""
    return sum(random.random() for _ in range(12)) - 6


def trading_days():
    day = FIRST
    while day <= LAST:
        if day.weekday() < 5 and day not in CLOSED:
            yield day
        day += timedelta(days=1)


def main():
    random = Random(52)
    price, restless = 84.0, 0.0
    lines = ["day,open,high,low,close,volume"]
    for day in trading_days():
        restless = 0.93 * restless + 0.16 * bell(random)
        daily = 0.0125 * math.exp(restless)
        start = price * math.exp(0.35 * daily * bell(random))
        # The way through the day, from which high and low are taken.
        walk = [start]
        for _ in range(16):
            walk.append(walk[-1] * math.exp(0.00004 + daily / 4 * bell(random)))
        price = walk[-1]
        volume = 1_450_000 * math.exp(0.6 * restless + 0.18 * bell(random)) * (1 + 9 * abs(price / start - 1))
        prices = ",".join(f"{number:.2f}" for number in (start, max(walk), min(walk), price))
        lines.append(f"{day},{prices},{round(volume, -2):.0f}")
    path = Path(__file__).with_suffix(".csv")
    path.write_bytes(("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
