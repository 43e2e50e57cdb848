import contextlib


@contextlib.contextmanager
def step(name):
    print("in", name)
    try:
        yield name.upper()
    finally:
        print("out", name)


with contextlib.ExitStack() as stack:
    print([stack.enter_context(step(n)) for n in "ab"])
with contextlib.suppress(FileNotFoundError):
    open("nope.txt")
try:
    open("nope.txt")
except FileNotFoundError as e:
    print(e.filename, e.strerror)
