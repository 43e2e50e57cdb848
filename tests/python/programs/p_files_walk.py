import os

for path in ("tree/a/1.txt", "tree/b/c/2.txt", "tree/3.txt"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(path)
for root, dirs, files in sorted(os.walk("tree")):
    dirs.sort()
    print(root, sorted(files), sum(os.path.getsize(os.path.join(root, f)) for f in files))
os.rename("tree/3.txt", "tree/4.txt")
os.remove("tree/a/1.txt")
os.rmdir("tree/a")
print(sorted(os.listdir("tree")), os.path.exists("tree/a"))
