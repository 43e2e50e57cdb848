//! Straight scales, round ticks, and how their values are written.

/// Values beyond this size would overflow when they are put on a scale.
pub const MOST: f64 = 1e300;
/// Distances below this one would underflow.
const LEAST: f64 = 1e-300;

/// Values to pixels.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    pub low: f64,
    pub high: f64,
    /// Pixels of `low` and `high`.
    pub from: f64,
    pub to: f64,
}

impl Scale {
    pub fn project(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        self.from + share * (self.to - self.from)
    }
}

/// Round values at one distance of 1, 2 or 5 times a power of ten.
#[derive(Debug, Clone)]
pub struct Ticks {
    pub values: Vec<f64>,
    pub step: f64,
}

impl Ticks {
    /// About `count` ticks that enclose `low` to `high`.
    pub fn around(low: f64, high: f64, count: usize) -> Self {
        let step = step(low, high, count);
        Self::between((low / step + 1e-9).floor(), (high / step - 1e-9).ceil(), step)
    }

    /// About `count` ticks from `low` to `high`.
    pub fn within(low: f64, high: f64, count: usize) -> Self {
        let step = step(low, high, count);
        Self::between((low / step - 1e-9).ceil(), (high / step + 1e-9).floor(), step)
    }

    fn between(first: f64, last: f64, step: f64) -> Self {
        let n = (last - first).clamp(0.0, 200.0) as usize;
        // A product would turn 3 × 0.1 into 0.30000000000000004; dividing by the inverse does not.
        let value = |i: f64| if step < 1.0 { i / (1.0 / step).round() } else { i * step };
        let values = (0..=n).map(|i| value(first + i as f64)).map(|v| if v == 0.0 { 0.0 } else { v }).collect();
        Self { values, step }
    }

    pub fn low(&self) -> f64 {
        self.values[0]
    }

    pub fn high(&self) -> f64 {
        *self.values.last().expect("never empty")
    }
}

/// The round distance that comes nearest to `count` ticks.
pub fn step(low: f64, high: f64, count: usize) -> f64 {
    let raw = ((high - low) / count.max(1) as f64).max(LEAST);
    let power = 10f64.powi(raw.log10().floor() as i32);
    // Where one factor ends and the next begins: their geometric means.
    let factor = match raw / power {
        r if r < 2f64.sqrt() => 1.0,
        r if r < 10f64.sqrt() => 2.0,
        r if r < 50f64.sqrt() => 5.0,
        _ => 10.0,
    };
    factor * power
}

/// The span to show for values from `low` to `high`: a constant gets room around it, and zero is included where it
/// is near, as a line that hugs an axis which does not start at zero tells a wrong story.
pub fn span(low: f64, high: f64, zero: bool) -> (f64, f64) {
    if zero {
        return match (low.min(0.0), high.max(0.0)) {
            (0.0, 0.0) => (0.0, 1.0),
            span => span,
        };
    }
    let size = low.abs().max(high.abs());
    if high - low <= size * 1e-9 {
        return if size == 0.0 { (-1.0, 1.0) } else { (low - size * 0.1, high + size * 0.1) };
    }
    match (low, high) {
        (low, high) if low > 0.0 && low < high * 0.4 => (0.0, high),
        (low, high) if high < 0.0 && high > low * 0.4 => (low, 0.0),
        span => span,
    }
}

/// Writes the values of an axis alike: same decimals, one unit for large ones, powers of ten beyond that.
#[derive(Debug, Clone, Copy)]
pub struct Labels {
    decimals: usize,
    divisor: f64,
    suffix: &'static str,
    exponent: i32,
    grouped: bool,
}

impl Labels {
    /// For values at a distance of `step`, the largest of which is `largest`. Without `grouped` years stay years.
    pub fn new(step: f64, largest: f64, grouped: bool) -> Self {
        let largest = largest.abs();
        let (divisor, suffix, exponent) = match largest {
            l if l >= 1e15 || (l > 0.0 && l < 1e-4) => {
                let exponent = l.log10().floor() as i32;
                (10f64.powi(exponent), "", exponent)
            }
            l if l >= 1e12 => (1e12, "T", 0),
            l if l >= 1e9 => (1e9, "B", 0),
            l if l >= 1e6 => (1e6, "M", 0),
            _ => (1.0, "", 0),
        };
        let digits = -((step / divisor).log10() + 1e-9).floor();
        let decimals = if digits.is_finite() { digits.clamp(0.0, 12.0) as usize } else { 0 };
        Self { decimals, divisor, suffix, exponent, grouped: grouped && largest >= 10_000.0 }
    }

    pub fn label(&self, value: f64) -> String {
        let number = value / self.divisor;
        if number == 0.0 {
            return "0".to_owned();
        }
        let text = format!("{:.*}", self.decimals, number.abs());
        let text = if self.grouped { grouped(&text) } else { text };
        let sign = if number < 0.0 { "\u{2212}" } else { "" };
        match self.exponent {
            0 => format!("{sign}{text}{}", self.suffix),
            exponent => format!("{sign}{text}×10{}", superscript(exponent)),
        }
    }
}

/// Thousands set apart by commas.
fn grouped(text: &str) -> String {
    let (whole, fraction) = text.find('.').map_or((text, ""), |i| text.split_at(i));
    let mut out = String::new();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out + fraction
}

fn superscript(exponent: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |c: char| c.to_digit(10).map_or('⁻', |d| DIGITS[d as usize]);
    exponent.to_string().chars().map(raised).collect()
}

/// A single value for a sentence: all digits of an integer, else four significant ones.
pub fn format_value(value: f64) -> String {
    let size = value.abs();
    if size >= 1e15 || (size < 1e-4 && value != 0.0) {
        return format!("{value:.3e}");
    }
    let decimals = if value.fract() == 0.0 { 0 } else { (3 - size.log10().floor() as i32).clamp(0, 8) as usize };
    let text = format!("{size:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let text = if size >= 10_000.0 { grouped(text) } else { text.to_owned() };
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn labels(low: f64, high: f64, expected: &[&str]) {
        let ticks = Ticks::around(low, high, 5);
        let labels = Labels::new(ticks.step, ticks.low().abs().max(ticks.high().abs()), true);
        assert_eq!(ticks.values.iter().map(|&v| labels.label(v)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn ticks_are_round() {
        labels(0.0, 1.0, &["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        labels(-7.3, 23.0, &["−10", "−5", "0", "5", "10", "15", "20", "25"]);
        labels(0.0, 23_456.0, &["0", "5,000", "10,000", "15,000", "20,000", "25,000"]);
        labels(0.0, 4.2e6, &["0", "1M", "2M", "3M", "4M", "5M"]);
        labels(0.0, 2.4e18, &["0", "0.5×10¹⁸", "1.0×10¹⁸", "1.5×10¹⁸", "2.0×10¹⁸", "2.5×10¹⁸"]);
        labels(1e-9, 5e-9, &["1×10⁻⁹", "2×10⁻⁹", "3×10⁻⁹", "4×10⁻⁹", "5×10⁻⁹"]);
        labels(-1e300, 1e300, &["−1.0×10³⁰⁰", "−0.5×10³⁰⁰", "0", "0.5×10³⁰⁰", "1.0×10³⁰⁰"]);
    }

    #[test]
    fn spans_have_room() {
        assert_eq!(span(5.0, 5.0, false), (4.5, 5.5));
        assert_eq!(span(0.0, 0.0, false), (-1.0, 1.0));
        assert_eq!(span(0.0, 0.0, true), (0.0, 1.0));
        assert_eq!(span(1.0, 9.0, false), (0.0, 9.0));
        assert_eq!(span(90.0, 99.0, false), (90.0, 99.0));
        assert_eq!(span(-9.0, -5.0, true), (-9.0, 0.0));
    }

    #[test]
    fn values_in_sentences() {
        for (value, text) in [
            (1.0, "1"),
            (-3.24159, "-3.242"),
            (1_234_567.0, "1,234,567"),
            (0.5, "0.5"),
            (12_345.678, "12,346"),
            (1e-7, "1.000e-7"),
        ] {
            assert_eq!(format_value(value), text);
        }
    }
}
