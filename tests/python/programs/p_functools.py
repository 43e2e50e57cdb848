import functools
import operator


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(fib(80), fib.cache_info().misses)
print(functools.reduce(operator.mul, range(1, 6)), functools.partial(int, base=2)("1011"))


def logged(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        print("call", f.__name__, args, kwargs)
        return f(*args, **kwargs)

    return inner


@logged
def add(a, b=1):
    """Adds."""
    return a + b


print(add(1, b=2), add.__doc__)


@functools.singledispatch
def show(x):
    return "other"


@show.register
def _(x: int):
    return "int"


print(show(1), show("a"))
