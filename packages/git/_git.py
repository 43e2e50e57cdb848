# The program is in a module, which is kept compiled; this file is compiled each time.
import _git_main

_git_main.start()
