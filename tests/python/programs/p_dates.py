from datetime import date, datetime, timedelta, timezone

d = date(2024, 2, 28)
for n in range(3):
    print((d + timedelta(days=n)).isoformat(), (d + timedelta(days=n)).strftime("%a %d %b %Y"))
a = datetime(2024, 3, 1, 12, 30, tzinfo=timezone.utc)
print(a.isoformat(), a.timestamp(), (a - timedelta(hours=36)).strftime("%Y-%m-%d %H:%M"))
print(datetime.strptime("05/Jan/2024:10:11:12 +0200", "%d/%b/%Y:%H:%M:%S %z").astimezone(timezone.utc))
print((date(2024, 12, 25) - date(2024, 1, 1)).days, date(2024, 12, 30).isocalendar()[:2])
