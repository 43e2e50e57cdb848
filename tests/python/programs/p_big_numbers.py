n = 2**521 - 1
print(len(str(n)), pow(3, n - 1, n) == 1, n.bit_length())
a, b = 0, 1
for _ in range(1000):
    a, b = b, a + b
print(a % 10**20, int("ff", 16), hex(10**20), round(1e15 / 3), 10**18 // 7)
