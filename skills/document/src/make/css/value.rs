//! Values of CSS: lengths, colours, fonts.

/// Points of a pixel.
pub const PX: f32 = 0.75;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    Auto,
    Points(f32),
    Percent(f32),
}

impl Length {
    /// The length in points, where `whole` is 100 %.
    pub fn resolve(self, whole: f32) -> Option<f32> {
        match self {
            Self::Auto => None,
            Self::Points(points) => Some(points),
            Self::Percent(percent) => Some(percent / 100.0 * whole),
        }
    }

    pub fn or_zero(self, whole: f32) -> f32 {
        self.resolve(whole).unwrap_or(0.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Color(pub u8, pub u8, pub u8);

pub const BLACK: Color = Color(0, 0, 0);

/// The longest length that is kept, so that sums stay finite.
const LONGEST: f32 = 20_000.0;

/// Parses a length. `em` is the size of the font in points.
pub fn length(text: &str, em: f32) -> Option<Length> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("auto") {
        return Some(Length::Auto);
    }
    if let Some(inner) = text.strip_prefix("calc(").and_then(|rest| rest.strip_suffix(')')) {
        return calc(inner, em);
    }
    let end = text.find(|c: char| c.is_ascii_alphabetic() || c == '%').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number: f32 = digits.trim().parse().ok().filter(|number: &f32| number.is_finite())?;
    let number = number.clamp(-LONGEST, LONGEST);
    let points = match unit.to_ascii_lowercase().as_str() {
        "" if number == 0.0 => 0.0,
        "px" => number * PX,
        "pt" => number,
        "pc" => number * 12.0,
        "in" => number * 72.0,
        "cm" => number * 72.0 / 2.54,
        "mm" => number * 72.0 / 25.4,
        "q" => number * 72.0 / 101.6,
        "em" => number * em,
        "rem" => number * 12.0,
        "ex" | "ch" => number * em * 0.5,
        // Of a page of A4.
        "vw" => number * 5.95,
        "vh" => number * 8.42,
        "%" => return Some(Length::Percent(number)),
        _ => return None,
    };
    Some(Length::Points(points.clamp(-LONGEST, LONGEST)))
}

/// Sums of lengths of one kind. In a sum with percents, the lengths are left out.
fn calc(text: &str, em: f32) -> Option<Length> {
    let (mut points, mut percent) = (0.0, None);
    let mut sign = 1.0;
    for word in text.split_whitespace() {
        match word {
            "+" => sign = 1.0,
            "-" => sign = -1.0,
            word => match length(word, em)? {
                Length::Points(more) => points += sign * more,
                Length::Percent(more) => percent = Some(percent.unwrap_or(0.0) + sign * more),
                Length::Auto => return None,
            },
        }
    }
    Some(percent.map_or(Length::Points(points), Length::Percent))
}

/// Parses a colour; the outer `None` is a mistake, the inner one is transparent.
pub fn color(text: &str) -> Option<Option<Color>> {
    let text = text.trim().to_ascii_lowercase();
    if text == "transparent" {
        return Some(None);
    }
    if let Some(digits) = text.strip_prefix('#') {
        return hex(digits);
    }
    let function = text.split_once('(').filter(|_| text.ends_with(')'));
    if let Some((name, inner)) = function {
        let parts: Vec<&str> = inner[..inner.len() - 1]
            .split(|c: char| c == ',' || c == '/' || c.is_whitespace())
            .filter(|part| !part.is_empty())
            .collect();
        let [first, second, third] = parts.get(..3)? else { return None };
        let opacity = parts.get(3).map_or(Some(1.0), |part| fraction(part, 1.0))?;
        let solid = match name {
            "rgb" | "rgba" => [first, second, third].map(|part| fraction(part, 255.0)),
            "hsl" | "hsla" => {
                let hue: f32 = first.trim_end_matches("deg").parse().ok()?;
                hsl(hue, fraction(second, 1.0)?, fraction(third, 1.0)?).map(Some)
            }
            _ => return None,
        };
        let [Some(red), Some(green), Some(blue)] = solid else { return None };
        return Some(blend([red, green, blue], opacity));
    }
    NAMES
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, rgb)| Some(Color((rgb >> 16) as u8, (rgb >> 8) as u8, *rgb as u8)))
}

/// A number between 0 and `whole`, or percents of it, as a part of 1 or 255.
fn fraction(text: &str, whole: f32) -> Option<f32> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number, 0.01),
        None => (text, 1.0 / whole),
    };
    number.parse::<f32>().ok().filter(|number| number.is_finite()).map(|number| (number * scale).clamp(0.0, 1.0))
}

/// A colour over white paper.
fn blend(rgb: [f32; 3], opacity: f32) -> Option<Color> {
    if opacity < 0.01 {
        return None;
    }
    let [red, green, blue] = rgb.map(|part| ((part * opacity + 1.0 - opacity) * 255.0).round() as u8);
    Some(Color(red, green, blue))
}

fn hex(digits: &str) -> Option<Option<Color>> {
    if !digits.is_ascii() {
        return None;
    }
    let digit = |at: usize| digits.get(at..=at).and_then(|digit| u8::from_str_radix(digit, 16).ok());
    let parts: Option<Vec<u8>> = match digits.len() {
        3 | 4 => (0..digits.len()).map(|at| digit(at).map(|value| value * 17)).collect(),
        6 | 8 => (0..digits.len()).step_by(2).map(|at| Some(digit(at)? * 16 + digit(at + 1)?)).collect(),
        _ => None,
    };
    let parts = parts?;
    let opacity = parts.get(3).map_or(1.0, |part| f32::from(*part) / 255.0);
    Some(blend([parts[0], parts[1], parts[2]].map(|part| f32::from(part) / 255.0), opacity))
}

fn hsl(hue: f32, saturation: f32, lightness: f32) -> [f32; 3] {
    let strength = saturation * lightness.min(1.0 - lightness);
    [0.0, 8.0, 4.0].map(|shift: f32| {
        let place = (shift + hue.rem_euclid(360.0) / 30.0) % 12.0;
        lightness - strength * (place - 3.0).min(9.0 - place).clamp(-1.0, 1.0)
    })
}

const NAMES: [(&str, u32); 64] = [
    ("black", 0x000000),
    ("white", 0xffffff),
    ("gray", 0x808080),
    ("grey", 0x808080),
    ("silver", 0xc0c0c0),
    ("red", 0xff0000),
    ("maroon", 0x800000),
    ("yellow", 0xffff00),
    ("olive", 0x808000),
    ("lime", 0x00ff00),
    ("green", 0x008000),
    ("aqua", 0x00ffff),
    ("cyan", 0x00ffff),
    ("teal", 0x008080),
    ("blue", 0x0000ff),
    ("navy", 0x000080),
    ("fuchsia", 0xff00ff),
    ("magenta", 0xff00ff),
    ("purple", 0x800080),
    ("orange", 0xffa500),
    ("pink", 0xffc0cb),
    ("brown", 0xa52a2a),
    ("gold", 0xffd700),
    ("coral", 0xff7f50),
    ("tomato", 0xff6347),
    ("salmon", 0xfa8072),
    ("crimson", 0xdc143c),
    ("firebrick", 0xb22222),
    ("darkred", 0x8b0000),
    ("indianred", 0xcd5c5c),
    ("darkorange", 0xff8c00),
    ("orangered", 0xff4500),
    ("khaki", 0xf0e68c),
    ("beige", 0xf5f5dc),
    ("ivory", 0xfffff0),
    ("lightyellow", 0xffffe0),
    ("whitesmoke", 0xf5f5f5),
    ("gainsboro", 0xdcdcdc),
    ("lightgray", 0xd3d3d3),
    ("lightgrey", 0xd3d3d3),
    ("darkgray", 0xa9a9a9),
    ("darkgrey", 0xa9a9a9),
    ("dimgray", 0x696969),
    ("dimgrey", 0x696969),
    ("slategray", 0x708090),
    ("slategrey", 0x708090),
    ("darkslategray", 0x2f4f4f),
    ("darkslategrey", 0x2f4f4f),
    ("lightslategray", 0x778899),
    ("lightgreen", 0x90ee90),
    ("darkgreen", 0x006400),
    ("forestgreen", 0x228b22),
    ("seagreen", 0x2e8b57),
    ("lightblue", 0xadd8e6),
    ("skyblue", 0x87ceeb),
    ("steelblue", 0x4682b4),
    ("royalblue", 0x4169e1),
    ("dodgerblue", 0x1e90ff),
    ("cornflowerblue", 0x6495ed),
    ("aliceblue", 0xf0f8ff),
    ("darkblue", 0x00008b),
    ("midnightblue", 0x191970),
    ("indigo", 0x4b0082),
    ("violet", 0xee82ee),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_parsed() {
        for (text, expected) in [
            ("12px", Some(Length::Points(9.0))),
            ("2cm", Some(Length::Points(56.692_913))),
            ("1.5em", Some(Length::Points(15.0))),
            ("50%", Some(Length::Percent(50.0))),
            ("0", Some(Length::Points(0.0))),
            ("auto", Some(Length::Auto)),
            ("calc(1cm + 10px)", Some(Length::Points(35.846_46))),
            ("calc(100% - 20px)", Some(Length::Percent(100.0))),
            ("12", None),
            ("inf", None),
            ("1e30px", None),
            ("99999px", Some(Length::Points(15_000.0))),
            ("€", None),
        ] {
            assert_eq!(length(text, 10.0), expected, "{text}");
        }
    }

    #[test]
    fn colors_are_parsed() {
        for (text, expected) in [
            ("#f00", Some(Some(Color(255, 0, 0)))),
            ("#2C3E50", Some(Some(Color(44, 62, 80)))),
            ("rgba(0, 0, 0, 0.5)", Some(Some(Color(128, 128, 128)))),
            ("rgb(10% 20% 30%)", Some(Some(Color(26, 51, 76)))),
            ("hsl(120, 100%, 25%)", Some(Some(Color(0, 128, 0)))),
            ("rgba(0,0,0,0)", Some(None)),
            ("Navy", Some(Some(Color(0, 0, 128)))),
            ("#12", None),
            ("#éé", None),
            ("rgb(1,2)", None),
            ("currentcolor", None),
        ] {
            assert_eq!(color(text), expected, "{text}");
        }
    }
}
