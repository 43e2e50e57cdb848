//! `kiso approval`: questions of runs that must be answered before they continue, and remembered answers.

mod explain;

use super::listing::{PageArgs, row, typed};
use super::show::{printable, printable_line};
use super::{Exit, Failure, Opened, Shared, block_on};
use clap::Subcommand;
use kiso_agent::drive::{AlwaysScope, CardReply, CardReplyError};
use kiso_base::clock::{minute, now_ms};
use kiso_base::home::SessionName;
use kiso_sandbox::skill::Quiet;
use kiso_store::store::{ApprovalLine, ApprovalRule, ApprovalState};
use serde_json::json;
use std::sync::Arc;

#[derive(Debug, Subcommand)]
pub(super) enum ApprovalCommand {
    /// List the approvals that runs are waiting for
    List {
        /// Also list answered, expired and withdrawn approvals
        #[arg(long)]
        all: bool,
        /// Only of this session
        #[arg(long, short, value_name = "NAME")]
        session: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show what an approval is about
    Show {
        /// Number of the approval
        id: i64,
    },
    /// Accept all of an approval, or some of its effects
    Accept {
        /// Number of the approval
        id: i64,
        /// Numbers of the effects to accept; the others are refused [default: all]
        effects: Vec<usize>,
        /// Also accept the same later without being asked: in this session, or for 30 days in every session
        #[arg(long, value_name = "HOW_LONG", value_parser = ["session", "30d"])]
        always: Option<String>,
    },
    /// Refuse all of an approval
    Refuse {
        /// Number of the approval
        id: i64,
        /// Never reach its hosts again, in this session or in any. For an approval that asks about hosts alone
        #[arg(long, value_name = "WHERE", value_parser = ["session", "everywhere"])]
        never: Option<String>,
    },
    /// Explain what a run was allowed and refused, and whose text decided it
    Explain(explain::ExplainArgs),
    /// List what is accepted without asking you (`--always`)
    Remembered {
        /// Only what is accepted in this session
        #[arg(long, short, value_name = "NAME")]
        session: Option<String>,
    },
    /// Ask again for what was accepted with `--always`
    Forget {
        /// Number in `kiso approval remembered`
        number: i64,
    },
}

impl ApprovalCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        let store = &opened.store;
        match self {
            Self::List { all, session, page } => {
                let (session, before) = (session_of(session)?, page.before_id()?);
                let found = store.read_blocking(|view| view.approvals(session.as_ref(), *all, before, page.limit))?;
                found.iter().for_each(|approval| tell(shared, approval));
                page.more(found.len(), found.last().map(|approval| approval.id));
            }
            Self::Show { id } => {
                let found = store.read_blocking(|view| view.approval(*id))?;
                let approval = found.ok_or_else(|| Failure::from(CardReplyError::Unknown(*id)))?;
                tell(shared, &approval);
                if !shared.json {
                    approval.card.lines().iter().for_each(|line| outln!("  {}", printable_line(line)));
                }
            }
            Self::Accept { id, effects, always } => {
                let accepted = (!effects.is_empty()).then(|| effects.clone());
                let always = always.as_deref().map(|always| match always {
                    "session" => AlwaysScope::Session,
                    _ => AlwaysScope::ThirtyDays,
                });
                answer(shared, &opened, *id, accepted, always)?;
            }
            Self::Refuse { id, never } => {
                let always = never.as_deref().map(|never| match never {
                    "session" => AlwaysScope::Session,
                    _ => AlwaysScope::ThirtyDays,
                });
                answer(shared, &opened, *id, Some(Vec::new()), always)?;
            }
            Self::Explain(args) => return args.execute(&opened, shared.json),
            Self::Remembered { session } => {
                let session = session_of(session)?;
                let rules = store.read_blocking(|view| view.approval_rules(session.as_ref(), now_ms()))?;
                rules.iter().for_each(|rule| tell_rule(shared, rule));
            }
            Self::Forget { number } => {
                let number = *number;
                if !store.write_blocking(move |tx| tx.forget_approval(number))? {
                    return Err(Failure::new(
                        Exit::Usage,
                        format!("there is no remembered decision {number}; `kiso approval remembered` lists them"),
                    ));
                }
                match shared.json {
                    true => outln!("{}", json!({ "type": "forgotten", "id": number })),
                    false => outln!("forgot {number}; you will be asked again"),
                }
            }
        }
        Ok(Exit::Done)
    }
}

fn session_of(name: &Option<String>) -> Result<Option<SessionName>, Failure> {
    Ok(name.as_deref().map(SessionName::parse).transpose()?)
}

fn answer(
    shared: &Shared,
    opened: &Opened,
    id: i64,
    accepted: Option<Vec<usize>>,
    always: Option<AlwaysScope>,
) -> Result<(), Failure> {
    let drive = opened.drive()?;
    let reply = CardReply { accepted, always, by: "command line".to_owned() };
    let answer = block_on(drive.answer_card(id, None, reply))??;
    let approval = opened.store.read_blocking(|view| view.approval(id))?;
    let approval = approval.ok_or_else(|| Failure::from(CardReplyError::Unknown(id)))?;
    if shared.json {
        outln!("{}", typed("approval", &approval));
        return Ok(());
    }
    let (count, most) = (answer.accepted.len(), approval.card.effects.len());
    let what = match count {
        0 => "nothing is accepted".to_owned(),
        all if all == most => "all is accepted".to_owned(),
        some => format!("{some} of {most} are accepted"),
    };
    outln!("{what}; the daemon goes on with run {run}, or `kiso run --resume {run}`", run = approval.run);
    Ok(())
}

fn tell(shared: &Shared, approval: &ApprovalLine) {
    if shared.json {
        return outln!("{}", typed("approval", approval));
    }
    let state = match (approval.state, &approval.answer) {
        (ApprovalState::Pending, _) => format!("until {}", minute(approval.card.expires_ms)),
        (ApprovalState::Answered, Some(answer)) => {
            format!("accepted {} of {}", answer.accepted.len(), approval.card.effects.len())
        }
        (state, _) => state.as_str().to_owned(),
    };
    let effects = approval.card.effects.iter().map(|effect| format!("{}, {}", effect.tool, effect.destination()));
    row(
        &format!("{}  {}  {}  {state}", approval.id, approval.session, approval.run),
        &effects.collect::<Vec<_>>().join("; "),
    );
}

fn tell_rule(shared: &Shared, rule: &ApprovalRule) {
    if shared.json {
        return outln!("{}", typed("remembered", rule));
    }
    let place =
        rule.session.as_ref().map_or_else(|| "every session".to_owned(), |session| format!("session {session}"));
    let until = rule.until_ms.map(|until| format!(", until {}", minute(until))).unwrap_or_default();
    let access = rule.access.iter().map(|access| {
        let hosts = access.hosts.iter().map(|to| format!("{} to {}", to.methods.join("/"), to.host));
        let secrets = access.secrets.iter().map(|name| format!("secret {name}"));
        let what: Vec<_> = hosts.chain(secrets).collect();
        if what.is_empty() { "any call".to_owned() } else { what.join(", ") }
    });
    let access = access.collect::<Vec<_>>().join("; ");
    row(&format!("{}  {place}{until}", rule.id), &printable(&format!("{}: {access}", rule.tool)));
}

/// Parses numbers of effects: "1,3" or "1 3"; `None` for other text.
pub(super) fn numbers(text: &str) -> Option<Vec<usize>> {
    let words = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    let numbers: Vec<usize> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    (!numbers.is_empty()).then_some(numbers)
}
