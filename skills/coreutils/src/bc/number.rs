//! Decimal numbers of any length, calculated with as POSIX says.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint, Sign};

/// Digits that a number may have: each takes memory, and the time of most calculations grows faster than their number.
pub const MOST_DIGITS: u64 = 1 << 20;

/// Bits of a decimal digit.
const BITS_OF_DIGIT: f64 = std::f64::consts::LOG2_10;

/// Why a calculation has no result.
pub type Failed = String;

/// `value / 10^scale`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Number {
    pub value: BigInt,
    pub scale: u64,
}

pub fn power_of_ten(exponent: u64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent.min(2 * MOST_DIGITS)).unwrap_or(u32::MAX))
}

/// Refuses what would become too long.
pub fn bounded(digits: f64) -> Result<(), Failed> {
    match digits <= MOST_DIGITS as f64 {
        true => Ok(()),
        false => Err(format!("number too large: it may have {MOST_DIGITS} digits")),
    }
}

impl Number {
    pub fn integer(value: impl Into<BigInt>) -> Self {
        Self { value: value.into(), scale: 0 }
    }

    pub fn is_zero(&self) -> bool {
        self.value.sign() == Sign::NoSign
    }

    pub fn is_negative(&self) -> bool {
        self.value.sign() == Sign::Minus
    }

    /// About how many digits it has in front of the point and behind it.
    pub fn digits(&self) -> f64 {
        self.value.bits() as f64 / BITS_OF_DIGIT
    }

    /// The value with so many digits behind the point; what is more is cut off.
    pub fn value_at(&self, scale: u64) -> BigInt {
        match scale.cmp(&self.scale) {
            Ordering::Equal => self.value.clone(),
            Ordering::Greater => &self.value * power_of_ten(scale - self.scale),
            Ordering::Less => &self.value / power_of_ten(self.scale - scale),
        }
    }

    pub fn cut(self, scale: u64) -> Self {
        if scale >= self.scale { self } else { Self { value: self.value_at(scale), scale } }
    }

    /// The part in front of the point.
    pub fn whole(&self) -> BigInt {
        self.value_at(0)
    }

    pub fn negated(self) -> Self {
        Self { value: -self.value, ..self }
    }

    pub fn add(&self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        Self { value: self.value_at(scale) + other.value_at(scale), scale }
    }

    pub fn subtract(&self, other: &Self) -> Self {
        self.add(&other.clone().negated())
    }

    pub fn multiply(&self, other: &Self, scale: u64) -> Result<Self, Failed> {
        bounded(self.digits() + other.digits())?;
        let full = Self { value: &self.value * &other.value, scale: self.scale + other.scale };
        Ok(full.cut(scale.max(self.scale).max(other.scale)))
    }

    pub fn divide(&self, other: &Self, scale: u64) -> Result<Self, Failed> {
        if other.is_zero() {
            return Err("Divide by zero".to_owned());
        }
        bounded(self.digits() + (other.scale + scale) as f64)?;
        // a/10^s : b/10^t = a * 10^(t + scale - s) / b, cut towards zero.
        let up = other.scale + scale;
        let value = match up >= self.scale {
            true => &self.value * power_of_ten(up - self.scale) / &other.value,
            false => &self.value / (&other.value * power_of_ten(self.scale - up)),
        };
        Ok(Self { value, scale })
    }

    pub fn modulo(&self, other: &Self, scale: u64) -> Result<Self, Failed> {
        if other.is_zero() {
            return Err("Modulo by zero".to_owned());
        }
        let quotient = self.divide(other, scale)?;
        let kept = self.scale.max(scale + other.scale);
        let rest = self.subtract(&quotient.multiply(other, kept)?);
        Ok(Self { value: rest.value_at(kept), scale: kept })
    }

    pub fn raise(&self, exponent: &Self, scale: u64) -> Result<Self, Failed> {
        let exponent = exponent.whole();
        if exponent.sign() == Sign::NoSign {
            return Ok(Self::integer(1));
        }
        let negative = exponent.sign() == Sign::Minus;
        let times = u64::try_from(exponent.magnitude().clone()).unwrap_or(u64::MAX);
        let kept = match negative {
            true => scale,
            false => self.scale.saturating_mul(times).min(scale.max(self.scale)),
        };
        if self.is_zero() {
            return if negative { Err("Divide by zero".to_owned()) } else { Ok(Self::default()) };
        }
        let one = self.value.magnitude() == &BigUint::from(1_u32) && self.scale == 0;
        let power = if one {
            let value = if self.is_negative() && times % 2 == 1 { -1 } else { 1 };
            Self::integer(value)
        } else {
            bounded(self.digits().max(0.4) * times as f64)?;
            bounded(self.scale as f64 * times as f64)?;
            let times = u32::try_from(times).map_err(|_| "exponent too large")?;
            Self { value: self.value.pow(times), scale: self.scale * u64::from(times) }
        };
        if negative { Self::integer(1).divide(&power, kept) } else { Ok(power.cut(kept)) }
    }

    pub fn square_root(&self, scale: u64) -> Result<Self, Failed> {
        if self.is_negative() {
            return Err("Square root of a negative number".to_owned());
        }
        let scale = scale.max(self.scale);
        bounded(self.digits() + scale as f64 * 2.0)?;
        Ok(Self { value: self.value_at(scale * 2).sqrt(), scale })
    }

    pub fn compare(&self, other: &Self) -> Ordering {
        let scale = self.scale.max(other.scale);
        self.value_at(scale).cmp(&other.value_at(scale))
    }

    /// Digits without the zeros that stand in front.
    pub fn length(&self) -> u64 {
        let digits = self.value.magnitude().to_string().len() as u64;
        digits.max(self.scale)
    }

    /// As it was typed, in the base of input. A single digit may be larger than the base allows.
    pub fn parse(text: &str, base: u32) -> Result<Self, Failed> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        bounded(text.len() as f64 * f64::from(base.max(10)).log10())?;
        let alone = whole.len() == 1 && fraction.is_empty();
        let digit = |byte: u8| {
            let digit = (byte as char).to_digit(36).unwrap_or_default();
            if alone { digit } else { digit.min(base - 1) }
        };
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|byte| digit(byte) as u8).collect();
        if alone {
            return Ok(Self::integer(digits.first().copied().unwrap_or_default()));
        }
        let value = BigInt::from_radix_be(Sign::Plus, &digits, base).unwrap_or_default();
        let scale = fraction.len() as u64;
        if base == 10 || scale == 0 {
            return Ok(Self { value, scale });
        }
        let divisor = BigInt::from(base).pow(u32::try_from(scale).map_err(|_| "number too large")?);
        Self::integer(value).divide(&Self::integer(divisor), scale)
    }

    /// In a base; digits above 16 are numbers of their own.
    pub fn show(&self, base: u64) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        let sign = if self.is_negative() { "-" } else { "" };
        if base == 10 {
            let digits = self.value.magnitude().to_string();
            let scale = usize::try_from(self.scale).unwrap_or(usize::MAX);
            let padded = format!("{digits:0>scale$}");
            let (whole, fraction) = padded.split_at(padded.len() - scale);
            let point = if scale > 0 { "." } else { "" };
            return format!("{sign}{whole}{point}{fraction}");
        }
        let mut text = sign.to_owned();
        let width = (base - 1).to_string().len();
        let whole = self.whole().magnitude().clone();
        if base <= 16 {
            if whole != BigUint::default() {
                text.push_str(&whole.to_str_radix(base as u32).to_uppercase());
            }
        } else {
            let mut digits = Vec::new();
            let mut rest = whole;
            while rest != BigUint::default() {
                digits.push(u64::try_from(&rest % base).unwrap_or_default());
                rest /= base;
            }
            for digit in digits.iter().rev() {
                text.push_str(&format!(" {digit:0width$}"));
            }
        }
        if self.scale > 0 {
            text.push('.');
            let one = power_of_ten(self.scale).magnitude().clone();
            let mut rest = self.value.magnitude() % &one;
            let mut reached = BigUint::from(1_u32);
            let mut first = true;
            // As many digits as say what the decimal ones do.
            let enough = power_of_ten(self.scale).magnitude().clone();
            while reached < enough {
                rest *= base;
                let digit = u64::try_from(&rest / &one).unwrap_or_default();
                rest %= &one;
                if base <= 16 {
                    text.extend(char::from_digit(digit as u32, 16).map(|digit| digit.to_ascii_uppercase()));
                } else {
                    let blank = if first { "" } else { " " };
                    text.push_str(&format!("{blank}{digit:0width$}"));
                }
                first = false;
                reached *= base;
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(text: &str) -> Number {
        let positive = Number::parse(text.trim_start_matches('-'), 10).unwrap();
        if text.starts_with('-') { positive.negated() } else { positive }
    }

    #[test]
    fn results_have_the_scale_that_posix_says() {
        let show = |number: Result<Number, Failed>| number.unwrap().show(10);
        assert_eq!(n("1.5").add(&n("2.25")).show(10), "3.75");
        assert_eq!(show(n("1.23").multiply(&n("4.56"), 0)), "5.60");
        assert_eq!(show(n("10").divide(&n("3"), 0)), "3");
        assert_eq!(show(n("-10").divide(&n("3"), 4)), "-3.3333");
        assert_eq!(show(n("1").divide(&n("3"), 3)), ".333");
        assert_eq!(show(n("10").modulo(&n("3"), 0)), "1");
        assert_eq!(show(n("-7").modulo(&n("3"), 0)), "-1");
        assert_eq!(show(n("10").modulo(&n("3"), 2)), ".01");
        assert_eq!(show(n("1.5").raise(&n("2"), 0)), "2.2");
        assert_eq!(show(n("2").raise(&n("-2"), 4)), ".2500");
        assert_eq!(show(n("2").square_root(10)), "1.4142135623");
        assert_eq!(n("0.001").length(), 3);
        assert_eq!(n("255.5").show(16), "FF.8");
        assert_eq!(n("45.5").show(20), " 02 05.10");
    }

    #[test]
    fn what_would_be_too_large_is_refused_before_it_is_made() {
        let large = n("2").raise(&n("1073741824"), 0).unwrap_err();
        assert!(large.starts_with("number too large"), "{large}");
        assert_eq!(n("1").raise(&n("99999999999999999999"), 0).unwrap(), n("1"));
        assert!(n("9").raise(&n("99999999999999999999"), 0).is_err());
        assert!(n("0.5").raise(&n("99999999999999999999"), 0).is_err());
        assert_eq!(n("1").divide(&n("0"), 0).unwrap_err(), "Divide by zero");
    }
}
