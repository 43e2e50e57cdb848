use crate::axis::Axis;
use crate::frame::Area;
use crate::scene::{Mark, Scene};
use crate::series::Series;
use crate::theme::Palette;

/// Lines with up to this many points show them.
const SHOWN_POINTS: usize = 40;

/// Draws a line for each series; a missing value breaks it.
pub fn draw(scene: &mut Scene, area: &Area, x: &Axis, series: &[Series], palette: &Palette) {
    // The first series lies on top.
    for (i, one) in series.iter().enumerate().rev() {
        let stroke = palette.series[i];
        let width = match one.points.len() {
            0..=400 => 2.25,
            401..=2_000 => 1.75,
            _ => 1.25,
        };
        let (mut lines, mut dots) = (Vec::new(), Vec::new());
        for part in one.points.split(|p| p.1.is_nan()).filter(|p| !p.is_empty()) {
            let place = |p: &(f64, f64)| (x.project(p.0, area.left, area.right), area.y.project(p.1));
            let points: Vec<(f64, f64)> = part.iter().map(place).collect();
            if one.points.len() <= SHOWN_POINTS || points.len() == 1 {
                let ring = (one.points.len() <= SHOWN_POINTS).then_some(palette.background);
                let radius = if ring.is_some() { 4.0 } else { width };
                dots.extend(points.iter().map(|&(x, y)| Mark::Circle { x, y, radius, fill: stroke, ring }));
            }
            if points.len() > 1 {
                lines.push(Mark::Line { points: thinned(points), stroke, width });
            }
        }
        scene.add("lines", lines);
        scene.add("points", dots);
    }
}

/// First, lowest, highest and last point of each pixel: the same picture with fewer points.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let columns = points[points.len() - 1].0 - points[0].0;
    if (points.len() as f64) < columns * 4.0 {
        return points;
    }
    let mut kept = Vec::new();
    for pixel in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let by_y = |i: &usize, j: &usize| pixel[*i].1.total_cmp(&pixel[*j].1);
        let low = (0..pixel.len()).min_by(by_y).unwrap_or(0);
        let high = (0..pixel.len()).max_by(by_y).unwrap_or(0);
        let mut chosen = [0, low.min(high), low.max(high), pixel.len() - 1].to_vec();
        chosen.dedup();
        kept.extend(chosen.into_iter().map(|i| pixel[i]));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::thinned;

    #[test]
    fn thinning_keeps_extremes() {
        let points: Vec<(f64, f64)> = (0..20_000).map(|i| (f64::from(i) / 20.0, f64::from(i % 977))).collect();
        let kept = thinned(points.clone());
        assert!(kept.len() < 4_100);
        let highest = |p: &[(f64, f64)]| p.iter().map(|p| p.1).fold(0.0, f64::max);
        assert_eq!(highest(&kept), highest(&points));
        assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[19_999]));
    }
}
