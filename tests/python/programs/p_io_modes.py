with open("t.txt", "w", encoding="utf-8") as f:
    print(f.write("one\ntwo\nthree\n"))
with open("t.txt", "a") as f:
    f.write("four\n")
with open("t.txt") as f:
    print(f.readline(), f.tell(), f.readlines())
with open("t.txt", "r+b") as f:
    f.seek(4)
    f.write(b"TWO")
    f.truncate(8)
print(open("t.txt").read(), end="")
for bad, mode in (("missing/x", "w"), ("t.txt", "x")):
    try:
        open(bad, mode)
    except OSError as e:
        print(type(e).__name__)
