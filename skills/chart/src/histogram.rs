//! How often values fall into equal ranges.

use crate::axis::Axis;
use crate::frame::Area;
use crate::scale;
use crate::scene::{Mark, Scene};
use crate::theme::Palette;

/// Equal ranges; each holds its start and not its end, the last one both.
#[derive(Debug)]
pub struct Bins {
    pub first: f64,
    pub width: f64,
    pub counts: Vec<usize>,
}

/// Sorts values into `wanted` ranges, else into round ones: as wide as Freedman and Diaconis advise, 2 IQR / ∛n.
pub fn bin(values: &mut [f64], wanted: Option<usize>) -> Bins {
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (values[0], values[values.len() - 1]);
    let whole = values.iter().all(|v| v.fract() == 0.0);
    let (first, width, count) = match wanted {
        Some(count) if high > low => (low, (high - low) / count as f64, count),
        _ if high <= low => {
            let (low, high) =
                if whole && low.abs() < 1e15 { (low - 0.5, low + 0.5) } else { scale::span(low, high, false) };
            (low, high - low, 1)
        }
        _ => round(values, low, high, whole),
    };
    let mut counts = vec![0; count];
    for value in values.iter() {
        counts[(((value - first) / width) as usize).min(count - 1)] += 1;
    }
    Bins { first, width, counts }
}

fn round(values: &[f64], low: f64, high: f64, whole: bool) -> (f64, f64, usize) {
    let quartile = |share: f64| values[(share * (values.len() - 1) as f64) as usize];
    let n = values.len() as f64;
    let advised = 2.0 * (quartile(0.75) - quartile(0.25)) / n.cbrt();
    let sturges = (high - low) / (n.log2() + 1.0);
    let advised = if advised > 0.0 { advised } else { sturges };
    let count = ((high - low) / advised).clamp(5.0, 50.0);
    let width = scale::step(low, high, count as usize);
    if whole && width <= 1.0 {
        // Single integers stand in the middle of their ranges.
        return (low - 0.5, 1.0, (high - low) as usize + 1);
    }
    let first = (low / width + 1e-9).floor() * width;
    let count = (((high - first) / width + 1e-9).floor() as usize + 1).max(1);
    // A value on the last edge belongs to the range before it.
    let count =
        if (high - (first + width * (count - 1) as f64)).abs() < width * 1e-9 && count > 1 { count - 1 } else { count };
    (first, width, count)
}

impl Bins {
    pub fn end(&self) -> f64 {
        self.first + self.width * self.counts.len() as f64
    }

    pub fn highest(&self) -> usize {
        self.counts.iter().copied().max().unwrap_or(0)
    }
}

pub fn draw(scene: &mut Scene, area: &Area, x: &Axis, bins: &Bins, palette: &Palette) {
    let edge = |i: usize| x.project(bins.first + bins.width * i as f64, area.left, area.right);
    let zero = area.y.project(0.0);
    let bar = |(i, &count): (usize, &usize)| {
        let (left, right) = (edge(i), edge(i + 1));
        let gap = if right - left > 4.0 { 1.0 } else { 0.0 };
        let top = area.y.project(count as f64);
        Mark::Rect {
            x: left + gap / 2.0,
            y: top,
            width: right - left - gap,
            height: zero - top,
            fill: palette.series[0],
        }
    };
    let bars = bins.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(bar).collect();
    scene.add("bars", bars);
}

#[cfg(test)]
mod tests {
    use super::bin;

    #[test]
    fn ranges_are_round_and_hold_everything() {
        let mut values: Vec<f64> = (0..1_000).map(|i| f64::from(i) / 10.0).collect();
        let bins = bin(&mut values, None);
        assert_eq!((bins.first, bins.width, bins.counts.iter().sum::<usize>()), (0.0, 10.0, 1_000));
        let bins = bin(&mut values, Some(7));
        assert_eq!((bins.counts.len(), bins.counts.iter().sum::<usize>()), (7, 1_000));
    }

    #[test]
    fn dice_and_constants() {
        let mut dice: Vec<f64> = (0..60).map(|i| f64::from(i % 6 + 1)).collect();
        let bins = bin(&mut dice, None);
        assert_eq!((bins.first, bins.width, bins.counts), (0.5, 1.0, vec![10; 6]));
        let bins = bin(&mut [3.0, 3.0], Some(20));
        assert_eq!((bins.first, bins.counts), (2.5, vec![2]));
        assert_eq!(bin(&mut [1e300, -1e300, 0.0], None).counts.iter().sum::<usize>(), 3);
    }
}
