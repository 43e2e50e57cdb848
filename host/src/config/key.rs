//! What is known about a key, and the macro that makes structs and list from one text.

use std::fmt::Write;

/// A key of `config.toml`.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The table it stands in; empty at the top.
    pub section: &'static str,
    pub name: &'static str,
    /// One or more sentences.
    pub doc: &'static str,
    pub kind: Kind,
}

/// The type of a key, with its default.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Default, least and greatest value.
    Int(u64, u64, u64),
    Text(&'static str),
    /// Default, and the words that there are.
    Word(&'static str, &'static [&'static str]),
    /// A text that may be absent, and is by default.
    Choice(),
    Bool(bool),
    /// Texts, none by default; the number is the most that there may be.
    List(usize),
}

/// A table of `config.toml`; the first has no name and stands for the keys at the top.
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

    /// "integer", "boolean", "string" or "list of strings".
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Int(..) => "integer",
            Kind::Text(_) | Kind::Word(..) | Kind::Choice() => "string",
            Kind::Bool(_) => "boolean",
            Kind::List(_) => "list of strings",
        }
    }

    /// The default as it would stand in the file. A text that is absent by default is `""` here.
    pub fn default_value(&self) -> String {
        match self.kind {
            Kind::Int(default, ..) => group(default),
            Kind::Text(default) | Kind::Word(default, _) => format!("{default:?}"),
            Kind::Choice() => "\"\"".to_owned(),
            Kind::Bool(default) => default.to_string(),
            Kind::List(_) => "[]".to_owned(),
        }
    }

    /// Least and greatest value, such as "1 to 20", or the words that are allowed.
    pub fn range(&self) -> Option<String> {
        match self.kind {
            Kind::Int(_, min, max) => Some(format!("{} to {}", group(min), group(max))),
            Kind::Word(_, words) => Some(words.join(", ")),
            _ => None,
        }
    }
}

/// 1000000 as TOML's `1_000_000`; four digits are left as they are.
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

/// A place in [`Config`](super::Config) that a value goes to.
pub(super) enum Slot<'a> {
    Int(&'a mut u64),
    Text(&'a mut String),
    Word(&'a mut String),
    Choice(&'a mut Option<String>),
    Bool(&'a mut bool),
    List(&'a mut Vec<String>),
}

/// From one list of keys: the structs, their defaults, [`KEYS`], [`SECTIONS`] and the way
/// from a key's name to its field.
macro_rules! settings {
    (
        top {
            $( #[doc = $top_doc:literal] $top:ident: $top_kind:ident($($top_arg:expr),*), )*
        }
        $(
            #[doc = $section_doc:literal]
            $section:ident: $name:ident {
                $( #[doc = $doc:literal] $field:ident: $kind:ident($($arg:expr),*), )*
            }
        )*
    ) => {
        /// The whole configuration. Made by [`Config::load`]; the default is that of a fresh home.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Config {
            $( #[doc = $top_doc] pub $top: $crate::config::key::field_type!($top_kind), )*
            $( #[doc = $section_doc] pub $section: $name, )*
            /// Directories of this machine that exec tasks see.
            pub mounts: Vec<$crate::config::Mount>,
            /// Where models are reached, in the order of the file: the first serves model strings without a prefix.
            pub providers: Vec<$crate::config::Provider>,
            /// What is known about single models.
            pub model_settings: Vec<$crate::config::ModelSettings>,
            /// Workflows, in the order of the file.
            pub pills: Vec<$crate::config::Pill>,
            /// What `/help` lists, in the order of the file; none for the commands of kiso.
            pub commands: Vec<$crate::config::Command>,
            /// Who is told of replies, in the order of the file.
            pub webhooks: Vec<$crate::config::Webhook>,
        }

        impl Default for Config {
            fn default() -> Config {
                Config {
                    $( $top: $crate::config::key::field_default!($top_kind($($top_arg),*)), )*
                    $( $section: $name::default(), )*
                    mounts: Vec::new(),
                    providers: Vec::new(),
                    model_settings: Vec::new(),
                    pills: Vec::new(),
                    commands: Vec::new(),
                    webhooks: Vec::new(),
                }
            }
        }

        $(
            #[doc = $section_doc]
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $name {
                $( #[doc = $doc] pub $field: $crate::config::key::field_type!($kind), )*
            }

            impl Default for $name {
                fn default() -> $name {
                    $name { $( $field: $crate::config::key::field_default!($kind($($arg),*)), )* }
                }
            }
        )*

        impl Config {
            fn slot(&mut self, section: &str, name: &str) -> Option<$crate::config::key::Slot<'_>> {
                use $crate::config::key::Slot;
                Some(match (section, name) {
                    $( ("", stringify!($top)) => Slot::$top_kind(&mut self.$top), )*
                    $( $( (stringify!($section), stringify!($field)) => Slot::$kind(&mut self.$section.$field), )* )*
                    _ => return None,
                })
            }

            /// The value that is in force: an integer, a boolean, a string, a list of strings, or null for none.
            pub fn value(&self, key: &$crate::config::Key) -> serde_json::Value {
                match (key.section, key.name) {
                    $( ("", stringify!($top)) => self.$top.clone().into(), )*
                    $( $( (stringify!($section), stringify!($field)) => self.$section.$field.clone().into(), )* )*
                    _ => serde_json::Value::Null,
                }
            }
        }

        const ALL_KEYS: &[$crate::config::key::Key] = &[
            $( $crate::config::key::Key {
                section: "",
                name: stringify!($top),
                doc: $top_doc.trim_ascii(),
                kind: $crate::config::key::Kind::$top_kind($($top_arg),*),
            }, )*
            $( $( $crate::config::key::Key {
                section: stringify!($section),
                name: stringify!($field),
                doc: $doc.trim_ascii(),
                kind: $crate::config::key::Kind::$kind($($arg),*),
            }, )* )*
        ];

        const ALL_SECTIONS: &[$crate::config::key::Section] = &[
            $crate::config::key::Section { name: "", doc: "" },
            $( $crate::config::key::Section { name: stringify!($section), doc: $section_doc.trim_ascii() }, )*
        ];
    };
}

macro_rules! field_type {
    (Int) => { u64 };
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

pub(super) use {field_default, field_type, settings};

/// Every key, in the order of the file.
pub const KEYS: &[Key] = super::ALL_KEYS;

/// Every table, in the order of the file; the one without a name comes first.
pub const SECTIONS: &[Section] = super::ALL_SECTIONS;
