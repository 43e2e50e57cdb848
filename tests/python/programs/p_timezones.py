from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

for zone in ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"):
    for month in (1, 7):
        t = datetime(2024, month, 15, 12, tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo(zone))
        print(zone, t.isoformat(), t.tzname())
try:
    ZoneInfo("Mars/Base")
except ZoneInfoNotFoundError:
    print("no such zone")
