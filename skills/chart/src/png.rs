//! The scene as PNG.

use crate::font::Font;
use crate::scene::{Anchor, Color, Mark, Scene, Style};
use kiso_sdk::Failure;
use tiny_skia::{FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, Transform};

/// Pixels up to which the picture is drawn at twice its size, for screens that show it so.
const SHARP: f64 = 9_000_000.0;

/// The scene as the bytes of a PNG file, and its size in pixels.
pub fn png(scene: &Scene, font: &Font) -> Result<(Vec<u8>, u32, u32), Failure> {
    let scale = if scene.width * scene.height * 4.0 <= SHARP { 2.0 } else { 1.0 };
    let (width, height) = ((scene.width * scale) as u32, (scene.height * scale) as u32);
    let failed = || Failure::new("too-large", format!("a picture of {width} by {height} pixels does not fit"));
    let mut canvas = Canvas {
        pixmap: Pixmap::new(width, height).ok_or_else(failed)?,
        font,
        to: Transform::from_scale(scale as f32, scale as f32),
    };
    canvas.pixmap.fill(color(scene.background));
    for mark in scene.layers.iter().flat_map(|l| &l.marks) {
        canvas.draw(mark);
    }
    Ok((encoded(&canvas.pixmap), width, height))
}

/// The picture as a PNG file of 8 bits a channel, without an alpha channel, as the background covers everything
/// (W3C, "Portable Network Graphics", third edition).
fn encoded(pixmap: &Pixmap) -> Vec<u8> {
    const UP: u8 = 2;
    let (width, height) = (pixmap.width() as usize, pixmap.height() as usize);
    let mut lines = Vec::with_capacity((width * 3 + 1) * height);
    let blank = vec![0; width * 4];
    let mut above = blank.as_slice();
    // Each line as its difference from the one above: most of a chart is the same in both.
    for line in pixmap.data().chunks_exact(width * 4) {
        lines.push(UP);
        for (pixel, over) in line.chunks_exact(4).zip(above.chunks_exact(4)) {
            lines.extend((0..3).map(|i| pixel[i].wrapping_sub(over[i])));
        }
        above = line;
    }
    let mut header = Vec::new();
    header.extend(pixmap.width().to_be_bytes());
    header.extend(pixmap.height().to_be_bytes());
    header.extend([8, 2, 0, 0, 0]); // bits, colour without alpha, and the only methods there are
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut out, b"IHDR", &header);
    chunk(&mut out, b"IDAT", &miniz_oxide::deflate::compress_to_vec_zlib(&lines, 6));
    chunk(&mut out, b"IEND", &[]);
    out
}

fn chunk(out: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    out.extend((data.len() as u32).to_be_bytes());
    let start = out.len();
    out.extend(kind);
    out.extend(data);
    let sum = checksum(&out[start..]);
    out.extend(sum.to_be_bytes());
}

/// CRC-32 with the polynomial of ISO 3309.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |s, _| if s & 1 == 1 { (s >> 1) ^ 0xEDB8_8320 } else { s >> 1 })
    })
}

struct Canvas<'f> {
    pixmap: Pixmap,
    font: &'f Font,
    to: Transform,
}

impl Canvas<'_> {
    fn draw(&mut self, mark: &Mark) {
        match mark {
            Mark::Rect { x, y, width, height, fill } => {
                if let Some(rect) = Rect::from_xywh(*x as f32, *y as f32, *width as f32, *height as f32) {
                    self.fill(&PathBuilder::from_rect(rect), *fill, self.to);
                }
            }
            Mark::Line { points, stroke, width } => self.line(points, *stroke, *width),
            Mark::Circle { x, y, radius, fill, ring } => {
                let Some(circle) = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32) else { return };
                self.fill(&circle, *fill, self.to);
                if let Some(ring) = ring {
                    self.stroke(&circle, *ring, 1.5, LineCap::Butt);
                }
            }
            Mark::Text { x, y, text, style, turn } => self.text((*x, *y), text, *style, *turn),
        }
    }

    fn line(&mut self, points: &[(f64, f64)], stroke: Color, width: f64) {
        let mut path = PathBuilder::new();
        for (i, (x, y)) in points.iter().enumerate() {
            match i {
                0 => path.move_to(*x as f32, *y as f32),
                _ => path.line_to(*x as f32, *y as f32),
            }
        }
        let cap = if points.len() > 2 { LineCap::Round } else { LineCap::Butt };
        if let Some(path) = path.finish() {
            self.stroke(&path, stroke, width, cap);
        }
    }

    fn text(&mut self, (x, y): (f64, f64), text: &str, style: Style, turn: f64) {
        let shift = match style.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -self.font.width(text, style.size, style.weight) / 2.0,
            Anchor::End => -self.font.width(text, style.size, style.weight),
        };
        let face = self.font.face(style.weight);
        let em = style.size as f32 / f32::from(face.units_per_em());
        let place = self
            .to
            .pre_concat(Transform::from_translate(x as f32, y as f32))
            .pre_concat(Transform::from_rotate(-turn as f32));
        for (glyph, at) in self.font.glyphs(text, style.size, style.weight) {
            let mut outline = Outline(PathBuilder::new());
            face.outline_glyph(glyph, &mut outline);
            if let Some(path) = outline.0.finish() {
                let to = place.pre_translate((shift + at) as f32, 0.0).pre_scale(em, -em);
                self.fill(&path, style.fill, to);
            }
        }
    }

    fn fill(&mut self, path: &Path, fill: Color, to: Transform) {
        self.pixmap.fill_path(path, &paint(fill), FillRule::Winding, to, None);
    }

    fn stroke(&mut self, path: &Path, stroke: Color, width: f64, line_cap: LineCap) {
        let look = Stroke { width: width as f32, line_cap, line_join: LineJoin::Round, ..Stroke::default() };
        self.pixmap.stroke_path(path, &paint(stroke), &look, self.to, None);
    }
}

struct Outline(PathBuilder);

impl ttf_parser::OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.0.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.0.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.0.close();
    }
}

fn paint(fill: Color) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color(color(fill));
    paint
}

fn color(c: Color) -> tiny_skia::Color {
    tiny_skia::Color::from_rgba8(c.red, c.green, c.blue, (c.alpha * 255.0).round() as u8)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_the_standard_one() {
        assert_eq!(super::checksum(b"123456789"), 0xCBF4_3926);
        assert_eq!(super::checksum(b"IEND"), 0xAE42_6082);
    }
}
