//! Bracket expressions: `[a-z]`, `[!x]`, `[[:alpha:]]`.

use crate::expand::Mark;

#[derive(Clone, Debug, PartialEq)]
pub struct Bracket {
    negated: bool,
    items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq)]
enum Item {
    Range(char, char),
    Class(Class),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Class {
    Alnum,
    Alpha,
    Ascii,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Word,
    Xdigit,
}

impl Bracket {
    /// Behind the `[`: the expression and the index behind its `]`, or nothing if there is no `]`.
    pub fn parse(marks: &[Mark], mut at: usize) -> Option<(Self, usize)> {
        let negated = matches!(marks.get(at)?, ('!' | '^', false));
        at += usize::from(negated);
        let first = at;
        let mut items = Vec::new();
        loop {
            let (c, quoted) = *marks.get(at)?;
            if c == ']' && !quoted && at > first {
                return Some((Self { negated, items }, at + 1));
            }
            if c == '['
                && !quoted
                && let Some((item, behind)) = named(marks, at + 1)
            {
                items.extend(item);
                at = behind;
                continue;
            }
            match (marks.get(at + 1), marks.get(at + 2)) {
                (Some(('-', false)), Some(&(last, end_quoted))) if last != ']' || end_quoted => {
                    items.push(Item::Range(c, last));
                    at += 3;
                }
                _ => {
                    items.push(Item::Range(c, c));
                    at += 1;
                }
            }
        }
    }

    pub fn contains(&self, c: char) -> bool {
        self.items.iter().any(|item| item.contains(c)) != self.negated
    }

    /// Whether it contains the character in its other case.
    pub fn contains_either(&self, c: char) -> bool {
        c.to_lowercase().chain(c.to_uppercase()).any(|other| self.contains(other))
    }
}

impl Item {
    fn contains(&self, c: char) -> bool {
        match self {
            Self::Range(first, last) => (*first..=*last).contains(&c),
            Self::Class(class) => class.contains(c),
        }
    }
}

impl Class {
    fn contains(self, c: char) -> bool {
        match self {
            Self::Alnum => c.is_alphanumeric(),
            Self::Alpha => c.is_alphabetic(),
            Self::Ascii => c.is_ascii(),
            Self::Blank => c == ' ' || c == '\t',
            Self::Cntrl => c.is_control(),
            Self::Digit => c.is_ascii_digit(),
            Self::Graph => !c.is_control() && !c.is_whitespace(),
            Self::Lower => c.is_lowercase(),
            Self::Print => !c.is_control(),
            Self::Punct => c.is_ascii_punctuation(),
            Self::Space => c.is_whitespace(),
            Self::Upper => c.is_uppercase(),
            Self::Word => c.is_alphanumeric() || c == '_',
            Self::Xdigit => c.is_ascii_hexdigit(),
        }
    }
}

/// Behind a `[` inside brackets: `:alpha:]`, `=a=]` or `.a.]`, and the index behind it. An unknown class contains nothing.
fn named(marks: &[Mark], at: usize) -> Option<(Option<Item>, usize)> {
    // No name is longer.
    const LONGEST: usize = 8;
    let (kind @ (':' | '=' | '.'), false) = *marks.get(at)? else { return None };
    let mut name = String::new();
    for end in at + 1..=at + 1 + LONGEST {
        let (c, _) = *marks.get(end)?;
        if c == kind && marks.get(end + 1).is_some_and(|next| next.0 == ']') && !name.is_empty() {
            let item = match kind {
                ':' => class(&name).map(Item::Class),
                _ => name.chars().next().filter(|_| name.chars().count() == 1).map(|c| Item::Range(c, c)),
            };
            return Some((item, end + 2));
        }
        name.push(c);
    }
    None
}

fn class(name: &str) -> Option<Class> {
    Some(match name {
        "alnum" => Class::Alnum,
        "alpha" => Class::Alpha,
        "ascii" => Class::Ascii,
        "blank" => Class::Blank,
        "cntrl" => Class::Cntrl,
        "digit" => Class::Digit,
        "graph" => Class::Graph,
        "lower" => Class::Lower,
        "print" => Class::Print,
        "punct" => Class::Punct,
        "space" => Class::Space,
        "upper" => Class::Upper,
        "word" => Class::Word,
        "xdigit" => Class::Xdigit,
        _ => return None,
    })
}
