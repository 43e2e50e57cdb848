//! Colours as people write them.

use image::Rgba;

/// The names that are typed most, of those of CSS and X11.
const NAMES: [(&str, u32); 53] = [
    ("aqua", 0x00ffff),
    ("beige", 0xf5f5dc),
    ("black", 0x000000),
    ("blue", 0x0000ff),
    ("brown", 0xa52a2a),
    ("coral", 0xff7f50),
    ("crimson", 0xdc143c),
    ("cyan", 0x00ffff),
    ("darkblue", 0x00008b),
    ("darkgray", 0xa9a9a9),
    ("darkgreen", 0x006400),
    ("darkred", 0x8b0000),
    ("dimgray", 0x696969),
    ("firebrick", 0xb22222),
    ("fuchsia", 0xff00ff),
    ("gold", 0xffd700),
    ("gray", 0x7e7e7e),
    ("green", 0x008000),
    ("hotpink", 0xff69b4),
    ("indigo", 0x4b0082),
    ("ivory", 0xfffff0),
    ("khaki", 0xf0e68c),
    ("lavender", 0xe6e6fa),
    ("lightblue", 0xadd8e6),
    ("lightgray", 0xd3d3d3),
    ("lightgreen", 0x90ee90),
    ("lightyellow", 0xffffe0),
    ("lime", 0x00ff00),
    ("magenta", 0xff00ff),
    ("maroon", 0x800000),
    ("navy", 0x000080),
    ("olive", 0x808000),
    ("orange", 0xffa500),
    ("orchid", 0xda70d6),
    ("pink", 0xffc0cb),
    ("plum", 0xdda0dd),
    ("purple", 0x800080),
    ("red", 0xff0000),
    ("salmon", 0xfa8072),
    ("sienna", 0xa0522d),
    ("silver", 0xc0c0c0),
    ("skyblue", 0x87ceeb),
    ("slategray", 0x708090),
    ("snow", 0xfffafa),
    ("steelblue", 0x4682b4),
    ("tan", 0xd2b48c),
    ("teal", 0x008080),
    ("tomato", 0xff6347),
    ("turquoise", 0x40e0d0),
    ("violet", 0xee82ee),
    ("wheat", 0xf5deb3),
    ("white", 0xffffff),
    ("yellow", 0xffff00),
];

/// Reads a colour: a name, `#rgb`, `#rrggbb`, each with alpha, `rgb(…)` or `rgba(…)`.
pub fn parse(text: &str) -> Result<Rgba<u8>, String> {
    let unknown = || format!("unknown colour '{text}': write a name, #rrggbb or rgb(255,0,0)");
    let name = text.trim().to_ascii_lowercase().replace("grey", "gray");
    if name == "none" || name == "transparent" {
        return Ok(Rgba([0; 4]));
    }
    if let Some((_, rgb)) = NAMES.iter().find(|(known, _)| *known == name) {
        let [_, r, g, b] = rgb.to_be_bytes();
        return Ok(Rgba([r, g, b, 255]));
    }
    // gray0 is black, gray100 white.
    if let Some(percent) = name.strip_prefix("gray").and_then(|rest| rest.parse::<u16>().ok()).filter(|p| *p <= 100) {
        let level = ((percent * 255 + 50) / 100) as u8;
        return Ok(Rgba([level, level, level, 255]));
    }
    if let Some(digits) = name.strip_prefix('#') {
        return hexadecimal(digits).ok_or_else(unknown);
    }
    let inside =
        name.strip_prefix("rgba(").or_else(|| name.strip_prefix("rgb(")).and_then(|rest| rest.strip_suffix(')'));
    inside.and_then(levels).ok_or_else(unknown)
}

fn hexadecimal(digits: &str) -> Option<Rgba<u8>> {
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let width = match digits.len() {
        3 | 4 => 1,
        6 | 8 => 2,
        _ => return None,
    };
    let mut channels = [255; 4];
    for (channel, pair) in channels.iter_mut().zip(digits.as_bytes().chunks(width)) {
        let value = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        *channel = if width == 1 { value * 17 } else { value };
    }
    Some(Rgba(channels))
}

fn levels(inside: &str) -> Option<Rgba<u8>> {
    let mut channels = [255; 4];
    let parts: Vec<&str> = inside.split([',', ' ', '/']).filter(|part| !part.is_empty()).collect();
    if !(3..=4).contains(&parts.len()) {
        return None;
    }
    for (at, part) in parts.iter().enumerate() {
        let level = match part.strip_suffix('%') {
            Some(percent) => percent.parse::<f64>().ok()? * 2.55,
            None if at == 3 => part.parse::<f64>().ok()? * 255.0,
            None => part.parse().ok()?,
        };
        channels[at] = level.round().clamp(0.0, 255.0) as u8;
    }
    Some(Rgba(channels))
}

/// Returns the three levels without alpha, or white for a transparent colour.
pub fn opaque(color: Rgba<u8>) -> [u8; 3] {
    if color[3] == 0 { [255; 3] } else { [color[0], color[1], color[2]] }
}

/// Returns the largest difference of a channel, of 255.
pub fn distance(a: [u8; 4], b: [u8; 4]) -> u8 {
    if a[3] == 0 && b[3] == 0 {
        return 0;
    }
    a.iter().zip(b).map(|(a, b)| a.abs_diff(b)).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_have_many_spellings() {
        for (text, color) in [
            ("White", [255, 255, 255, 255]),
            ("none", [0, 0, 0, 0]),
            ("LightGrey", [0xd3, 0xd3, 0xd3, 255]),
            ("gray50", [128, 128, 128, 255]),
            ("#f00", [255, 0, 0, 255]),
            ("#11223344", [0x11, 0x22, 0x33, 0x44]),
            ("rgb(1, 2,3)", [1, 2, 3, 255]),
            ("rgba(100%,0,0,0.5)", [255, 0, 0, 128]),
        ] {
            assert_eq!(parse(text), Ok(Rgba(color)), "{text}");
        }
        for text in ["", "#12", "#ggg", "#é1", "rgb(1)", "rgb(a,b,c)", "nocolour", "gray101"] {
            assert!(parse(text).unwrap_err().contains("unknown colour"), "{text}");
        }
    }
}
