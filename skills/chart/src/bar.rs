use crate::axis::Axis;
use crate::frame::Area;
use crate::scene::{Mark, Scene};
use crate::series::Series;
use crate::theme::Palette;

/// A single bar is not wider than this.
const WIDEST: f64 = 130.0;

/// Draws bars from zero, those of one slot side by side.
pub fn draw(scene: &mut Scene, area: &Area, x: &Axis, series: &[Series], palette: &Palette) {
    let Axis::Slots { count, .. } = x else { return };
    let step = (area.right - area.left) / *count as f64;
    let n = series.len() as f64;
    // Narrow bars need a smaller gap, and those of less than a pixel would look paler than others.
    let share = if step < 8.0 || n > 1.0 { 0.82 } else { 0.74 };
    let group = (step * share).min(WIDEST * n.sqrt()).max(0.8);
    let width = group / n;
    let gap = if n > 1.0 && width > 4.0 { 1.0 } else { 0.0 };
    let zero = area.y.project(0.0);
    for (i, one) in series.iter().enumerate() {
        let bar = |&(slot, value): &(f64, f64)| {
            let left = x.project(slot, area.left, area.right) - group / 2.0 + width * i as f64;
            let (left, right) =
                if width >= 3.0 { (half(left), half(left + width - gap)) } else { (left, left + width) };
            let end = area.y.project(value);
            Mark::Rect {
                x: left,
                y: end.min(zero),
                width: right - left,
                height: (end - zero).abs(),
                fill: palette.series[i],
            }
        };
        let present = one.points.iter().filter(|p| !p.1.is_nan() && p.1 != 0.0);
        scene.add("bars", present.map(bar).collect());
    }
}

/// To half a pixel, where edges are sharp at twice the size.
fn half(x: f64) -> f64 {
    (x * 2.0).round() / 2.0
}
