from pathlib import Path

base = Path("proj")
(base / "src").mkdir(parents=True, exist_ok=True)
for name in ("a.py", "b.py", "notes.md"):
    (base / "src" / name).write_text(f"# {name}\n")
print(sorted(p.name for p in base.rglob("*.py")))
p = base / "src" / "a.py"
print(p.suffix, p.stem, p.parent.name, p.relative_to(base), p.with_suffix(".txt").name)
print(p.exists(), p.is_file(), (base / "no").exists(), p.stat().st_size)
p.rename(base / "a2.py")
print(sorted(str(x) for x in base.iterdir()))
