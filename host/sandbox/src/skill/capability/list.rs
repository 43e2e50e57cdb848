//! The code that is generated from the list of capabilities, and the plain types that it uses.

use super::super::wit::{self, ImportSpec};
use std::collections::{BTreeMap, BTreeSet};

/// The documentation of a capability.
#[derive(Debug, Clone, Copy)]
pub struct Doc {
    /// A short description of its purpose.
    pub about: &'static str,
    /// The need of a manifest for it, in TOML; empty if every skill has it.
    pub asked: &'static str,
}

/// An option of `kiso skill grant`.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    pub name: &'static str,
    /// The name of its value; `None` if it has no value.
    pub value: Option<&'static str>,
    pub help: &'static str,
    /// Another option that this one requires.
    pub requires: Option<&'static str>,
    /// Another option that contradicts this one.
    pub conflicts_with: Option<&'static str>,
}

/// The options of `kiso skill grant` that were given, each with its values.
#[derive(Debug, Clone, Default)]
pub struct FlagValues(BTreeMap<&'static str, Vec<String>>);

impl FlagValues {
    pub fn insert(&mut self, flag: &'static str, values: Vec<String>) {
        self.0.insert(flag, values);
    }

    pub fn has(&self, flag: &str) -> bool {
        self.0.contains_key(flag)
    }

    pub fn values(&self, flag: &str) -> &[String] {
        self.0.get(flag).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A skill that was granted a capability, and the permissions in words.
pub(crate) type SkillAccess = (String, Vec<String>);

/// A row of the documentation's table.
pub(super) fn row(name: &str, doc: Doc, imports: &[ImportSpec], flags: &[Flag]) -> String {
    // WASI has many interfaces, which are documented elsewhere.
    let imported: BTreeSet<String> = imports
        .iter()
        .map(|i| format!("`{}@{}`", if i.world == wit::SKILL { i.interface } else { i.world }, i.version))
        .collect();
    let imported = imported.into_iter().collect::<Vec<_>>().join(", ");
    let asked = if doc.asked.is_empty() { "every skill has it".to_owned() } else { format!("`{}`", doc.asked) };
    let flags: Vec<String> = flags
        .iter()
        .map(|flag| match flag.value {
            Some(value) => format!("`--{} {value}`", flag.name),
            None => format!("`--{}`", flag.name),
        })
        .collect();
    format!("| {name} | {} | {imported} | {asked} | {} |\n", doc.about, flags.join(", "))
}

/// For `skip_serializing_if`.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Makes the types that have a field for each capability, and the functions that visit all of them.
macro_rules! capabilities {
    (
        $(#[doc = $about_granted:literal])*
        granted { $($(#[serde($($written:tt)*)])* $granted:ident: $Grantable:ident,)* }
        $(#[doc = $about_open:literal])*
        open { $($open:ident: $Open:ident,)* }
    ) => {
        /// The capabilities of a call, as listed.
        pub struct Capabilities {
            $(pub(in crate::skill) $granted: $Grantable,)*
            $(pub(in crate::skill) $open: $Open,)*
        }

        impl Capabilities {
            /// Every interface that a component may import.
            pub(in crate::skill) fn imports() -> impl Iterator<Item = &'static ImportSpec> {
                let all: [&'static [ImportSpec]; _] = [$($Grantable::IMPORTS,)* $($Open::IMPORTS,)*];
                all.into_iter().flatten()
            }

            /// Defines the functions of all capabilities.
            pub(in crate::skill) fn link<T: GuestState>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
                // The second group comes first: files replace some functions of WASI.
                $($Open::link(linker, |state| &mut state.capabilities().$open)?;)*
                $($Grantable::link(linker, |state| &mut state.capabilities().$granted)?;)*
                Ok(())
            }

            /// Defines the functions of WASI 0.3 of all capabilities.
            pub(in crate::skill) fn link_wasi_0_3<T: GuestState>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
                $($Open::link_wasi_0_3(linker)?;)*
                $($Grantable::link_wasi_0_3(linker)?;)*
                Ok(())
            }

            /// Prepares each capability for a call.
            pub(in crate::skill) fn prepare(call: &CallInput<'_>, allowed: &EffectiveGrant, hit: &HitCell) -> Result<Self, SkillError> {
                Ok(Self {
                    $($granted: $Grantable::prepare(call, &allowed.$granted, hit)?,)*
                    $($open: $Open::prepare(call, &(), hit)?,)*
                })
            }

            /// Adds their parts of WASI.
            pub(in crate::skill) fn show(&self, wasi: &mut WasiCtxBuilder) -> Result<(), String> {
                $(self.$granted.show(wasi)?;)*
                $(self.$open.show(wasi)?;)*
                Ok(())
            }

            /// Returns the use of each granted capability.
            pub(in crate::skill) fn used(&self) -> GrantUse {
                GrantUse::from([$((stringify!($granted), self.$granted.used()),)*])
            }

            /// The options of `kiso skill grant`.
            pub fn flags() -> impl Iterator<Item = &'static Flag> {
                let all: [&'static [Flag]; _] = [$($Grantable::FLAGS,)* ask::FLAGS];
                all.into_iter().flatten()
            }

            /// The lines of `kiso doctor`: each has a name, the parts that the machine has, and who was granted some of it, or
            /// why it cannot work here.
            pub fn doctor(skills: &[(String, EffectiveGrant)]) -> Vec<(&'static str, Result<String, String>)> {
                let mut lines = Vec::new();
                $(lines.push((stringify!($granted), $Grantable::check(), {
                    let of = skills.iter().map(|(skill, allowed)| (skill.clone(), $Grantable::access(&allowed.$granted)));
                    of.filter(|(_, what)| !what.is_empty()).collect::<Vec<SkillAccess>>()
                }));)*
                $(lines.push((stringify!($open), $Open::check(), Vec::new()));)*
                lines.into_iter().filter_map(|(name, check, access)| Some((name, list::line(check, &access)?))).collect()
            }

            /// The table of docs/skills.md, as Markdown.
            pub fn table() -> String {
                let mut table = String::from(
                    "| capability | a skill can | imports | in `[kiso.skill.needs]` | `kiso skill grant` |\n|---|---|---|---|---|\n",
                );
                $(table += &list::row(stringify!($granted), $Grantable::DOC, $Grantable::IMPORTS, $Grantable::FLAGS);)*
                $(table += &list::row(stringify!($open), $Open::DOC, $Open::IMPORTS, &[]);)*
                table
            }
        }

        impl std::fmt::Debug for Capabilities {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct("Capabilities").finish_non_exhaustive()
            }
        }

        /// The capabilities that a skill asks for. An administrator must grant each of them, except the workspace.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Needs {
            /// More than the default memory, in MiB.
            pub memory_mib: Option<u64>,
            /// More than the default time, in seconds.
            pub timeout_s: Option<u64>,
            $(pub $granted: <$Grantable as Grantable>::Need,)*
        }

        impl Needs {
            /// The needs of a component without a manifest, from its imports.
            pub fn implied(imports: &[String]) -> Self {
                let imported = |by: &[&str]| {
                    imports.iter().any(|import| by.contains(&import.split('@').next().unwrap_or_default()))
                };
                let mut needs = Self::default();
                $(if imported($Grantable::IMPLIED_BY) {
                    needs.$granted = $Grantable::implied();
                })*
                needs
            }

            /// The text of a manifest's `[kiso.skill.needs]`.
            pub fn to_toml(&self) -> String {
                let mut text = String::from("[kiso.skill.needs]\n");
                $(text += &$Grantable::to_toml(&self.$granted);)*
                text
            }

            /// The grant that covers it.
            pub fn asked(&self) -> Grant {
                Grant {
                    memory_mib: self.memory_mib,
                    timeout_s: self.timeout_s,
                    $($granted: $Grantable::asked(&self.$granted),)*
                    ask: AskGrant::default(),
                }
            }

            /// The form for programs, also if every skill gets as much.
            pub fn json(&self) -> Map<String, Value> {
                let mut json = Map::new();
                $($Grantable::need_json(stringify!($granted), &self.$granted, &mut json);)*
                json
            }
        }

        /// `[kiso.skill.needs]` as written in a file.
        #[derive(serde::Deserialize, Default)]
        #[serde(deny_unknown_fields)]
        pub(super) struct NeedsTable {
            $($(#[serde($($written)*)])* #[serde(default)] $granted: <$Grantable as Grantable>::Toml,)*
            memory_mib: Option<Spanned<u64>>,
            timeout_s: Option<Spanned<u64>>,
        }

        impl NeedsTable {
            /// Checks everything that does not depend on the configuration. An error is a byte of the manifest and a message.
            pub(super) fn check(self, declared: &[&str]) -> Result<Needs, (usize, String)> {
                let at_least_one = |value: Option<Spanned<u64>>, key: &str| match value {
                    Some(v) if *v.get_ref() == 0 => Err((v.span().start, format!("`{key}` must be at least 1"))),
                    value => Ok(value.map(Spanned::into_inner)),
                };
                Ok(Needs {
                    memory_mib: at_least_one(self.memory_mib, "memory_mib")?,
                    timeout_s: at_least_one(self.timeout_s, "timeout_s")?,
                    $($granted: $Grantable::check_need(self.$granted, declared)?,)*
                })
            }
        }

        /// A grant as written in its file.
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Grant {
            /// Memory in MiB beyond the default.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            pub memory_mib: Option<u64>,
            /// Time in seconds beyond the default.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            pub timeout_s: Option<u64>,
            $(#[serde(skip_serializing_if = "list::is_default", default)]
            pub $granted: <$Grantable as Grantable>::Grant,)*
            /// The access that needs the approval of a person.
            #[serde(skip_serializing_if = "list::is_default", default)]
            pub ask: AskGrant,
        }

        impl Grant {
            /// Checks the content of a grant's file.
            pub fn check(&self) -> Result<(), String> {
                $($Grantable::check_grant(&self.$granted)?;)*
                self.ask.check(&self.http, &self.secrets)
            }

            /// The part of these needs that `granted` does not cover.
            pub fn beyond(&self, granted: &Self) -> Self {
                let more = |asked: Option<u64>, granted: Option<u64>| asked.filter(|a| granted.is_none_or(|g| *a > g));
                Self {
                    memory_mib: more(self.memory_mib, granted.memory_mib),
                    timeout_s: more(self.timeout_s, granted.timeout_s),
                    $($granted: $Grantable::beyond(&self.$granted, &granted.$granted),)*
                    ask: AskGrant::default(),
                }
                .not_asked_for(&granted.ask)
            }

            /// Leaves out what is granted with "ask" already.
            fn not_asked_for(mut self, ask: &AskGrant) -> Self {
                self.http = OutgoingHttp::beyond(&self.http, &ask.http);
                self.secrets = ReadableSecrets::beyond(&self.secrets, &ask.secrets);
                self
            }

            /// The part that `other` does not contain.
            pub fn without(&self, other: &Self) -> Self {
                Self {
                    memory_mib: self.memory_mib.filter(|_| other.memory_mib.is_none()),
                    timeout_s: self.timeout_s.filter(|_| other.timeout_s.is_none()),
                    $($granted: $Grantable::without(&self.$granted, &other.$granted),)*
                    ask: self.ask.clone(),
                }
            }

            /// The part of this grant that would have been enough for the recorded calls. `memory_mib` and `timeout_s` are the
            /// needed limits. Limits that every skill gets anyway are not granted.
            pub fn least(&self, needs: &Needs, used: &SkillUse, memory_mib: Option<u64>, timeout_s: Option<u64>) -> Self {
                let least = |granted: Option<u64>, needed: Option<u64>| granted.zip(needed).map(|(granted, needed)| granted.min(needed));
                let of = |capability| usage::of_capability(used, capability);
                Self {
                    memory_mib: least(self.memory_mib, memory_mib),
                    timeout_s: least(self.timeout_s, timeout_s),
                    $($granted: $Grantable::least(&self.$granted, &needs.$granted, &of(stringify!($granted))),)*
                    ask: self.ask.clone(),
                }
            }

            /// Adds a host or secret to one capability. Returns an error if `skill` does not ask for it.
            pub fn add(&mut self, needs: &Needs, skill: &str, capability: &str, name: &str) -> Result<(), String> {
                let added = match capability {
                    $(stringify!($granted) => $Grantable::add(&mut self.$granted, &needs.$granted, name, skill),)*
                    other => {
                        let known = [$(concat!("`", stringify!($granted), "`"),)*].join(", ");
                        Err(format!("`{other}` is no capability that is granted; there are {known}"))
                    }
                };
                self.ask.give_way(&self.http, &self.secrets);
                added
            }

            /// Adds the values of the options of `kiso skill grant`.
            pub fn add_chosen(&mut self, needs: &Needs, skill: &str, chosen: &FlagValues) -> Result<(), String> {
                // The last option wins: access with "ask" replaces access without.
                self.http.retain(|open| !chosen.values("ask-host").contains(&open.host));
                self.secrets.retain(|name| !chosen.values("ask-secret").contains(name));
                $($Grantable::add_chosen(&mut self.$granted, &needs.$granted, chosen, skill)?;)*
                self.ask.give_way(&self.http, &self.secrets);
                self.ask.add_chosen(needs, chosen, skill)?;
                self.ask.check(&self.http, &self.secrets)
            }

            /// The permissions, each a line that completes "It asks to".
            pub fn lines(&self) -> Vec<String> {
                let mut lines = Vec::new();
                $(lines.extend($Grantable::lines(&self.$granted));)*
                lines.extend(self.ask.lines());
                lines.extend(self.memory_mib.map(|mib| format!("use {mib} MiB of memory")));
                lines.extend(self.timeout_s.map(|seconds| format!("run for {seconds} s")));
                lines
            }

            /// The form for programs.
            pub fn json(&self) -> Map<String, Value> {
                let mut json = Map::new();
                $($Grantable::grant_json(stringify!($granted), &self.$granted, &mut json);)*
                self.ask.json(&mut json);
                json
            }
        }

        /// The access of a call: the overlap of manifest and grant.
        #[derive(Debug, Clone, Default)]
        pub struct EffectiveGrant {
            pub memory_mib: u64,
            pub timeout_s: u64,
            $(pub $granted: <$Grantable as Capability>::Allowed,)*
            /// The access that it gets only after a person has approved it.
            pub ask: AskEffective,
        }

        impl EffectiveGrant {
            /// The overlap with these limits.
            pub fn overlap(needs: &Needs, grant: &Grant, memory_mib: u64, timeout_s: u64) -> Self {
                Self {
                    memory_mib,
                    timeout_s,
                    $($granted: $Grantable::allow(&needs.$granted, &grant.$granted),)*
                    ask: grant.ask.allow(needs),
                }
            }

            /// The permissions, one per line.
            pub fn lines(&self) -> Vec<String> {
                let mut lines = Vec::new();
                $(lines.extend($Grantable::summary(&self.$granted));)*
                lines.extend(self.ask.lines());
                lines.push(format!("memory: {} MiB, time: {} s", self.memory_mib, self.timeout_s));
                lines
            }

            /// The form for programs.
            pub fn json(&self) -> Value {
                let mut json = json!({
                    $(stringify!($granted): $Grantable::allowed_json(&self.$granted),)*
                    "memory_mib": self.memory_mib,
                    "timeout_s": self.timeout_s,
                });
                self.ask.json(&mut json);
                json
            }
        }
    };
}

pub(super) use capabilities;

/// A line of `kiso doctor`; `None` if there is nothing to report.
pub(super) fn line(check: Option<Result<String, String>>, access: &[SkillAccess]) -> Option<Result<String, String>> {
    let said = match check {
        Some(Err(why)) => return Some(Err(why)),
        Some(Ok(said)) => Some(said),
        None => None,
    };
    let granted = access.iter().map(|(skill, what)| format!("{skill}: {}", what.join(", ")));
    let parts: Vec<String> = said.into_iter().chain(granted).collect();
    (!parts.is_empty()).then(|| Ok(parts.join("; ")))
}
