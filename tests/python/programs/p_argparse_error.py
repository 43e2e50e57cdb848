import argparse

p = argparse.ArgumentParser(prog="tool", usage="tool [-n N]")
p.add_argument("-n", type=int)
p.parse_args(["-n", "many"])
