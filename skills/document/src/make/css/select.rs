//! Selectors.

use std::cell::Cell;

use crate::make::dom::{Dom, Element, Id};

/// Compounds of one selector.
const COMPOUNDS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Combinator {
    Descendant,
    Child,
    Next,
    Later,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Name(String),
    Class(String),
    Id(String),
    /// Name, operator, value.
    Attribute(String, char, String),
    /// Step, offset, whether it counts from the end, and whether only elements of the same name count.
    Nth(i32, i32, bool, bool),
    Root,
    Empty,
    Not(Vec<Test>),
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pseudo {
    None,
    Before,
    After,
    Marker,
}

#[derive(Debug)]
pub struct Selector {
    /// From the last to the first, each with how it hangs together with the one before it in the text.
    compounds: Vec<(Vec<Test>, Combinator)>,
    pub pseudo: Pseudo,
    pub weight: u32,
}

impl Selector {
    pub fn parse(text: &str) -> Option<Self> {
        let mut selector = Self { compounds: Vec::new(), pseudo: Pseudo::None, weight: 0 };
        let mut rest = text.trim();
        let mut combinator = Combinator::Descendant;
        while !rest.is_empty() {
            let (tests, more) = selector.compound(rest)?;
            selector.compounds.insert(0, (tests, combinator));
            if selector.compounds.len() > COMPOUNDS {
                return None;
            }
            let trimmed = more.trim_start();
            (combinator, rest) = match trimmed.chars().next() {
                Some('>') => (Combinator::Child, trimmed[1..].trim_start()),
                Some('+') => (Combinator::Next, trimmed[1..].trim_start()),
                Some('~') => (Combinator::Later, trimmed[1..].trim_start()),
                Some(_) if trimmed.len() == more.len() => return None,
                _ => (Combinator::Descendant, trimmed),
            };
        }
        (!selector.compounds.is_empty()).then_some(selector)
    }

    fn compound<'t>(&mut self, text: &'t str) -> Option<(Vec<Test>, &'t str)> {
        let mut tests = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            match first {
                '*' => rest = &rest[1..],
                '.' => {
                    let (name, more) = name(&rest[1..])?;
                    tests.push(Test::Class(name.to_owned()));
                    self.weight += 100;
                    rest = more;
                }
                '#' => {
                    let (name, more) = name(&rest[1..])?;
                    tests.push(Test::Id(name.to_owned()));
                    self.weight += 10_000;
                    rest = more;
                }
                '[' => {
                    let (inner, more) = rest[1..].split_once(']')?;
                    tests.push(attribute(inner));
                    self.weight += 100;
                    rest = more;
                }
                ':' => {
                    let (test, more) = self.pseudo(rest)?;
                    tests.extend(test);
                    rest = more;
                }
                _ if first.is_alphanumeric() || first == '_' || first == '-' || first == '\\' => {
                    let (name, more) = name(rest)?;
                    tests.push(Test::Name(name.to_ascii_lowercase()));
                    self.weight += 1;
                    rest = more;
                }
                _ => break,
            }
        }
        (rest.len() < text.len()).then_some((tests, rest))
    }

    fn pseudo<'t>(&mut self, text: &'t str) -> Option<(Option<Test>, &'t str)> {
        let (pseudo, more) = name(text.trim_start_matches(':'))?;
        let (argument, more) = match more.strip_prefix('(') {
            Some(inner) => {
                let (argument, more) = inner.split_once(')')?;
                (argument.trim(), more)
            }
            None => ("", more),
        };
        let test = match pseudo.to_ascii_lowercase().as_str() {
            "before" => {
                self.pseudo = Pseudo::Before;
                return Some((None, more));
            }
            "after" => {
                self.pseudo = Pseudo::After;
                return Some((None, more));
            }
            "marker" => {
                self.pseudo = Pseudo::Marker;
                return Some((None, more));
            }
            "first-child" => Test::Nth(0, 1, false, false),
            "last-child" => Test::Nth(0, 1, true, false),
            "first-of-type" => Test::Nth(0, 1, false, true),
            "last-of-type" => Test::Nth(0, 1, true, true),
            "nth-child" => nth(argument, false, false)?,
            "nth-last-child" => nth(argument, true, false)?,
            "nth-of-type" => nth(argument, false, true)?,
            "root" => Test::Root,
            "empty" => Test::Empty,
            "link" | "any-link" => Test::Attribute("href".to_owned(), ' ', String::new()),
            "not" => {
                let mut inner = Self { compounds: Vec::new(), pseudo: Pseudo::None, weight: 0 };
                // `:not(:last-child)` has a pseudo-class, whose own argument would end too early.
                let (tests, rest) = inner.compound(argument)?;
                if !rest.is_empty() {
                    return None;
                }
                Test::Not(tests)
            }
            // On paper nothing is pointed at, and other pseudo-elements are not made.
            _ => Test::Never,
        };
        self.weight += 100;
        Some((Some(test), more))
    }

    /// The name, class or id that an element must have, for an index.
    pub fn key(&self) -> Option<(char, &str)> {
        let tests = &self.compounds.first()?.0;
        let find = |wanted: fn(&Test) -> Option<(char, &str)>| tests.iter().find_map(wanted);
        find(|test| if let Test::Id(id) = test { Some(('#', id.as_str())) } else { None })
            .or_else(|| find(|test| if let Test::Class(class) = test { Some(('.', class.as_str())) } else { None }))
            .or_else(|| find(|test| if let Test::Name(name) = test { Some((' ', name.as_str())) } else { None }))
    }

    /// Whether the selector fits an element. Each comparison takes one of `steps`; without any left, nothing fits.
    pub fn fits(&self, dom: &Dom, id: Id, steps: &Cell<usize>) -> bool {
        self.fits_from(0, dom, id, steps)
    }

    fn fits_from(&self, at: usize, dom: &Dom, id: Id, steps: &Cell<usize>) -> bool {
        let Some(left) = steps.get().checked_sub(1) else { return false };
        steps.set(left);
        let Some((tests, combinator)) = self.compounds.get(at) else { return true };
        let Some(element) = dom.element(id) else { return false };
        if id == 0 || !tests.iter().all(|test| fits(test, dom, id, element, steps)) {
            return false;
        }
        if at + 1 == self.compounds.len() {
            return true;
        }
        match combinator {
            Combinator::Child => self.fits_from(at + 1, dom, dom.parents[id], steps),
            Combinator::Descendant => {
                let mut above = dom.parents[id];
                while above != 0 {
                    if self.fits_from(at + 1, dom, above, steps) {
                        return true;
                    }
                    above = dom.parents[above];
                }
                false
            }
            Combinator::Next => {
                // Between two elements are texts.
                let mut before = (1..id).rev().filter(|other| dom.parents[*other] == dom.parents[id]);
                dom.places[id] > 1
                    && before
                        .find(|other| dom.element(*other).is_some())
                        .is_some_and(|other| self.fits_from(at + 1, dom, other, steps))
            }
            Combinator::Later => siblings(dom, id, steps)
                .into_iter()
                .take_while(|other| *other != id)
                .any(|other| self.fits_from(at + 1, dom, other, steps)),
        }
    }
}

fn siblings(dom: &Dom, id: Id, steps: &Cell<usize>) -> Vec<Id> {
    let children = dom.children(dom.parents[id]);
    steps.set(steps.get().saturating_sub(children.len()));
    children.iter().copied().filter(|child| dom.element(*child).is_some()).collect()
}

fn fits(test: &Test, dom: &Dom, id: Id, element: &Element, steps: &Cell<usize>) -> bool {
    match test {
        Test::Name(name) => element.name == *name,
        Test::Class(class) => {
            element.get("class").is_some_and(|classes| classes.split_whitespace().any(|known| known == class))
        }
        Test::Id(wanted) => element.get("id") == Some(wanted),
        Test::Attribute(name, operator, value) => element.get(name).is_some_and(|known| match operator {
            '=' => known == value,
            '~' => known.split_whitespace().any(|word| word == value),
            '^' => known.starts_with(value.as_str()),
            '$' => known.ends_with(value.as_str()),
            '*' => known.contains(value.as_str()),
            _ => true,
        }),
        Test::Nth(step, offset, from_end, same_name) => {
            let (mut place, mut count) = (dom.places[id], dom.counts[dom.parents[id]]);
            if *same_name {
                let mut found = siblings(dom, id, steps);
                found.retain(|other| dom.name(*other) == element.name);
                place = found.iter().position(|other| *other == id).unwrap_or(0) + 1;
                count = found.len();
            }
            let place = if *from_end { count + 1 - place } else { place };
            let distance = i32::try_from(place).unwrap_or(i32::MAX).saturating_sub(*offset);
            if *step == 0 { distance == 0 } else { distance % step == 0 && distance / step >= 0 }
        }
        Test::Root => element.name == "html",
        Test::Empty => element.children.is_empty(),
        Test::Not(tests) => !tests.iter().all(|test| fits(test, dom, id, element, steps)),
        Test::Never => false,
    }
}

fn name(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn attribute(inner: &str) -> Test {
    let Some((name, value)) = inner.split_once('=') else {
        return Test::Attribute(inner.trim().to_ascii_lowercase(), ' ', String::new());
    };
    let operator = name.trim().chars().last().filter(|c| "~^$*|".contains(*c)).unwrap_or('=');
    let name = name.trim().trim_end_matches(['~', '^', '$', '*', '|']).to_ascii_lowercase();
    Test::Attribute(name, operator, super::sheet::unquote(value).to_owned())
}

/// `odd`, `even`, `3`, `2n+1`, `-n+3`.
fn nth(text: &str, from_end: bool, same_name: bool) -> Option<Test> {
    let text: String = text.to_ascii_lowercase().chars().filter(|c| !c.is_whitespace()).collect();
    let (step, offset) = match text.as_str() {
        "odd" => (2, 1),
        "even" => (2, 0),
        other => match other.split_once('n') {
            Some((step, offset)) => {
                let step = match step {
                    "" | "+" => 1,
                    "-" => -1,
                    step => step.parse().ok()?,
                };
                (step, if offset.is_empty() { 0 } else { offset.parse().ok()? })
            }
            None => (0, other.parse().ok()?),
        },
    };
    let limit = |number: i32| number.clamp(-1_000_000, 1_000_000);
    Some(Test::Nth(limit(step), limit(offset), from_end, same_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitting(selector: &str) -> Vec<String> {
        let dom = Dom::parse(
            "<html><body><div class='a b' id=x><p title='u v'>1<p>2<p class=c>3</div><ul><li>4<li><p>5</ul></body></html>",
        );
        let selector = Selector::parse(selector).unwrap();
        let steps = Cell::new(100_000);
        (1..dom.nodes.len()).filter(|id| selector.fits(&dom, *id, &steps)).map(|id| dom.text(id)).collect()
    }

    #[test]
    fn selectors_fit() {
        for (selector, expected) in [
            ("p", "1 2 3 5"),
            (".a p", "1 2 3"),
            ("#x > p:first-child", "1"),
            ("div.a.b p + p", "2 3"),
            ("p ~ p.c", "3"),
            ("p:nth-child(odd)", "1 3 5"),
            ("p:nth-child(-n+2)", "1 2 5"),
            ("div p:last-of-type", "3"),
            ("[title~=v]", "1"),
            ("p:not(.c)", "1 2 5"),
            ("body li p", "5"),
            ("p:hover", ""),
            ("html body ul > li:nth-child(1)", "4"),
        ] {
            assert_eq!(fitting(selector).join(" "), expected, "{selector}");
        }
        for wrong in ["", ">", "p >> q", "p:", "..", "p{", "é§"] {
            assert!(Selector::parse(wrong).is_none(), "{wrong}");
        }
        assert_eq!(Selector::parse("li::before").unwrap().pseudo, Pseudo::Before);
    }
}
