#!/usr/bin/env python3
"""Makes weather.csv: one leap year of daily weather for two cities, invented but believable.

    python3 examples/weather.py

writes the committed file again, byte for byte. Nothing is measured: temperature is a season plus a wave that remembers
yesterday, wet and dry days come in spells (a two-state chain whose odds change with the season), and wind, sunshine and
the day's warmth follow from whether it rains.

Only Random.random() is used, the one method whose numbers Python promises never to change.
"""

import math
from datetime import date, timedelta
from pathlib import Path
from random import Random

YEAR = 2024
DAYS = 366

# mean and swing of the temperature (°C), day of its peak, the chance that a dry day is followed by a wet one in January
# and in July, the same for a wet day, mean rain of a wet day in January and July (mm), wind (km/h), latitude.
CITIES = {
    "Lisbon": dict(mean=17.3, swing=6.1, peak=212, noise=1.5, start_wet=(0.26, 0.02), stay_wet=(0.66, 0.25),
                   rain=(8.5, 2.0), wind=15.5, latitude=38.7, clear=0.80, wet_summer=-1.5, wet_winter=0.4),
    "Oslo": dict(mean=6.4, swing=11.2, peak=201, noise=2.3, start_wet=(0.25, 0.29), stay_wet=(0.58, 0.55),
                 rain=(3.6, 6.8), wind=11.0, latitude=59.9, clear=0.62, wet_summer=-2.6, wet_winter=1.8),
}


def bell(random):
    """About a standard normal number."""
    return sum(random.random() for _ in range(12)) - 6


def day_length(latitude, day):
    """Hours from sunrise to sunset."""
    tilt = math.radians(-23.44) * math.cos(2 * math.pi * (day + 9) / DAYS)
    half = -math.tan(math.radians(latitude)) * math.tan(tilt)
    return 24 / math.pi * math.acos(max(-1.0, min(1.0, half)))


def year(city, random):
    """One row per day: temperature, rain, wind, sunshine."""
    wet, wave, gust = False, 0.0, 0.0
    for day in range(1, DAYS + 1):
        summer = 0.5 + 0.5 * math.cos(2 * math.pi * (day - 197) / DAYS)  # 0 in mid-January, 1 in mid-July
        mix = lambda pair: pair[0] + (pair[1] - pair[0]) * summer
        wet = random.random() < mix(city["stay_wet"] if wet else city["start_wet"])
        # Rain of a wet day: many small amounts, now and then a downpour.
        rain = max(0.1, -mix(city["rain"]) * math.log(1 - random.random())) if wet else 0.0

        wave = 0.78 * wave + city["noise"] * bell(random)
        season = city["mean"] + city["swing"] * math.cos(2 * math.pi * (day - city["peak"]) / DAYS)
        cloud = city["wet_winter"] + (city["wet_summer"] - city["wet_winter"]) * summer
        temperature = season + wave + (cloud if wet else 0.0)

        gust = 0.55 * gust + 0.33 * bell(random)
        wind = city["wind"] * math.exp(0.8 * gust) * (1.22 if wet else 0.95) * (1.1 - 0.2 * summer)

        clear = city["clear"] * (0.75 + 0.35 * summer) + 0.17 * bell(random)
        if wet:
            clear *= 0.5 / (1 + rain / 6)
        sunshine = day_length(city["latitude"], day) * max(0.0, min(0.95, clear))
        yield temperature, rain, wind, sunshine


def main():
    random = Random(20240229)
    years = {name: list(year(city, random)) for name, city in CITIES.items()}
    lines = ["date,city,temperature_c,rain_mm,wind_kmh,sunshine_h"]
    for index in range(DAYS):
        day = date(YEAR, 1, 1) + timedelta(days=index)
        for name, rows in years.items():
            # Adding zero turns -0.0 into 0.0.
            numbers = ",".join(f"{round(number, 1) + 0.0:.1f}" for number in rows[index])
            lines.append(f"{day},{name},{numbers}")
    path = Path(__file__).with_suffix(".csv")
    path.write_bytes(("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
