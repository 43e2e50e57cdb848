use crate::axis::Axis;
use crate::frame::Area;
use crate::scene::{Mark, Scene};
use crate::series::Series;
use crate::theme::Palette;
use std::collections::HashSet;

/// Beyond this many points, one of several in the same half pixel is drawn.
const DENSE: usize = 4_000;
/// Points that a picture can hold; evenly chosen beyond.
const MOST: usize = 20_000;

/// Draws a dot for each point, smaller and fainter the more there are. Answers how many of how many were drawn.
pub fn draw(scene: &mut Scene, area: &Area, x: &Axis, series: &[Series], palette: &Palette) -> (usize, usize) {
    let total: usize = series.iter().map(|s| s.points.iter().filter(|p| !p.1.is_nan()).count()).sum();
    let (radius, alpha) = match total {
        0..=60 => (5.0, 0.85),
        61..=400 => (4.0, 0.7),
        401..=2_000 => (3.0, 0.55),
        2_001..=8_000 => (2.2, 0.4),
        _ => (1.6, 0.3),
    };
    let mut drawn = 0;
    for (i, one) in series.iter().enumerate() {
        let place = |p: &(f64, f64)| (x.project(p.0, area.left, area.right), area.y.project(p.1));
        let mut places: Vec<(f64, f64)> = one.points.iter().filter(|p| !p.1.is_nan()).map(place).collect();
        if total > DENSE {
            let mut taken = HashSet::new();
            places.retain(|(x, y)| taken.insert(((x * 2.0) as i32, (y * 2.0) as i32)));
        }
        let most = MOST / series.len();
        if places.len() > most {
            let every = places.len() as f64 / most as f64;
            places = (0..most).map(|n| places[(n as f64 * every) as usize]).collect();
        }
        drawn += places.len();
        let fill = palette.series[i].with_alpha(alpha);
        scene.add("points", places.into_iter().map(|(x, y)| Mark::Circle { x, y, radius, fill, ring: None }).collect());
    }
    (drawn, total)
}
