rows = [("Oslo", 5.7), ("Lisbon", 17.25), ("Zürich", 9.333)]
width = max(len(name) for name, _ in rows)
print(f"{'city':<{width}} | {'mean':>6}")
print("-" * (width + 9))
for name, mean in rows:
    print(f"{name:<{width}} | {mean:6.2f}")
with open("report.md", "w") as f:
    f.write("| city | mean |\n|---|---|\n" + "".join(f"| {n} | {m} |\n" for n, m in rows))
print(open("report.md").read().count("|"))
