//! The functions of `-l`, with all digits of the result right.

use num_bigint::{BigInt, Sign};

use super::number::{Failed, Number, bounded, power_of_ten};

/// Digits that are calculated beyond those that are shown.
const GUARD: u64 = 12;

/// A number with a fixed count of digits behind the point.
struct Fixed {
    digits: u64,
    one: BigInt,
}

impl Fixed {
    fn new(digits: u64) -> Result<Self, Failed> {
        bounded(digits as f64)?;
        Ok(Self { digits, one: power_of_ten(digits) })
    }

    fn convert(&self, number: &Number) -> BigInt {
        number.value_at(self.digits)
    }

    fn multiply(&self, a: &BigInt, b: &BigInt) -> BigInt {
        a * b / &self.one
    }

    fn divide(&self, a: &BigInt, b: &BigInt) -> BigInt {
        a * &self.one / b
    }

    fn root(&self, a: &BigInt) -> BigInt {
        (a * &self.one).sqrt()
    }

    fn number(&self, value: BigInt, scale: u64) -> Number {
        let number = Number { value, scale: self.digits };
        Number { value: number.value_at(scale), scale }
    }

    /// The sum of a series whose terms `next` makes of the one before and its number, from 1.
    fn sum(&self, first: BigInt, mut next: impl FnMut(BigInt, u64) -> BigInt) -> BigInt {
        let (mut sum, mut term) = (first.clone(), first);
        for count in 1.. {
            term = next(term, count);
            if term.sign() == Sign::NoSign {
                break;
            }
            sum += &term;
        }
        sum
    }

    /// Of a number between -1 and 1.
    fn arctangent_of_small(&self, x: &BigInt) -> BigInt {
        // atan x = 2 atan(x / (1 + sqrt(1 + x²))); a few times, and the series is short.
        const HALVINGS: u32 = 4;
        let mut x = x.clone();
        for _ in 0..HALVINGS {
            let root = self.root(&(&self.one + self.multiply(&x, &x)));
            x = self.divide(&x, &(&self.one + root));
        }
        let square = self.multiply(&x, &x);
        let mut power = x.clone();
        let mut sum = x;
        for count in 1_u64.. {
            power = -self.multiply(&power, &square);
            let term = &power / (2 * count + 1);
            if term.sign() == Sign::NoSign {
                break;
            }
            sum += term;
        }
        sum << HALVINGS
    }

    fn pi(&self) -> BigInt {
        self.arctangent_of_small(&self.one) * 4
    }
}

/// Digits in front of the point, at least one.
fn whole_digits(x: &Number) -> u64 {
    x.whole().magnitude().to_string().len() as u64
}

/// `e(x)`.
pub fn exponential(x: &Number, scale: u64) -> Result<Number, Failed> {
    let negative = x.is_negative();
    let x = if negative { x.clone().negated() } else { x.clone() };
    // Digits of the result in front of the point: x / ln 10, a little more.
    let size = u64::try_from(x.whole()).unwrap_or(u64::MAX).saturating_mul(10) / 23 + 1;
    if negative && size > scale + 2 + scale / 10 {
        return Ok(Number { value: BigInt::default(), scale });
    }
    bounded(size as f64)?;
    let fixed = Fixed::new(scale + size + GUARD)?;
    let mut reduced = fixed.convert(&x);
    let mut halvings = 0;
    while reduced > fixed.one {
        reduced /= 2;
        halvings += 1;
    }
    // Each squaring doubles the error.
    let fixed = Fixed::new(fixed.digits + halvings)?;
    let reduced = fixed.convert(&x) >> halvings;
    let mut power = fixed.sum(fixed.one.clone(), |term, count| fixed.multiply(&term, &reduced) / count);
    for _ in 0..halvings {
        power = fixed.multiply(&power, &power);
    }
    if negative {
        power = fixed.divide(&fixed.one, &power);
    }
    Ok(fixed.number(power, scale))
}

/// `l(x)`; for what has no logarithm the least number of this scale, as GNU's bc has it.
pub fn logarithm(x: &Number, scale: u64) -> Result<Number, Failed> {
    if x.is_negative() || x.is_zero() {
        bounded(2.0 * scale as f64)?;
        return Ok(Number { value: (BigInt::from(1) - power_of_ten(scale)) * power_of_ten(scale), scale });
    }
    let fixed = Fixed::new(scale + x.scale + GUARD + 20)?;
    let mut reduced = fixed.convert(x);
    let mut roots = 0_u32;
    let (low, high) = (&fixed.one * 9 / 10, &fixed.one * 11 / 10);
    while reduced < low || reduced > high {
        reduced = fixed.root(&reduced);
        roots += 1;
    }
    // ln x = 2 artanh((x - 1) / (x + 1)).
    let y = fixed.divide(&(&reduced - &fixed.one), &(&reduced + &fixed.one));
    let square = fixed.multiply(&y, &y);
    let mut power = y.clone();
    let mut sum = y;
    for count in 1_u64.. {
        power = fixed.multiply(&power, &square);
        let term = &power / (2 * count + 1);
        if term.sign() == Sign::NoSign {
            break;
        }
        sum += term;
    }
    Ok(fixed.number(sum << (roots + 1), scale))
}

/// `s(x)`.
pub fn sine(x: &Number, scale: u64) -> Result<Number, Failed> {
    let fixed = Fixed::new(scale + 2 * whole_digits(x) + GUARD)?;
    let angle = fixed.convert(x) % (fixed.pi() * 2);
    Ok(fixed.number(sine_of(&fixed, angle), scale))
}

/// `c(x)`.
pub fn cosine(x: &Number, scale: u64) -> Result<Number, Failed> {
    let fixed = Fixed::new(scale + 2 * whole_digits(x) + GUARD)?;
    let pi = fixed.pi();
    let angle = (fixed.convert(x) + &pi / 2) % (pi * 2);
    Ok(fixed.number(sine_of(&fixed, angle), scale))
}

/// By the sine of a third of a third: sin 3x = 3 sin x - 4 sin³ x.
fn sine_of(fixed: &Fixed, angle: BigInt) -> BigInt {
    const THIRDS: u32 = 3;
    let small = angle / 3_i32.pow(THIRDS);
    let square = fixed.multiply(&small, &small);
    let mut sine = fixed.sum(small, |term, count| -fixed.multiply(&term, &square) / (2 * count * (2 * count + 1)));
    for _ in 0..THIRDS {
        let cube = fixed.multiply(&fixed.multiply(&sine, &sine), &sine);
        sine = &sine * 3 - cube * 4;
    }
    sine
}

/// `a(x)`.
pub fn arctangent(x: &Number, scale: u64) -> Result<Number, Failed> {
    let fixed = Fixed::new(scale + GUARD)?;
    let value = fixed.convert(x);
    let angle = if value.magnitude() <= fixed.one.magnitude() {
        fixed.arctangent_of_small(&value)
    } else {
        let inverse = fixed.divide(&fixed.one, &value);
        let right: BigInt = fixed.pi() / 2;
        let right = if value.sign() == Sign::Minus { -right } else { right };
        right - fixed.arctangent_of_small(&inverse)
    };
    Ok(fixed.number(angle, scale))
}

/// `j(n, x)`: the Bessel function of a whole order.
pub fn bessel(order: &Number, x: &Number, scale: u64) -> Result<Number, Failed> {
    let order = order.whole();
    let (order, odd) = (order.magnitude().clone(), order.sign() == Sign::Minus && order.bit(0));
    let order = u64::try_from(order).map_err(|_| "order of j too large")?;
    let size = u64::try_from(x.whole().magnitude().clone()).unwrap_or(u64::MAX);
    bounded(size as f64 + order as f64)?;
    // Terms grow to e^x before they cancel each other.
    let fixed = Fixed::new(scale + size + GUARD)?;
    let half: BigInt = fixed.convert(x) / 2;
    let mut first = fixed.one.clone();
    for count in 1..=order {
        first = fixed.multiply(&first, &half) / count;
        if first.sign() == Sign::NoSign {
            break;
        }
    }
    let square = fixed.multiply(&half, &half);
    let sum = fixed.sum(first, |term, count| -fixed.multiply(&term, &square) / (count * (count + order)));
    Ok(fixed.number(if odd { -sum } else { sum }, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_is_right() {
        let n = |text: &str| Number::parse(text, 10).unwrap();
        let show = |number: Result<Number, Failed>| number.unwrap().show(10);
        assert_eq!(show(exponential(&n("1"), 20)), "2.71828182845904523536");
        assert_eq!(show(exponential(&n("1").negated(), 20)), ".36787944117144232159");
        assert_eq!(show(exponential(&n("1000000").negated(), 20)), "0");
        assert_eq!(show(logarithm(&n("2"), 20)), ".69314718055994530941");
        assert_eq!(show(logarithm(&n("10"), 20)), "2.30258509299404568401");
        assert_eq!(show(logarithm(&n("0"), 2)), "-99.00");
        assert_eq!(show(sine(&n("1"), 20)), ".84147098480789650665");
        assert_eq!(show(sine(&n("1000000"), 20)), "-.34999350217129295211");
        assert_eq!(show(cosine(&n("1"), 20)), ".54030230586813971740");
        assert_eq!(show(arctangent(&n("1"), 20)), ".78539816339744830961");
        assert_eq!(show(arctangent(&n("100").negated(), 20)), "-1.56079666010823138102");
        assert_eq!(show(bessel(&n("0"), &n("1"), 20)), ".76519768655796655144");
        assert!(exponential(&n("100000000"), 20).unwrap_err().starts_with("number too large"));
    }
}
