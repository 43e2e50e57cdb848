from decimal import ROUND_HALF_UP, Decimal, getcontext
from fractions import Fraction

getcontext().prec = 30
print(Decimal("0.1") + Decimal("0.2"), Decimal(1) / Decimal(7))
print(Decimal("2.675").quantize(Decimal("0.01"), ROUND_HALF_UP), round(2.675, 2))
print(Fraction(1, 3) + Fraction(1, 6), Fraction("0.125"), float(Fraction(22, 7)))
print(sum([Decimal("19.99")] * 3), format(Decimal("1234567.891"), ",.2f"))
