import cmath
import math

print(math.pi, math.e, math.sqrt(2), math.factorial(20), math.gcd(48, 36), math.comb(10, 3))
print(math.isclose(0.1 + 0.2, 0.3), math.floor(-1.5), math.ceil(-1.5), math.hypot(3, 4))
print([round(math.sin(x / 4), 12) for x in range(4)], math.log2(1024), math.inf > 1e308)
print(cmath.sqrt(-4), 7 // -2, 7 % -2, divmod(-7, 2), 2**100, -8 >> 1, 0.1.hex())
print(f"{1e16:g} {1 / 3:.17g} {123456.789:e} {255:#x} {255:08b}")
