def inner(x):
    return 10 / x


def outer():
    return inner(0)


try:
    outer()
except ZeroDivisionError as e:
    import traceback

    frames = traceback.extract_tb(e.__traceback__)
    print([(f.name, f.lineno) for f in frames], type(e).__name__, e)
raise SystemExit(3)
