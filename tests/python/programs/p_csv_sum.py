import csv
from collections import defaultdict

with open("sales.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["region", "amount"])
    for i in range(20):
        w.writerow([["north", "south", "Zürich"][i % 3], f"{i * 1.5:.2f}"])

totals = defaultdict(float)
with open("sales.csv", newline="", encoding="utf-8") as f:
    for row in csv.DictReader(f):
        totals[row["region"]] += float(row["amount"])
for region, total in sorted(totals.items()):
    print(f"{region:<8} {total:>8.2f}")
