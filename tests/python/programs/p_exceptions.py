class TooBig(ValueError):
    def __init__(self, n):
        super().__init__(f"{n} is too big")
        self.n = n


def check(n):
    if n > 10:
        raise TooBig(n)
    return n


for n in (5, 50):
    try:
        print(check(n))
    except TooBig as e:
        print(e, e.n)
    else:
        print("fine")
    finally:
        print("done")
try:
    try:
        {}["x"]
    except KeyError as e:
        raise RuntimeError("wrapped") from e
except RuntimeError as e:
    print(repr(e), repr(e.__cause__))
