//! ImageMagick's geometry: `800x600^`, `50%`, `x300`, `100x100+10+20`.

use crate::scale::Rectangle;

/// A geometry as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Geometry {
    pub width: Option<f64>,
    pub height: Option<f64>,
    pub x: Option<i64>,
    pub y: Option<i64>,
    pub is_percent: bool,
    /// `^`: the sizes are the least ones.
    pub fills: bool,
    /// `!`: the sizes are those, whatever the proportions.
    pub is_exact: bool,
    /// `>`: only what is larger.
    pub only_shrinks: bool,
    /// `<`: only what is smaller.
    pub only_grows: bool,
    /// `@`: the number of pixels, or of tiles.
    pub is_area: bool,
}

/// Largest number in a geometry.
const MAX_NUMBER: f64 = 1e9;

impl Geometry {
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("invalid geometry '{text}': write WIDTHxHEIGHT+X+Y");
        let mut geometry = Self::default();
        let mut plain = String::new();
        for c in text.trim().chars() {
            match c {
                '%' => geometry.is_percent = true,
                '^' => geometry.fills = true,
                '!' => geometry.is_exact = true,
                '>' => geometry.only_shrinks = true,
                '<' => geometry.only_grows = true,
                '@' => geometry.is_area = true,
                '\\' => {}
                'X' => plain.push('x'),
                c => plain.push(c),
            }
        }
        let offsets = plain.find(['+', '-']).unwrap_or(plain.len());
        let (size, offsets) = plain.split_at(offsets);
        let number = |text: &str| -> Result<Option<f64>, String> {
            if text.is_empty() {
                return Ok(None);
            }
            let number: f64 = text.parse().map_err(|_| invalid())?;
            if !(0.0..=MAX_NUMBER).contains(&number) { Err(invalid()) } else { Ok(Some(number)) }
        };
        (geometry.width, geometry.height) = match size.split_once('x') {
            Some((width, height)) => (number(width)?, number(height)?),
            None => (number(size)?, None),
        };
        if !offsets.is_empty() {
            let second = offsets[1..].find(['+', '-']).map(|at| at + 1).unwrap_or(offsets.len());
            let offset = |text: &str| -> Result<i64, String> {
                let number = text.parse::<f64>().map_err(|_| invalid())?;
                if number.abs() > MAX_NUMBER { Err(invalid()) } else { Ok(number as i64) }
            };
            geometry.x = Some(offset(&offsets[..second])?);
            geometry.y = Some(if second < offsets.len() { offset(&offsets[second..])? } else { 0 });
        }
        if plain.is_empty() { Err(invalid()) } else { Ok(geometry) }
    }

    /// Returns the size after scaling a picture of this size.
    pub fn scaled(&self, (width, height): (u32, u32)) -> (u32, u32) {
        let (w, h) = (f64::from(width), f64::from(height));
        let whole = |side: f64| (side.round().clamp(1.0, f64::from(u32::MAX))) as u32;
        if self.is_area {
            let most = self.width.unwrap_or(w) * self.height.unwrap_or(1.0);
            let scale = (most / (w * h)).sqrt();
            if (self.only_shrinks && scale >= 1.0) || (self.only_grows && scale <= 1.0) {
                return (width, height);
            }
            return ((w * scale).floor().max(1.0) as u32, (h * scale).floor().max(1.0) as u32);
        }
        if self.is_percent {
            let x = self.width.or(self.height).unwrap_or(100.0) / 100.0;
            let y = self.height.map_or(x, |percent| percent / 100.0);
            return (whole(w * x), whole(h * y));
        }
        let wanted = (self.width.filter(|side| *side > 0.0), self.height.filter(|side| *side > 0.0));
        let (x, y) = match wanted {
            (Some(width), Some(height)) => (width / w, height / h),
            (Some(width), None) => (width / w, width / w),
            (None, Some(height)) => (height / h, height / h),
            (None, None) => return (width, height),
        };
        let fits_already = x >= 1.0 && y >= 1.0;
        let is_smaller = if self.fills { x > 1.0 || y > 1.0 } else { fits_already };
        if (self.only_shrinks && is_smaller) || (self.only_grows && (x <= 1.0 || y <= 1.0)) {
            return (width, height);
        }
        if self.is_exact {
            return (whole(w * x), whole(h * y));
        }
        let scale = if self.fills { x.max(y) } else { x.min(y) };
        (whole(w * scale), whole(h * scale))
    }

    /// Returns width and height in pixels, for a picture of this size. What is left out is the picture's.
    pub fn sides(&self, (width, height): (u32, u32)) -> (u32, u32) {
        let side = |wanted: Option<f64>, of: u32| match wanted {
            Some(percent) if self.is_percent => (f64::from(of) * percent / 100.0).round() as u32,
            Some(number) if number > 0.0 => number.round() as u32,
            _ => of,
        };
        let height_or_width = if self.is_percent { self.height.or(self.width) } else { self.height };
        (side(self.width, width), side(height_or_width, height))
    }

    pub fn has_offset(&self) -> bool {
        self.x.is_some() || self.y.is_some()
    }

    pub fn offset(&self) -> (i64, i64) {
        (self.x.unwrap_or(0), self.y.unwrap_or(0))
    }
}

/// Where something is put in something larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gravity {
    /// 0 for left, 1 for the middle, 2 for right.
    across: i64,
    down: i64,
}

impl Gravity {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (across, down) = match text.to_ascii_lowercase().as_str() {
            "northwest" | "none" | "forget" | "undefined" => (0, 0),
            "north" => (1, 0),
            "northeast" => (2, 0),
            "west" => (0, 1),
            "center" | "centre" => (1, 1),
            "east" => (2, 1),
            "southwest" => (0, 2),
            "south" => (1, 2),
            "southeast" => (2, 2),
            _ => {
                return Err(format!(
                    "unknown gravity '{text}': Center, North, South, East, West, NorthWest, NorthEast, SouthWest and SouthEast are known"
                ));
            }
        };
        Ok(Self { across, down })
    }

    /// Returns where the left upper corner of `inner` is in `outer`. An offset leads away from the edge.
    pub fn place(self, outer: (u32, u32), inner: (u32, u32), (x, y): (i64, i64)) -> (i64, i64) {
        let one = |where_to: i64, outer: u32, inner: u32, offset: i64| {
            let room = i64::from(outer) - i64::from(inner);
            match where_to {
                0 => offset,
                // Halved one by one, as ImageMagick does.
                1 => i64::from(outer / 2) - i64::from(inner / 2) + offset,
                _ => room - offset,
            }
        };
        (one(self.across, outer.0, inner.0, x), one(self.down, outer.1, inner.1, y))
    }

    /// Returns what of a rectangle at a place lies in a picture.
    pub fn part(self, outer: (u32, u32), inner: (u32, u32), offset: (i64, i64)) -> Option<Rectangle> {
        let (x, y) = self.place(outer, inner, offset);
        let right = (x + i64::from(inner.0)).clamp(0, i64::from(outer.0));
        let bottom = (y + i64::from(inner.1)).clamp(0, i64::from(outer.1));
        let (x, y) = (x.max(0), y.max(0));
        let part = (right > x && bottom > y).then(|| Rectangle {
            x: x as u32,
            y: y as u32,
            width: (right - x) as u32,
            height: (bottom - y) as u32,
        });
        part.filter(|part| part.within(outer) == Some(*part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometry_scales_as_imagemagick_does() {
        for (text, from, to) in [
            ("800x600", (4000, 3000), (800, 600)),
            ("800x600", (3000, 4000), (450, 600)),
            ("800x600^", (3000, 4000), (800, 1067)),
            ("800x600!", (3000, 4000), (800, 600)),
            ("800", (1600, 300), (800, 150)),
            ("x300", (1600, 600), (800, 300)),
            ("50%", (101, 50), (51, 25)),
            ("50%x200%", (100, 50), (50, 100)),
            ("800x600>", (400, 300), (400, 300)),
            ("800x600>", (1600, 300), (800, 150)),
            ("800x600<", (1600, 1300), (1600, 1300)),
            ("800x600<", (400, 300), (800, 600)),
            ("100x200!>", (50, 50), (50, 50)),
            ("10000@", (200, 200), (100, 100)),
            ("10000@>", (50, 50), (50, 50)),
            ("1x1", (5, 60_000), (1, 1)),
        ] {
            assert_eq!(Geometry::parse(text).unwrap().scaled(from), to, "{text} of {from:?}");
        }
    }

    #[test]
    fn offsets_and_nonsense() {
        let geometry = Geometry::parse("100x50+10-20").unwrap();
        assert_eq!((geometry.sides((9, 9)), geometry.offset()), ((100, 50), (10, -20)));
        assert_eq!(Geometry::parse("+5+6").unwrap().offset(), (5, 6));
        for text in ["", "x", "axb", "10x10+", "10x10+a+b", "1e99x1", "-", "10x10x10", "++", "%", "NaN", "é"] {
            let parsed = Geometry::parse(text);
            assert!(parsed.is_err() || text == "x", "{text}: {parsed:?}");
        }
    }

    #[test]
    fn gravity_places() {
        let center = Gravity::parse("center").unwrap();
        assert_eq!(center.place((100, 50), (20, 20), (0, 5)), (40, 20));
        assert_eq!(Gravity::parse("SouthEast").unwrap().place((100, 50), (20, 20), (5, 5)), (75, 25));
        let part = Gravity::default().part((10, 10), (20, 20), (-5, 2));
        assert_eq!(part, Some(Rectangle { x: 0, y: 2, width: 10, height: 8 }));
        assert_eq!(Gravity::default().part((10, 10), (2, 2), (50, 50)), None);
    }
}
