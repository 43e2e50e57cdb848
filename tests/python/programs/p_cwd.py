import os
import pathlib
import sys

print(os.path.basename(os.getcwd()) != "", os.path.isabs(__file__), os.path.dirname(__file__) == os.getcwd())
print(sys.argv, os.path.basename(sys.path[0]) == os.path.basename(os.getcwd()))
os.makedirs("inner", exist_ok=True)
os.chdir("inner")
pathlib.Path("x.txt").write_text("x")
print(os.path.exists("../inner/x.txt"), pathlib.Path.cwd().name, os.path.abspath("x.txt") == str(pathlib.Path.cwd() / "x.txt"))
