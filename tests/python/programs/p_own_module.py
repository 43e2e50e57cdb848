import pathlib
import sys

pathlib.Path("mymod.py").write_text("VALUE = 42\ndef twice(x):\n    return 2 * x\n")
import mymod

print(mymod.twice(mymod.VALUE), mymod.__name__, pathlib.Path(mymod.__file__).name)
pathlib.Path("pkg").mkdir(exist_ok=True)
pathlib.Path("pkg/__init__.py").write_text("from .part import f\n")
pathlib.Path("pkg/part.py").write_text("def f():\n    return __name__\n")
sys.path_importer_cache.clear()
from pkg import f

print(f())
