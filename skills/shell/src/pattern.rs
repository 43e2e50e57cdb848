//! Shell patterns: `* ? […]` and the extended `@(…) ?(…) *(…) +(…) !(…)`.
//!
//! A pattern is run over all positions where it may stand at the same time instead of trying one after the other, so that
//! `*a*a*a*b` takes time in proportion to pattern times text.

mod bracket;
#[cfg(test)]
mod tests;

use bracket::Bracket;

use crate::expand::Mark;

/// Deeper nesting of extended patterns is plain text: each level costs frames of the stack.
const MAX_DEPTH: usize = 16;

#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    nodes: Vec<Node>,
    fold: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Char(char),
    Any,
    Star,
    Bracket(Bracket),
    Group(Repeat, Vec<Vec<Node>>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Repeat {
    /// `@`
    Once,
    /// `?`
    Maybe,
    /// `*`
    Any,
    /// `+`
    Some,
    /// `!`
    Not,
}

impl Pattern {
    /// `fold`: upper and lower case are the same.
    pub fn new(marks: &[Mark], extended: bool, fold: bool) -> Self {
        let partners = if extended { partners(marks) } else { Vec::new() };
        let nodes = Parser { marks, partners: &partners, brackets: true }.nodes(0, marks.len(), MAX_DEPTH);
        Self { nodes, fold }
    }

    /// How many slashes are written in it.
    pub fn slashes(&self) -> usize {
        self.nodes.iter().filter(|node| matches!(node, Node::Char('/'))).count()
    }

    /// Whether it stands for nothing but the empty text.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether a file whose name starts with a dot may match: the dot must be written.
    pub fn starts_with_dot(&self) -> bool {
        match self.nodes.first() {
            Some(Node::Char(c)) => *c == '.',
            Some(Node::Group(repeat, choices)) => {
                *repeat != Repeat::Not && choices.iter().any(|nodes| nodes.first() == Some(&Node::Char('.')))
            }
            _ => false,
        }
    }

    pub fn matches_text(&self, text: &str) -> bool {
        self.matches(&text.chars().collect::<Vec<_>>())
    }

    pub fn matches(&self, text: &[char]) -> bool {
        if self.nodes.iter().all(|node| !matches!(node, Node::Group(..))) {
            return self.matches_simple(text);
        }
        self.run(&self.nodes, text, vec![0], false).last() == Some(&text.len())
    }

    /// The length of the longest or shortest start of `text` that matches.
    pub fn prefix(&self, text: &[char], longest: bool) -> Option<usize> {
        let ends = self.run(&self.nodes, text, vec![0], false);
        if longest { ends.last().copied() } else { ends.first().copied() }
    }

    /// Where the longest or shortest end of `text` that matches begins.
    pub fn suffix(&self, text: &[char], longest: bool) -> Option<usize> {
        let reversed: Vec<char> = text.iter().rev().copied().collect();
        let ends = self.run(&self.nodes, &reversed, vec![0], true);
        let length = if longest { ends.last() } else { ends.first() };
        length.map(|length| text.len() - length)
    }

    /// Without groups it is enough to go back to the last star.
    fn matches_simple(&self, text: &[char]) -> bool {
        let (mut node, mut at) = (0, 0);
        let mut star = None;
        loop {
            match self.nodes.get(node) {
                Some(Node::Star) => {
                    node += 1;
                    star = Some((node, at));
                    continue;
                }
                Some(one) if at < text.len() && self.one(one, text[at]) => {
                    (node, at) = (node + 1, at + 1);
                    continue;
                }
                None if at == text.len() => return true,
                _ => {}
            }
            match star {
                Some((behind, from)) if from < text.len() => {
                    star = Some((behind, from + 1));
                    (node, at) = (behind, from + 1);
                }
                _ => return false,
            }
        }
    }

    /// Whether a node that stands for one character stands for this one.
    fn one(&self, node: &Node, c: char) -> bool {
        match node {
            Node::Char(own) => *own == c || self.fold && folded(*own) == folded(c),
            Node::Any => true,
            Node::Bracket(bracket) => bracket.contains(c) || self.fold && bracket.contains_either(c),
            Node::Star | Node::Group(..) => false,
        }
    }

    /// The positions where `nodes` may end if they begin at one of `starts`; both are sorted. `reversed`: the text is read
    /// backwards, so the nodes are too.
    fn run(&self, nodes: &[Node], text: &[char], starts: Vec<usize>, reversed: bool) -> Vec<usize> {
        let mut positions = starts;
        for index in 0..nodes.len() {
            let node = if reversed { &nodes[nodes.len() - 1 - index] } else { &nodes[index] };
            positions = match node {
                Node::Star => positions.first().map_or_else(Vec::new, |&first| (first..=text.len()).collect()),
                Node::Group(repeat, choices) => self.group(*repeat, choices, text, positions, reversed),
                one => {
                    positions.retain_mut(|at| {
                        let matched = *at < text.len() && self.one(one, text[*at]);
                        *at += 1;
                        matched
                    });
                    positions
                }
            };
            if positions.is_empty() {
                break;
            }
        }
        positions
    }

    fn group(
        &self,
        repeat: Repeat,
        choices: &[Vec<Node>],
        text: &[char],
        starts: Vec<usize>,
        reversed: bool,
    ) -> Vec<usize> {
        let once = |from: &Vec<usize>| {
            merge(choices.iter().flat_map(|nodes| self.run(nodes, text, from.clone(), reversed)).collect())
        };
        match repeat {
            Repeat::Once => once(&starts),
            Repeat::Maybe => merge([once(&starts), starts].concat()),
            Repeat::Any => closure(starts, once),
            Repeat::Some => {
                let first = once(&starts);
                closure(first, once)
            }
            Repeat::Not => {
                let mut ends = vec![false; text.len() + 1];
                for start in starts {
                    let matched = once(&vec![start]);
                    let mut matched = matched.iter().peekable();
                    for (end, reached) in ends.iter_mut().enumerate().skip(start) {
                        let is_match = matched.next_if_eq(&&end).is_some();
                        *reached |= !is_match;
                    }
                }
                ends.iter().enumerate().filter_map(|(at, reached)| reached.then_some(at)).collect()
            }
        }
    }
}

/// All positions that any number of repetitions reaches.
fn closure(starts: Vec<usize>, once: impl Fn(&Vec<usize>) -> Vec<usize>) -> Vec<usize> {
    let mut all = starts.clone();
    let mut new = starts;
    while !new.is_empty() {
        new = once(&new).into_iter().filter(|at| all.binary_search(at).is_err()).collect();
        all = merge([all, new.clone()].concat());
    }
    all
}

fn merge(mut positions: Vec<usize>) -> Vec<usize> {
    positions.sort_unstable();
    positions.dedup();
    positions
}

fn folded(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// For each `(` that is not quoted the index of its `)`.
fn partners(marks: &[Mark]) -> Vec<Option<usize>> {
    let mut partners = vec![None; marks.len()];
    let mut open = Vec::new();
    for (at, mark) in marks.iter().enumerate() {
        match mark {
            ('(', false) => open.push(at),
            (')', false) => {
                if let Some(start) = open.pop() {
                    partners[start] = Some(at);
                }
            }
            _ => {}
        }
    }
    partners
}

struct Parser<'a> {
    marks: &'a [Mark],
    /// Empty if extended patterns are off.
    partners: &'a [Option<usize>],
    /// Whether a `[` may still have a closing bracket: if one has none, none behind it has.
    brackets: bool,
}

impl Parser<'_> {
    fn nodes(&mut self, mut at: usize, end: usize, depth: usize) -> Vec<Node> {
        let mut nodes = Vec::new();
        while at < end {
            let (c, quoted) = self.marks[at];
            if !quoted {
                if let Some(close) = self.group_end(at, end).filter(|_| depth > 0) {
                    let choices = self.choices(at + 2, close, depth - 1);
                    nodes.push(Node::Group(repeat(c), choices));
                    at = close + 1;
                    continue;
                }
                if c == '[' && self.brackets {
                    if let Some((bracket, behind)) = Bracket::parse(&self.marks[..end], at + 1) {
                        nodes.push(Node::Bracket(bracket));
                        at = behind;
                        continue;
                    }
                    self.brackets = end != self.marks.len();
                }
            }
            match c {
                // Two stars are one.
                '*' if !quoted && nodes.last() == Some(&Node::Star) => {}
                '*' if !quoted => nodes.push(Node::Star),
                '?' if !quoted => nodes.push(Node::Any),
                _ => nodes.push(Node::Char(c)),
            }
            at += 1;
        }
        nodes
    }

    fn group_end(&self, at: usize, end: usize) -> Option<usize> {
        if !matches!(self.marks[at].0, '@' | '?' | '*' | '+' | '!') {
            return None;
        }
        self.partners.get(at + 1).copied().flatten().filter(|&close| close < end)
    }

    fn choices(&mut self, start: usize, end: usize, depth: usize) -> Vec<Vec<Node>> {
        let mut choices = Vec::new();
        let (mut from, mut at) = (start, start);
        while at < end {
            match self.marks[at] {
                ('(', false) => at = self.partners[at].filter(|&close| close < end).unwrap_or(at),
                ('|', false) => {
                    choices.push(self.nodes(from, at, depth));
                    from = at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        choices.push(self.nodes(from, end, depth));
        choices
    }
}

fn repeat(c: char) -> Repeat {
    match c {
        '?' => Repeat::Maybe,
        '*' => Repeat::Any,
        '+' => Repeat::Some,
        '!' => Repeat::Not,
        _ => Repeat::Once,
    }
}
