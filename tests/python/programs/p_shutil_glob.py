import fnmatch
import glob
import os
import shutil
import tempfile

os.makedirs("g/sub", exist_ok=True)
for n in ("a.txt", "b.txt", "c.md", "sub/d.txt"):
    open(f"g/{n}", "w").write(n)
print(sorted(glob.glob("g/*.txt")), sorted(glob.glob("g/**/*.txt", recursive=True)))
shutil.copytree("g", "h", dirs_exist_ok=True)
shutil.copy("g/a.txt", "h/z.txt")
shutil.move("h/b.txt", "h/moved.txt")
print(sorted(os.listdir("h")), fnmatch.filter(["a.py", "b.txt"], "*.py"))
shutil.rmtree("h")
print(os.path.exists("h"))
with tempfile.TemporaryDirectory() as d:
    open(os.path.join(d, "f"), "w").write("x")
    print(os.listdir(d))
print(os.path.exists(d))
