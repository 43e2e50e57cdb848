import sys

sys.exit("gave up")
