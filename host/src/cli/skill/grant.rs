//! `kiso skill grant`: shows and changes an administrator's grants.

use super::open;
use crate::cli::show::printable;
use crate::cli::{Exit, Failure, Shared};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};
use kiso_sandbox::skill::grant::{Capabilities, FlagValues, Grant};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct GrantArgs {
    /// The skill
    name: String,
    /// Everything its manifest asks for; without a manifest, everything it imports
    #[arg(long, conflicts_with_all = ["none", "limits"])]
    all: bool,
    /// Nothing, not even /work
    #[arg(long, conflicts_with = "limits")]
    none: bool,
    #[command(flatten)]
    chosen: CapabilityFlags,
    /// Also the memory and time its manifest asks for
    #[arg(long)]
    limits: bool,
}

/// The options of the capabilities, as each declares them.
#[derive(Debug)]
struct CapabilityFlags(FlagValues);

impl clap::Args for CapabilityFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        Capabilities::flags().fold(command, |command, flag| {
            let arg = Arg::new(flag.name).long(flag.name).help(flag.help).conflicts_with_all(["all", "none"]);
            let arg = match flag.value {
                Some(value) => arg.value_name(value).action(ArgAction::Append),
                None => arg.action(ArgAction::SetTrue),
            };
            let arg = flag.requires.into_iter().fold(arg, |arg, other| arg.requires(other));
            command.arg(flag.conflicts_with.into_iter().fold(arg, |arg, other| arg.conflicts_with(other)))
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for CapabilityFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut chosen = FlagValues::default();
        for flag in Capabilities::flags() {
            if matches.value_source(flag.name) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values = match flag.value {
                Some(_) => matches.get_many::<String>(flag.name).into_iter().flatten().cloned().collect(),
                None => Vec::new(),
            };
            chosen.insert(flag.name, values);
        }
        Ok(Self(chosen))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl GrantArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, _) = open(shared)?;
        let skill = opened.skills.find(&self.name)?;
        let manifest = &skill.manifest;
        let mut grant = opened.skills.grant(&skill)?;
        if self.all {
            grant = Grant::all(manifest, &opened.config.engine);
        } else if self.none {
            grant = Grant::nothing();
        }
        let chosen = &self.chosen.0;
        let added = grant.add_chosen(&manifest.needs, manifest.name.as_str(), chosen);
        added.map_err(|why| Failure::new(Exit::Usage, why))?;
        if self.limits {
            grant.set_limits(manifest, &opened.config.engine, true);
        }
        if self.all || self.none || self.limits || !chosen.is_empty() {
            opened.skills.write_grant(skill.name(), &grant)?;
        }
        if shared.json {
            outln!("{}", json!({ "type": "grant", "skill": manifest.name.as_str(), "grant": grant.shown() }));
        } else {
            let text = grant.to_toml();
            let rules: Vec<&str> = text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).collect();
            outln!(
                "{}",
                if rules.is_empty() {
                    "nothing is granted beyond the defaults".to_owned()
                } else {
                    printable(&rules.join("\n"))
                }
            );
        }
        Ok(Exit::Done)
    }
}
