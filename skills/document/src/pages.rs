//! Lists of pages, such as `3-5,8`.

use crate::error::{Error, Result};
use crate::limits;

/// Numbers from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages(Vec<(usize, usize)>);

impl Pages {
    /// Parses `3`, `3-5`, `3-` and `-5`, separated by commas.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::new(format!("pages `{text}`: expected numbers from 1 such as 3-5,8"));
        let mut ranges = Vec::new();
        for range in text.split(',').map(str::trim) {
            let number = |digits: &str, default: usize| match digits.trim() {
                "" => Ok(default),
                digits => digits.parse::<usize>().ok().filter(|number| *number > 0).ok_or_else(wrong),
            };
            let (first, last) = match range.split_once('-') {
                Some(("", "")) => return Err(wrong()),
                Some((first, last)) => (number(first, 1)?, number(last, usize::MAX)?),
                None if range.is_empty() => return Err(wrong()),
                None => (number(range, 1)?, number(range, 1)?),
            };
            if first > last {
                return Err(wrong());
            }
            ranges.push((first, last));
            if ranges.len() > limits::RANGES {
                return Err(Error::limit("pages: too many ranges", limits::RANGES));
            }
        }
        Ok(Self(ranges))
    }

    /// One range, ends included.
    pub fn between(first: usize, last: usize) -> Self {
        Self(vec![(first, last)])
    }

    pub fn contains(&self, number: usize) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&number))
    }

    /// Whether no page from `number` on is wanted.
    pub fn end_before(&self, number: usize) -> bool {
        self.0.iter().all(|(_, last)| *last < number)
    }

    /// The smallest number that is wanted.
    pub fn first(&self) -> usize {
        self.0.iter().map(|(first, _)| *first).min().unwrap_or(1)
    }
}

/// Numbers as a list with ranges: `1-3, 7`.
pub fn join(numbers: &[usize]) -> String {
    let mut text = String::new();
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let run = rest.iter().zip(*first..).take_while(|(number, expected)| *number == expected).count();
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&first.to_string());
        if run > 1 {
            text.push_str(&format!("-{}", first + run - 1));
        }
        rest = &rest[run..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_pages_is_parsed() {
        let pages = Pages::parse("3-5, 8").unwrap();
        let found: Vec<usize> = (1..10).filter(|number| pages.contains(*number)).collect();
        assert_eq!(found, [3, 4, 5, 8]);
        assert!(pages.end_before(9) && !pages.end_before(8) && pages.first() == 3);
        assert!(Pages::parse("-2").unwrap().contains(1) && Pages::parse("7-").unwrap().contains(7_000));
        for wrong in ["", "0", "a", "5-3", "-", "1,,2", "1-2-3", "99999999999999999999999"] {
            assert!(Pages::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Pages::parse(&["1"; 300].join(",")).is_err());
    }

    #[test]
    fn numbers_are_joined() {
        assert_eq!(join(&[1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10");
        assert_eq!(join(&[]), "");
    }
}
