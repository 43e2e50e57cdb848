import argparse

p = argparse.ArgumentParser(prog="tool", description="A tool")
p.add_argument("files", nargs="+")
p.add_argument("-n", "--number", type=int, default=10)
p.add_argument("--verbose", action="store_true")
p.add_argument("--mode", choices=["fast", "slow"], default="fast")
print(p.parse_args(["a.txt", "b.txt", "-n", "3", "--verbose"]))
