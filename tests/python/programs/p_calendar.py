import calendar

print(calendar.month(2024, 2))
print(calendar.isleap(1900), calendar.isleap(2000), tuple(map(int, calendar.monthrange(2023, 2))))
print([d for d in calendar.Calendar().itermonthdates(2024, 9)][:3])
