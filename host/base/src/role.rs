//! The roles: one for each kind of model call, each declared once, in a file of its own.
//!
//! A [`Declaration`] says what a role does, its prompt, what it is told, the form of its answer and its limits. The keys
//! of `config.toml`, the table of who is told what, `kiso role`, its completions and the documentation are made from
//! these, so a new role is a file here, a prompt in `roles/`, and its name in the list below.

mod actor;
mod cell;
mod eyes;
mod planner;
mod reasoner;
mod reviewer;
mod router;
mod schema;
mod summarizer;
mod titler;
mod worker;

pub use cell::Cell;
pub use planner::plan_schema;
pub use schema::{Lengths, MAX_WORD, TOO_MANY_RULES, skill_task};
pub use summarizer::{MAX_LEARNED, MOST_LEARNED, MOST_OUTDATED, facts_schema, learned_schema};

use kiso_plan::prompt::Piece;
use std::fmt;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// What there is to know about a role, but for its name.
#[derive(Debug)]
pub struct Declaration {
    /// What it does, as a sentence.
    pub does: &'static str,
    /// The prompt that is compiled in; `roles/NAME.md` in the home takes its place.
    pub prompt: &'static str,
    /// 0.0 to 2.0; `None` leaves it to the provider.
    pub temperature: Option<f32>,
    /// Tokens that its answer may have.
    pub max_tokens: u32,
    /// The JSON Schema of an answer of these lengths; `None` where that is text.
    pub schema: Option<fn(&Lengths) -> Value>,
    /// Its column of the table, in the order of [`TABLE`](kiso_plan::prompt::TABLE): the pieces that it is told, or writes. It is told no others.
    pub sees: &'static [(Piece, Cell)],
    /// When it is asked.
    pub duty: Duty,
    /// Whether it works or writes for the user, and so is told who it is: the home's SOUL.md, IDENTITY.md and AGENTS.md.
    pub guided: bool,
    /// Whether it decides what is said, and so is told when it works as a subagent.
    pub speaks: bool,
    /// Whether it writes the `msg` tasks that name it: with its own prompt, and told what it sees. A task that names
    /// another role has that role's model and no more.
    pub writes: bool,
}

/// When a role is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// For a message. A session that chooses a model chooses it for these.
    Message,
    /// Behind the reply, or to make room: nobody reads what it says as an answer.
    Background,
}

/// From one list: [`Role`] and its declarations. A role's name is that of its file.
macro_rules! roles {
    ($($role:ident in $file:ident,)*) => {
        /// One kind of model call, each with its own prompt and its own model.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Role {
            $($role,)*
        }

        impl Role {
            /// In the order of every listing.
            pub const ALL: [Self; [$(Self::$role),*].len()] = [$(Self::$role),*];

            /// The name in `config.toml`, in `roles/NAME.md` and in a task's `model`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$role => stringify!($file),)*
                }
            }

            /// What each does, in the order of [`Role::ALL`].
            pub const DOES: [&'static str; Self::ALL.len()] = [$($file::ROLE.does),*];

            /// "For the NAME.", for lists that have something for each.
            pub const FOR_EACH: [&'static str; Self::ALL.len()] = [$(concat!("For the ", stringify!($file), ".")),*];

            pub const fn declaration(self) -> &'static Declaration {
                match self {
                    $(Self::$role => &$file::ROLE,)*
                }
            }
        }
    };
}

roles! {
    Planner in planner,
    Reviewer in reviewer,
    Worker in worker,
    Summarizer in summarizer,
    Router in router,
    Reasoner in reasoner,
    Actor in actor,
    Titler in titler,
    Eyes in eyes,
}

impl Role {
    /// The role with this name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// "planner, reviewer, …", for messages.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// What the role has to do with a piece.
    pub fn cell(self, piece: Piece) -> Cell {
        let told = self.declaration().sees.iter().find(|(told, _)| *told == piece);
        told.map_or(Cell::No, |(_, cell)| *cell)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value for each role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PerRole<T>([T; Role::ALL.len()]);

impl<T> Index<Role> for PerRole<T> {
    type Output = T;

    fn index(&self, role: Role) -> &T {
        &self.0[role as usize]
    }
}

impl<T: Serialize> Serialize for PerRole<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Role::ALL.into_iter().zip(&self.0))
    }
}

impl<T> IndexMut<Role> for PerRole<T> {
    fn index_mut(&mut self, role: Role) -> &mut T {
        &mut self.0[role as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_order_of_the_table() {
        for role in Role::ALL {
            let places = role.declaration().sees.iter().map(|(piece, _)| *piece as usize);
            let places: Vec<_> = places.collect();
            assert!(places.is_sorted_by(|a, b| a < b), "{role}: {:?}", role.declaration().sees);
        }
    }

    #[test]
    fn a_declaration_is_fit_for_what_is_made_from_it() {
        for role in Role::ALL {
            let Declaration { does, prompt, temperature, max_tokens, schema, .. } = role.declaration();
            assert!(does.ends_with('.') && does.starts_with(char::is_uppercase), "{role}: {does:?} is no sentence");
            assert!(!prompt.trim().is_empty() && *max_tokens > 0, "{role}");
            assert!(temperature.is_none_or(|given| (0.0..=2.0).contains(&given)), "{role}");
            assert!(
                schema.is_none_or(|schema| schema(&Lengths::READ)["type"] == "object"),
                "{role}: providers take objects only"
            );
            assert!(role.name().bytes().all(|b| b.is_ascii_lowercase()), "{role} is a file's name and a key");
            assert_eq!(serde_json::to_value(role).unwrap(), role.name());
        }
        assert!(Role::Worker.declaration().writes, "it writes what no other role is named for");
    }
}
