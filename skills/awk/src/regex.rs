//! POSIX extended regular expressions on regex-automata: translated into its syntax, and with the longest match where it
//! takes the first.

use std::collections::HashMap;
use std::rc::Rc;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind, meta};

mod translate;

/// So many dynamic expressions stay compiled.
const MOST_CACHED: usize = 200;

/// The limit for a compiled expression: repetitions of repetitions grow without end.
const SIZE: usize = 8 << 20;

#[derive(Clone)]
pub struct Regex(Rc<Inner>);

struct Inner {
    source: Vec<u8>,
    first: meta::Regex,
    /// Finds where the longest match ends, where the first alternative may be shorter.
    longest: Option<Longest>,
    /// The expression and the end of the text behind it, for groups of the longest match.
    whole: std::cell::OnceCell<Option<meta::Regex>>,
    translated: String,
    fold: bool,
}

struct Longest {
    dfa: DFA,
    cache: std::cell::RefCell<Cache>,
}

fn options(fold: bool) -> syntax::Config {
    syntax::Config::new().utf8(false).dot_matches_new_line(true).case_insensitive(fold).nest_limit(250)
}

fn meta(pattern: &str, fold: bool) -> Result<meta::Regex, Box<meta::BuildError>> {
    let config = meta::Config::new().utf8_empty(true).nfa_size_limit(Some(SIZE));
    meta::Builder::new().configure(config).syntax(options(fold)).build(pattern).map_err(Box::new)
}

impl Regex {
    pub fn new(source: &[u8], fold: bool) -> Result<Regex, String> {
        let failed = |why: String| format!("invalid regular expression /{}/: {why}", String::from_utf8_lossy(source));
        let (translated, ambiguous) = translate::translated(source).map_err(failed)?;
        let first = meta(&translated, fold).map_err(|e| failed(reason(&e)))?;
        let longest = match ambiguous {
            true => Some(Longest::new(&translated, fold).map_err(failed)?),
            false => None,
        };
        let inner = Inner { source: source.to_vec(), first, longest, whole: Default::default(), translated, fold };
        Ok(Regex(Rc::new(inner)))
    }

    pub fn source(&self) -> &[u8] {
        &self.0.source
    }

    pub fn is_match(&self, text: &[u8]) -> bool {
        self.0.first.is_match(text)
    }

    /// The leftmost longest match at or behind `from`.
    pub fn find(&self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        let found = self.0.first.find(Input::new(text).range(from..))?;
        let longer = self.0.longest.as_ref().and_then(|longest| longest.end(text, found.start()));
        Some((found.start(), longer.unwrap_or(found.end())))
    }

    /// The groups of the match that [`Regex::find`] found, the whole one first.
    pub fn groups(&self, text: &[u8], start: usize, end: usize) -> Vec<Option<(usize, usize)>> {
        let whole = self.0.whole.get_or_init(|| meta(&format!("(?:{})\\z", self.0.translated), self.0.fold).ok());
        let regex = whole.as_ref().unwrap_or(&self.0.first);
        let mut captures: Captures = regex.create_captures();
        regex.captures(Input::new(&text[..end]).range(start..).anchored(Anchored::Yes), &mut captures);
        if !captures.is_match() {
            return vec![Some((start, end))];
        }
        (0..captures.group_len()).map(|at| captures.get_group(at).map(|span| (span.start, span.end))).collect()
    }
}

impl Longest {
    fn new(pattern: &str, fold: bool) -> Result<Longest, String> {
        let config =
            DFA::config().match_kind(MatchKind::All).skip_cache_capacity_check(true).unicode_word_boundary(true);
        let dfa = DFA::builder().configure(config).syntax(options(fold)).build(pattern).map_err(|e| e.to_string())?;
        let cache = dfa.create_cache().into();
        Ok(Longest { dfa, cache })
    }

    /// Nothing if it cannot tell, as at word boundaries beside other letters than English ones.
    fn end(&self, text: &[u8], start: usize) -> Option<usize> {
        let input = Input::new(text).range(start..).anchored(Anchored::Yes);
        self.dfa.try_search_fwd(&mut self.cache.borrow_mut(), &input).ok()?.map(|found| found.offset())
    }
}

/// One line of what the compiler says.
fn reason(error: &meta::BuildError) -> String {
    if error.size_limit().is_some() {
        return "its repetitions make it too large".into();
    }
    let text = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
    let line = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("error: "))
        .unwrap_or_else(|| text.lines().next().unwrap_or(""));
    line.to_owned()
}

/// Expressions that are made while the program runs.
#[derive(Default)]
pub struct Compiled {
    regexes: HashMap<(Vec<u8>, bool), Regex, rustc_hash::FxBuildHasher>,
    /// The one that was asked for last, which is nearly always the next one, too.
    last: Option<Regex>,
}

impl Compiled {
    pub fn get(&mut self, source: &[u8], fold: bool) -> Result<Regex, String> {
        if let Some(last) = self.last.as_ref().filter(|last| last.0.source == source && last.0.fold == fold) {
            return Ok(last.clone());
        }
        let key = (source.to_vec(), fold);
        let regex = match self.regexes.get(&key) {
            Some(regex) => regex.clone(),
            None => {
                if self.regexes.len() >= MOST_CACHED {
                    self.regexes.clear();
                }
                let regex = Regex::new(source, fold)?;
                self.regexes.insert(key, regex.clone());
                regex
            }
        };
        self.last = Some(regex.clone());
        Ok(regex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, expected: Option<(usize, usize)>) {
        assert_eq!(Regex::new(pattern.as_bytes(), false).unwrap().find(text.as_bytes(), 0), expected, "{pattern}");
    }

    #[test]
    fn the_longest_match_wins() {
        check("foo|foobar", "a foobar", Some((2, 8)));
        check("(a?)(ab)?", "ab", Some((0, 2)));
        check("x*", "aaa", Some((0, 0)));
        check("a+|b+c", "bbc", Some((0, 3)));
    }

    #[test]
    fn posix_syntax() {
        check("[]a]+", "x]a]", Some((1, 4)));
        check("[^]a]+", "]xy]", Some((1, 3)));
        check(r"[\]x]+", "a]x", Some((1, 3)));
        check("[[:digit:].]+", "a1.5b", Some((1, 4)));
        check("[a&&b~~-]+", "&-~", Some((0, 3)));
        check("a{2}", "caaa", Some((1, 3)));
        check("a{x", "a{x", Some((0, 3)));
        check("+a", "+a", Some((0, 2)));
        check("(*a)", "*a", Some((0, 2)));
        check("a.b", "a\nb", Some((0, 3)));
        check(r"\.", "a.b", Some((1, 2)));
        check(r"a\/b", "a/b", Some((0, 3)));
        check(r"\<b", "ab b", Some((3, 4)));
        check("a**b", "aab", Some((0, 3)));
        check("a+?b", "aab", Some((0, 3)));
        check("ü.", "xüäy", Some((1, 5)));
        check("^a", "ba", None);
        check("a$", "a\nb", None);
        check("a|", "b", Some((0, 0)));
        check("()", "b", Some((0, 0)));
        check("{", "a{", Some((1, 2)));
        check("a{,2}b", "aab", Some((0, 3)));
        check("a)", "a)", Some((0, 2)));
        check(r"[\x30-\x32\065]+", "a1254", Some((1, 4)));
    }

    #[test]
    fn groups_are_those_of_the_longest_match() {
        let regex = Regex::new(b"(a|ab)(c|bcd)", false).unwrap();
        let (start, end) = regex.find(b"xabcd", 0).unwrap();
        assert_eq!((start, end), (1, 5));
        assert_eq!(regex.groups(b"xabcd", start, end), [Some((1, 5)), Some((1, 2)), Some((2, 5))]);
    }

    #[test]
    fn bad_and_huge_ones_are_errors() {
        assert!(Regex::new(b"(a", false).is_err());
        assert!(Regex::new(b"[a", false).is_err());
        assert!(Regex::new(b"((a{1000}){1000}){1000}", false).err().unwrap().contains("too large"));
        assert!(Regex::new("(".repeat(5000).as_bytes(), false).is_err());
    }
}
