//! `kiso skill audit`.

use super::open;
use crate::cli::listing::typed;
use crate::cli::show::printable_line;
use crate::cli::{Exit, Failure, Shared};
use kiso_base::clock::minute;
use kiso_plan::report::size;
use kiso_sandbox::skill::AuditView;
use kiso_store::store::SkillUse;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    /// The skill, a component
    name: String,
    /// Reduce its grant to the permissions that its calls have used so far; this never adds permissions
    #[arg(long)]
    tighten: bool,
}

impl AuditArgs {
    pub(crate) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let (opened, _) = open(shared)?;
        let skill = opened.skills.find(&self.name)?;
        if self.tighten {
            let changed = opened.skills.tighten(&skill)?;
            if shared.json {
                outln!("{}", json!({ "type": "tightened", "skill": skill.name(), "changes": changed }));
            } else if changed.is_empty() {
                outln!("{} needs everything that it is allowed; nothing changed", skill.name());
            } else {
                outln!("{} is allowed less now:", skill.name());
                lines(&changed);
            }
            return Ok(Exit::Done);
        }
        let audit = opened.skills.audit(&skill)?;
        if shared.json {
            outln!("{}", typed("audit", &audit));
        } else {
            print(&audit);
        }
        Ok(Exit::Done)
    }
}

fn print(audit: &AuditView) {
    outln!("{} {}  sha256 {}", audit.skill, printable_line(&audit.version), audit.digest);
    outln!("\nimports:");
    lines(&audit.imports);
    outln!("\nasks to, beyond what every skill gets:");
    or_nothing(&audit.asks);
    outln!("\nallowed:");
    lines(&audit.allowed);
    let Some(used) = &audit.used else {
        outln!("\nno call of it was recorded yet, so nothing says what it needs");
        return;
    };
    print_used(used);
    if audit.narrower.is_empty() {
        outln!("\nnothing less would have done for these calls");
    } else {
        outln!("\nless would have done for these calls:");
        lines(&audit.narrower);
        outln!("`kiso skill audit {} --tighten` allows only that", audit.skill);
    }
}

fn print_used(used: &SkillUse) {
    let failed = if used.failed > 0 { format!(", {} of them failed", used.failed) } else { String::new() };
    let calls = if used.calls == 1 { "1 call".to_owned() } else { format!("{} calls", used.calls) };
    outln!("\nused in {calls} from {} to {}{failed}:", minute(used.first_ms), minute(used.last_ms));
    for thing in &used.things {
        let what = match thing.is_more() {
            true => "more than are kept".to_owned(),
            false => format!("{} {}", thing.how, thing.name),
        };
        outln!("  {}: {} (in {})", thing.capability, printable_line(&what), thing.calls);
    }
    outln!(
        "  memory: at most {}, time: at most {} ms, {} ms in total, written: at most {}",
        size(used.memory_bytes),
        used.longest_ms,
        used.total_ms,
        size(used.written_bytes)
    );
}

fn or_nothing(all: &[String]) {
    if all.is_empty() {
        outln!("  nothing");
    }
    lines(all);
}

fn lines(all: &[String]) {
    all.iter().for_each(|line| outln!("  {}", printable_line(line)));
}
