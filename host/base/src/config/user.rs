//! The user's time zone and locale, from `[user]` or from the system.

use super::Config;
use jiff::tz::TimeZone;

/// The default locale.
const LOCALE: &str = "en";

/// Maximum characters of a locale.
const MAX_LOCALE: usize = 35;

impl Config {
    /// The time zone of the user, by its name in the IANA database.
    pub fn zone(&self) -> String {
        self.user.time_zone.clone().unwrap_or_else(system_zone)
    }

    /// The locale of the user, as a BCP 47 tag.
    pub fn locale(&self) -> String {
        let of_system = || {
            ["LC_ALL", "LC_TIME", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|of| !of.is_empty()))
        };
        let given = self.user.locale.clone();
        given.or_else(|| of_system().as_deref().and_then(of_posix)).unwrap_or_else(|| LOCALE.to_owned())
    }
}

/// Converts a POSIX locale such as "de_DE.UTF-8" to a tag; `None` for "C" and "POSIX".
fn of_posix(locale: &str) -> Option<String> {
    let tag = locale.split(['.', '@']).next().unwrap_or_default().replace('_', "-");
    (is_locale(&tag) && !tag.eq_ignore_ascii_case("posix")).then_some(tag)
}

/// Whether a text has the form of a tag: "de", "de-DE", "zh-Hant-TW".
fn is_locale(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let language = parts.next().unwrap_or_default();
    let is_part = |part: &str| (1..=8).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphanumeric());
    tag.len() <= MAX_LOCALE
        && (2..=8).contains(&language.len())
        && language.chars().all(|c| c.is_ascii_alphabetic())
        && parts.all(is_part)
}

/// The system's zone by its IANA name; "UTC" if it has none.
fn system_zone() -> String {
    TimeZone::system().iana_name().unwrap_or("UTC").to_owned()
}

/// Returns the error of a value of `[user]`, if it has one. An empty value counts as not set.
pub(super) fn wrong(name: &str, value: &str) -> Option<String> {
    let (is_right, example) = match name {
        "time_zone" => (TimeZone::get(value).is_ok(), "a time zone: write one like \"Europe/Berlin\" or \"UTC\""),
        _ => (is_locale(value), "a locale: write one like \"de-DE\" or \"en\""),
    };
    (!value.is_empty() && !is_right).then(|| format!("user.{name} = {value:?} is not {example}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_of_the_system_becomes_a_tag() {
        for (posix, tag) in [
            ("de_DE.UTF-8", Some("de-DE")),
            ("en_US", Some("en-US")),
            ("sr_RS@latin", Some("sr-RS")),
            ("C", None),
            ("C.UTF-8", None),
            ("POSIX", None),
            ("", None),
        ] {
            assert_eq!(of_posix(posix).as_deref(), tag, "{posix}");
        }
    }

    #[test]
    fn what_is_written_is_checked() {
        assert_eq!(wrong("time_zone", "Europe/Berlin"), None);
        assert!(wrong("time_zone", "Mars/Base").unwrap().contains("\"Mars/Base\" is not a time zone"));
        assert_eq!(wrong("locale", "zh-Hant-TW"), None);
        assert_eq!((wrong("time_zone", ""), wrong("locale", "")), (None, None));
        assert!(wrong("locale", "german please").unwrap().contains("is not a locale"));
    }
}
