import ast
import doctest
import inspect


def double(x):
    """
    >>> double(2)
    4
    >>> double("a")
    'aa'
    """
    return x * 2


print(doctest.testmod().attempted, doctest.testmod().failed)
tree = ast.parse("x = 1 + 2 * y")
print(ast.unparse(tree), [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)])
print(ast.literal_eval("{'a': [1, 2.5, None]}"), inspect.signature(double), eval("2 + 3"), compile("1", "s", "eval").co_name)
