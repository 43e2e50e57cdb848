//! Bullets, numbers, and letters of another case.

use crate::make::css::style::{Marker, Transform};

pub fn transform(text: &str, how: Transform) -> String {
    match how {
        Transform::None => text.to_owned(),
        Transform::Upper => text.to_uppercase(),
        Transform::Lower => text.to_lowercase(),
        Transform::Capitalize => {
            let mut starts = true;
            let words = text.chars().flat_map(|c| {
                let up = std::mem::replace(&mut starts, c.is_whitespace() || c == '-') && c.is_alphabetic();
                if up { c.to_uppercase().collect::<Vec<_>>() } else { vec![c] }
            });
            words.collect()
        }
    }
}

/// The bullet or number of an item.
pub fn mark(marker: Marker, number: i64) -> String {
    match marker {
        Marker::None => String::new(),
        Marker::Disc => "•".to_owned(),
        Marker::Circle => "◦".to_owned(),
        Marker::Square => "▪".to_owned(),
        Marker::Decimal => format!("{number}."),
        Marker::LowerAlpha => format!("{}.", letters(number)),
        Marker::UpperAlpha => format!("{}.", letters(number).to_uppercase()),
        Marker::LowerRoman => format!("{}.", roman(number)),
        Marker::UpperRoman => format!("{}.", roman(number).to_uppercase()),
    }
}

fn letters(number: i64) -> String {
    let mut rest = number;
    let mut text = String::new();
    while rest > 0 {
        rest -= 1;
        text.insert(0, char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
    }
    if text.is_empty() { number.to_string() } else { text }
}

fn roman(number: i64) -> String {
    const PARTS: [(i64, &str); 13] = [
        (1000, "m"),
        (900, "cm"),
        (500, "d"),
        (400, "cd"),
        (100, "c"),
        (90, "xc"),
        (50, "l"),
        (40, "xl"),
        (10, "x"),
        (9, "ix"),
        (5, "v"),
        (4, "iv"),
        (1, "i"),
    ];
    if !(1..4_000).contains(&number) {
        return number.to_string();
    }
    let mut rest = number;
    let mut text = String::new();
    for (value, letters) in PARTS {
        while rest >= value {
            text.push_str(letters);
            rest -= value;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_numbered() {
        assert_eq!([1, 4, 28, 0].map(|number| mark(Marker::LowerAlpha, number)), ["a.", "d.", "ab.", "0."]);
        assert_eq!(
            [1, 4, 1994, 5_000].map(|number| mark(Marker::UpperRoman, number)),
            ["I.", "IV.", "MCMXCIV.", "5000."]
        );
        assert_eq!(transform("one two-three", Transform::Capitalize), "One Two-Three");
    }
}
