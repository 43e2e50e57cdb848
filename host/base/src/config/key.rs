//! Properties of a key, and the macro that generates the structs and the list of keys from one declaration.

use std::fmt::{self, Write};
use std::ops::Range;

use crate::role::Role;
use serde_json::Value;
use strsim::osa_distance;
use toml::de::{DeInteger, DeValue};

/// A key of `config.toml`.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The table that it is in; empty at the top.
    pub section: &'static str,
    pub name: &'static str,
    pub doc: &'static str,
    pub kind: Kind,
    /// When a running daemon applies a change.
    pub effect: Effect,
}

/// When a running daemon applies a change of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// At the next message, request or log line.
    AtOnce,
    /// At the next run. Current runs continue with the old value.
    NextRun,
    /// When the daemon is restarted.
    Restart,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Effect::AtOnce => "at once",
            Effect::NextRun => "next run",
            Effect::Restart => "restart",
        })
    }
}

/// The type of a key, with its default.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Default, minimum and maximum.
    Int(u64, u64, u64),
    /// Derived from the context size of the actor's model, smallest first; then minimum and maximum.
    Scaled([u64; 4], u64, u64),
    Text(&'static str),
    /// Default, and the allowed words. Without a default, the key is required.
    Word(&'static str, &'static [&'static str]),
    /// An optional text, absent by default.
    Choice(),
    Bool(bool),
    /// Texts, none by default; the number is the maximum.
    List(usize),
    /// Ports, none by default; the number is the maximum.
    Ports(usize),
    /// An optional integer: minimum, maximum, and a description of its absence.
    Count(u64, u64, &'static str),
    /// US dollars: maximum, and a description of its absence.
    Dollars(u32, &'static str),
    /// Maximum characters of a text, and whether it is required.
    Characters(usize, bool),
    /// A directory of this machine; required.
    Path,
    /// The name of an environment variable.
    Variable,
    /// Default, and the allowed texts.
    Listed(&'static [&'static str], &'static [&'static str]),
    /// A table of tools with the effect of each; the number is the maximum.
    Effects(usize),
    /// One of these words, optional; and the meaning of an absent key.
    OneOf(&'static [&'static str], &'static str),
    /// A list of these words, optional; and the meaning of an absent key.
    Named(&'static [&'static str], &'static str),
    /// Each line of a table, instead of a key: the maximum characters of its text, and the meaning of an absent table.
    Line(usize, &'static str),
}

/// A table of `config.toml`. The first one has no name and contains the keys at the top.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    pub name: &'static str,
    pub doc: &'static str,
}

impl Key {
    /// The key with its table, such as "limits.file_mib".
    pub fn path(&self) -> String {
        if self.section.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.section, self.name) }
    }

    /// Returns its value in a configuration: an integer, a boolean, a string, a list of strings, or null for none.
    pub fn value_in<'a>(&self, values: &'a Value) -> &'a Value {
        if self.section.is_empty() { &values[self.name] } else { &values[self.section][self.name] }
    }

    /// "integer", "number", "boolean", "string" or "list of strings".
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Int(..) | Kind::Scaled(..) | Kind::Count(..) => "integer",
            Kind::Dollars(..) => "number",
            Kind::Bool(_) => "boolean",
            Kind::List(_) | Kind::Listed(..) | Kind::Named(..) => "list of strings",
            Kind::Ports(_) => "list of integers",
            Kind::Effects(_) => "table",
            Kind::Text(_)
            | Kind::Word(..)
            | Kind::Choice()
            | Kind::Characters(..)
            | Kind::Path
            | Kind::Variable
            | Kind::OneOf(..)
            | Kind::Line(..) => "string",
        }
    }

    /// Returns the default as the file would show it, or a description of the key's absence. It is `""` for a text that is absent
    /// by default, and empty if the key is required.
    pub fn default_value(&self) -> String {
        match self.kind {
            Kind::Word("", _) | Kind::Characters(_, true) | Kind::Path => String::new(),
            Kind::Int(default, ..) => group(default),
            Kind::Scaled([least, .., most], ..) => {
                format!("{} to {}, by the context of the actor's model", group(least), group(most))
            }
            Kind::Text(default) | Kind::Word(default, _) => format!("{default:?}"),
            Kind::Choice() | Kind::Characters(_, false) | Kind::Variable => "\"\"".to_owned(),
            Kind::Bool(default) => default.to_string(),
            Kind::List(_) | Kind::Ports(_) => "[]".to_owned(),
            Kind::Effects(_) => "{}".to_owned(),
            Kind::Listed(default, _) => format!("{default:?}"),
            Kind::Count(_, _, without)
            | Kind::Dollars(_, without)
            | Kind::OneOf(_, without)
            | Kind::Named(_, without)
            | Kind::Line(_, without) => without.to_owned(),
        }
    }

    /// Returns the value that the file of a fresh home shows.
    pub fn example(&self) -> String {
        match self.kind {
            Kind::Scaled([least, ..], ..) => group(least),
            _ => self.default_value(),
        }
    }

    /// Returns the allowed values: minimum and maximum such as "1 to 20", the words, or the number of entries.
    pub fn range(&self) -> Option<String> {
        match self.kind {
            Kind::Int(_, min, max) | Kind::Scaled(_, min, max) | Kind::Count(min, max, _) => {
                Some(format!("{} to {}", group(min), group(max)))
            }
            Kind::Dollars(most, _) => Some(format!("0 to {}", group(most.into()))),
            Kind::Word(_, words) | Kind::Listed(_, words) | Kind::OneOf(words, _) | Kind::Named(words, _) => {
                Some(words.join(", "))
            }
            Kind::Characters(most, _) | Kind::Line(most, _) => Some(format!("1 to {} characters", group(most as u64))),
            Kind::List(most) | Kind::Ports(most) | Kind::Effects(most) => Some(format!("at most {most}")),
            Kind::Path => Some("absolute".to_owned()),
            Kind::Variable => Some("name of a variable".to_owned()),
            Kind::Text(_) | Kind::Choice() | Kind::Bool(_) => None,
        }
    }
}

/// A table whose entries have names that a user chooses.
#[derive(Debug, Clone, Copy)]
pub struct NamedTable {
    /// The name without the user's name: "providers", "exec.mounts".
    pub name: &'static str,
    /// As in the file, such as "[providers.NAME]".
    pub heading: &'static str,
    pub doc: &'static str,
    /// Lines for a file, each of them a comment, and the section that the table follows.
    pub example: &'static str,
    pub after: &'static str,
    /// When a running daemon applies a change.
    pub effect: Effect,
    /// The field that holds the user's name; empty for a list of tables without names.
    pub id: &'static str,
    pub keys: &'static [Key],
}

impl NamedTable {
    /// The lines of its example without the marks of comments, except for its sentences.
    pub fn example(&self) -> String {
        let is_toml = |line: &str| line.starts_with(['[', '"']) || line.split(' ').nth(1) == Some("=");
        let line = |line: &'static str| line.strip_prefix("# ").filter(|rest| is_toml(rest)).unwrap_or(line);
        self.example.trim_start().lines().flat_map(|text| [line(text), "\n"]).collect()
    }

    /// The field of the configuration that holds it.
    pub fn field(&self) -> String {
        match self.is_list() {
            true => self.name.replace('.', "_"),
            false => self.name.rsplit('.').next().unwrap_or_default().to_owned(),
        }
    }

    /// Whether its tables have no names, only an order.
    pub fn is_list(&self) -> bool {
        self.id.is_empty()
    }

    /// Whether each name has a line instead of a table.
    pub fn is_of_lines(&self) -> bool {
        matches!(self.keys, [Key { kind: Kind::Line(..), .. }])
    }
}

/// Declares the keys of such a table: name, type and description of each.
pub(super) const fn keys<const N: usize>(effect: Effect, list: [(&'static str, Kind, &'static str); N]) -> [Key; N] {
    let mut keys = [Key { section: "", name: "", doc: "", kind: Kind::Choice(), effect }; N];
    let mut at = 0;
    while at < N {
        (keys[at].name, keys[at].kind, keys[at].doc) = list[at];
        at += 1;
    }
    keys
}

/// Returns the words of a list of words and meanings.
pub(super) const fn words<T: Copy, const N: usize>(names: [(&'static str, T); N]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut at = 0;
    while at < N {
        words[at] = names[at].0;
        at += 1;
    }
    words
}

/// The bytes of the text with an invalid value, and the error.
pub(super) type ValueError = (Range<usize>, String);

pub(super) fn article(value: &DeValue<'_>) -> String {
    let name = value.type_str();
    let article = if name.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {name}")
}

pub(super) fn u64_of(integer: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Returns the allowed name that was probably meant, if one is similar.
pub(super) fn near(name: &str, allowed: &[String]) -> Option<String> {
    // A longer name is not a typing error of a known one.
    let short = &name[..name.floor_char_boundary(64)];
    let close = allowed
        .iter()
        .map(|allowed| (osa_distance(short, allowed.trim_matches(['[', ']'])), allowed))
        .filter(|(distance, _)| *distance <= 1 + name.len() / 5);
    close.min().map(|(_, near)| near.clone())
}

/// Formats 1000000 as TOML's `1_000_000`; numbers of up to four digits stay unchanged.
pub(super) fn group(value: u64) -> String {
    let digits = value.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        let _ = text.write_char(digit);
    }
    text
}

/// A field of [`Config`](super::Config) that a value is written to.
pub(super) enum FieldSlot<'a> {
    Int(&'a mut u64),
    Scaled(&'a mut Option<u64>),
    Text(&'a mut String),
    Word(&'a mut String),
    Choice(&'a mut Option<String>),
    Bool(&'a mut bool),
    List(&'a mut Vec<String>),
}

/// Returns the keys of a table that has one key for each role.
pub(super) const fn of_roles(
    section: &'static str,
    kind: Kind,
    docs: [&'static str; Role::ALL.len()],
    effect: Effect,
) -> [Key; Role::ALL.len()] {
    let mut keys = [Key { section, name: "", doc: "", kind, effect }; Role::ALL.len()];
    let mut at = 0;
    while at < keys.len() {
        keys[at].name = Role::ALL[at].name();
        keys[at].doc = docs[at];
        at += 1;
    }
    keys
}

pub(super) const fn count(parts: &[&[Key]]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < parts.len() {
        count += parts[at].len();
        at += 1;
    }
    count
}

/// Returns the keys of all tables in one list.
pub(super) const fn joined<const N: usize>(parts: &[&[Key]]) -> [Key; N] {
    let nothing = Key { section: "", name: "", doc: "", kind: Kind::Choice(), effect: Effect::Restart };
    let (mut keys, mut to, mut at) = ([nothing; N], 0, 0);
    while at < parts.len() {
        let mut from = 0;
        while from < parts[at].len() {
            keys[to] = parts[at][from];
            (to, from) = (to + 1, from + 1);
        }
        at += 1;
    }
    keys
}

/// Generates from one list of keys: the structs, their defaults, [`KEYS`], [`SECTIONS`] and the lookup of a field by its key. A
/// table with the line `each role` has a key for every role, in the field `of`.
macro_rules! settings {
    (
        top from $top_effect:ident {
            $( #[doc = $top_doc:literal] $top:ident: $top_kind:ident($($top_arg:expr),*), )*
        }
        $(
            #[doc = $section_doc:literal]
            $section:ident: $name:ident from $effect:ident {
                $( #[doc = $doc:literal] $field:ident: $kind:ident($($arg:expr),*) $(from $own_effect:ident)?, )*
                $( each role: $role_kind:ident($($role_arg:expr),*), $role_doc:path )?
            }
        )*
        tables {
            $( #[doc = $table_doc:literal] $table:ident: $row:ident from $declared:path, )*
        }
    ) => {
        /// The whole configuration. [`Config::load`] reads it; the default is that of a fresh home.
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
        pub struct Config {
            $( #[doc = $top_doc] pub $top: $crate::config::key::field_type!($top_kind), )*
            $( #[doc = $section_doc] pub $section: $name, )*
            $( #[doc = $table_doc] pub $table: Vec<$row>, )*
        }

        impl Default for Config {
            fn default() -> Config {
                Config {
                    $( $top: $crate::config::key::field_default!($top_kind($($top_arg),*)), )*
                    $( $section: $name::default(), )*
                    $( $table: Vec::new(), )*
                }
            }
        }

        $(
            #[doc = $section_doc]
            #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
            pub struct $name {
                $( #[doc = $doc] pub $field: $crate::config::key::field_type!($kind), )*
                $(
                    /// One value per role.
                    #[serde(flatten)]
                    pub of: $crate::role::PerRole<$crate::config::key::field_type!($role_kind)>,
                )?
            }

            impl Default for $name {
                fn default() -> $name {
                    $name {
                        $( $field: $crate::config::key::field_default!($kind($($arg),*)), )*
                        $( of: $crate::role::PerRole::<$crate::config::key::field_type!($role_kind)>::default(), )?
                    }
                }
            }
        )*

        impl Config {
            fn slot(&mut self, section: &str, name: &str) -> Option<$crate::config::key::FieldSlot<'_>> {
                use $crate::config::key::FieldSlot;
                Some(match (section, name) {
                    $( ("", stringify!($top)) => FieldSlot::$top_kind(&mut self.$top), )*
                    $(
                        $( (stringify!($section), stringify!($field)) => FieldSlot::$kind(&mut self.$section.$field), )*
                        $(
                            (stringify!($section), role) => {
                                FieldSlot::$role_kind(&mut self.$section.of[$crate::role::Role::named(role)?])
                            }
                        )?
                    )*
                    _ => return None,
                })
            }
        }

        /// Tables whose names a user chooses, in the order of the documentation.
        const NAMED: &[$crate::config::key::NamedTable] = &[$( $declared, )*];

        const BY_TABLE: &[&[$crate::config::key::Key]] = &[
            &[$( $crate::config::key::Key {
                section: "",
                name: stringify!($top),
                doc: $top_doc.trim_ascii(),
                kind: $crate::config::key::Kind::$top_kind($($top_arg),*),
                effect: $crate::config::key::Effect::$top_effect,
            }, )*],
            $(
                &[$( $crate::config::key::Key {
                    section: stringify!($section),
                    name: stringify!($field),
                    doc: $doc.trim_ascii(),
                    kind: $crate::config::key::Kind::$kind($($arg),*),
                    effect: $crate::config::key::own_effect!($effect $($own_effect)?),
                }, )*],
                $(
                    &$crate::config::key::of_roles(
                        stringify!($section),
                        $crate::config::key::Kind::$role_kind($($role_arg),*),
                        $role_doc,
                        $crate::config::key::Effect::$effect,
                    ),
                )?
            )*
        ];

        const ALL_KEYS: &[$crate::config::key::Key] =
            &$crate::config::key::joined::<{ $crate::config::key::count(BY_TABLE) }>(BY_TABLE);

        const ALL_SECTIONS: &[$crate::config::key::Section] = &[
            $crate::config::key::Section { name: "", doc: "" },
            $( $crate::config::key::Section { name: stringify!($section), doc: $section_doc.trim_ascii() }, )*
        ];
    };
}

macro_rules! own_effect {
    ($table:ident) => {
        $crate::config::key::Effect::$table
    };
    ($table:ident $own:ident) => {
        $crate::config::key::Effect::$own
    };
}

macro_rules! field_type {
    (Int) => { u64 };
    (Scaled) => { Option<u64> };
    (Text) => { String };
    (Word) => { String };
    (Choice) => { Option<String> };
    (Bool) => { bool };
    (List) => { Vec<String> };
}

macro_rules! field_default {
    (Int($default:expr, $min:expr, $max:expr)) => {
        $default
    };
    (Scaled($steps:expr, $min:expr, $max:expr)) => {
        None
    };
    (Text($default:expr)) => {
        String::from($default)
    };
    (Word($default:expr, $words:expr)) => {
        String::from($default)
    };
    (Choice()) => {
        None
    };
    (Bool($default:expr)) => {
        $default
    };
    (List($most:expr)) => {
        Vec::new()
    };
}

pub(super) use {field_default, field_type, own_effect, settings};

/// Every key, in the order of the file.
pub const KEYS: &[Key] = super::ALL_KEYS;

/// Every table, in the order of the file; the one without a name is the first.
pub const SECTIONS: &[Section] = super::ALL_SECTIONS;
