//! Matching of lines with `regex`, or with `fancy-regex` for look-around and back-references, which `regex` does not support.

use grep_matcher::{Match, Matcher, NoCaptures};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::options::{Options, Syntax};
use crate::cli::Error;
use crate::posix;

pub enum AnyMatcher {
    Fast(RegexMatcher),
    Fancy(fancy_regex::Regex),
}

pub fn build(options: &Options) -> Result<AnyMatcher, Error> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(options.ignore_case).whole_line(options.lines).word(options.words && !options.lines);
    builder.line_terminator(Some(if options.zero { 0 } else { b'\n' })).multi_line(true);
    if options.patterns.is_empty() {
        // An empty file of patterns fits nothing.
        return Ok(AnyMatcher::Fast(builder.build(r"[^\s\S]")?));
    }
    let posix = match options.syntax {
        Syntax::Fixed => return Ok(AnyMatcher::Fast(builder.fixed_strings(true).build_many(&options.patterns)?)),
        Syntax::Perl => None,
        Syntax::Basic => Some(posix::Syntax::Basic),
        Syntax::Extended => Some(posix::Syntax::Extended),
    };
    let mut fancy = false;
    let mut patterns = Vec::new();
    for pattern in &options.patterns {
        match posix {
            Some(syntax) => {
                let (translated, references) = posix::translate(pattern, syntax)?;
                fancy |= references;
                patterns.push(translated);
            }
            None => patterns.push(pattern.clone()),
        }
    }
    let built = if fancy { None } else { Some(builder.build_many(&patterns)) };
    match built {
        Some(Ok(matcher)) => Ok(AnyMatcher::Fast(matcher)),
        Some(Err(e)) if posix.is_some() => Err(short(&e.to_string()).into()),
        _ => build_fancy(options, &patterns),
    }
}

fn build_fancy(options: &Options, patterns: &[String]) -> Result<AnyMatcher, Error> {
    let joined = match patterns {
        [one] => one.clone(),
        many => many.iter().map(|pattern| format!("(?:{pattern})")).collect::<Vec<_>>().join("|"),
    };
    let whole = if options.lines {
        format!("^(?:{joined})$")
    } else if options.words {
        format!(r"(?<!\w)(?:{joined})(?!\w)")
    } else {
        joined
    };
    let case = if options.ignore_case { "i" } else { "" };
    let regex = fancy_regex::Regex::new(&format!("(?m{case}){whole}")).map_err(|e| short(&e.to_string()))?;
    Ok(AnyMatcher::Fancy(regex))
}

/// The crates draw the pattern over several lines; the last one says what is wrong.
fn short(message: &str) -> String {
    message.lines().last().unwrap_or(message).trim().trim_start_matches("error: ").to_owned()
}

impl Matcher for AnyMatcher {
    type Captures = NoCaptures;
    type Error = std::io::Error;

    fn find_at(&self, line: &[u8], at: usize) -> std::io::Result<Option<Match>> {
        match self {
            AnyMatcher::Fast(matcher) => matcher.find_at(line, at).map_err(std::io::Error::other),
            AnyMatcher::Fancy(regex) => {
                let valid = match std::str::from_utf8(line) {
                    Ok(text) => text,
                    Err(e) => std::str::from_utf8(&line[..e.valid_up_to()]).unwrap_or_default(),
                };
                if at > valid.len() {
                    return Ok(None);
                }
                let found = regex.find_from_pos(valid, at).map_err(std::io::Error::other)?;
                Ok(found.map(|found| Match::new(found.start(), found.end())))
            }
        }
    }

    fn new_captures(&self) -> std::io::Result<NoCaptures> {
        Ok(NoCaptures::new())
    }

    fn line_terminator(&self) -> Option<grep_matcher::LineTerminator> {
        match self {
            AnyMatcher::Fast(matcher) => matcher.line_terminator(),
            AnyMatcher::Fancy(_) => None,
        }
    }

    fn non_matching_bytes(&self) -> Option<&grep_matcher::ByteSet> {
        match self {
            AnyMatcher::Fast(matcher) => matcher.non_matching_bytes(),
            AnyMatcher::Fancy(_) => None,
        }
    }

    fn find_candidate_line(&self, text: &[u8]) -> std::io::Result<Option<grep_matcher::LineMatchKind>> {
        match self {
            AnyMatcher::Fast(matcher) => matcher.find_candidate_line(text).map_err(std::io::Error::other),
            AnyMatcher::Fancy(_) => {
                Ok(self.find_at(text, 0)?.map(|found| grep_matcher::LineMatchKind::Confirmed(found.start())))
            }
        }
    }
}
