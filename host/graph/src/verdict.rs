//! Parses the verdict in a reviewer's answer.

use super::extract;
use super::fields::{Fields, MAX_SENTENCE};
use super::plan::{Secrets, Unusable};
use kiso_plan::plan::{Catalog, Violation};
use kiso_plan::verdict::{Status, Verdict};

/// The status of an answer that requests a file.
const LOOK: &str = "look";

/// A reviewer's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Review {
    Verdict(Verdict),
    /// It requests this file first.
    Look(String),
}

/// Parses a reviewer's answer. Injected tasks are validated like those of a plan, except that none needs to be a message; at most
/// `max_tasks` are allowed. Only a reviewer for whom `may_look` is true can request a file before its verdict.
pub fn parse(text: &str, catalog: &dyn Catalog, max_tasks: usize, may_look: bool) -> Result<Review, Unusable> {
    let unusable = |violations| Unusable::new(text, String::new(), &Secrets::default(), violations);
    let map = extract::object(text, "status").map_err(|violation| unusable(vec![violation]))?;
    let mut violations = Vec::new();
    let mut fields = Fields::new(&map, String::new(), &mut violations);
    fields.only(&["status", "file", "inject", "reason", "learn", "goal_met", "blocked"]);
    let status = fields.word("status", "missing; it is ok, needs_fix or replan");
    if status == LOOK {
        match fields.text("file", MAX_SENTENCE) {
            Some(path) if may_look && violations.is_empty() => return Ok(Review::Look(path)),
            _ if !may_look => violations.push(Violation::new("status", "no further file can be seen; decide now")),
            _ => violations.push(Violation::new("file", "missing; with look it names one of the listed files")),
        }
        return Err(unusable(violations));
    }
    let status = match status.as_str() {
        "ok" => Some(Status::Ok),
        "needs_fix" => Some(Status::NeedsFix),
        "replan" => Some(Status::Replan),
        "" => None,
        other => {
            fields.wrong("status", format!("{other:?} is not a status; it is ok, needs_fix or replan"));
            None
        }
    };
    let reason = fields.text("reason", MAX_SENTENCE);
    let learn = fields.text("learn", MAX_SENTENCE);
    let blocked = fields.text("blocked", MAX_SENTENCE);
    let goal_met = fields.flag("goal_met");
    let given = fields.get("inject").and_then(|list| list.as_array()).map_or(0, Vec::len);
    let inject = fields.tasks("inject", max_tasks, catalog);
    match status {
        Some(Status::NeedsFix) if given == 0 => {
            fields.wrong("inject", "missing; with needs_fix it lists the tasks that put it right");
        }
        Some(Status::Ok | Status::Replan) if given > 0 => {
            fields.wrong("inject", "only needs_fix injects tasks");
        }
        Some(Status::Replan) if reason.is_none() => {
            fields.wrong("reason", "missing; with replan it says why local fixes are not enough");
        }
        _ => {}
    }
    match status {
        Some(status) if violations.is_empty() => {
            Ok(Review::Verdict(Verdict { status, inject, reason, learn, goal_met, blocked }))
        }
        _ => Err(unusable(violations)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::OneSkill;

    fn verdict(text: &str) -> Verdict {
        match parse(text, &OneSkill, 2, false).unwrap() {
            Review::Verdict(verdict) => verdict,
            Review::Look(path) => panic!("{path}"),
        }
    }

    fn complaint(text: &str) -> String {
        let unusable = parse(text, &OneSkill, 2, false).unwrap_err();
        unusable.violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_three_answers() {
        for said in ["OK", "Ok", " ok "] {
            let text = format!("```json\n{{\"status\": \"{said}\"}}\n```");
            assert_eq!(verdict(&text).status, Status::Ok, "{said}");
        }
        for said in ["Needs Fix", "needs-fix"] {
            assert!(complaint(&format!(r#"{{"status": "{said}"}}"#)).contains("with needs_fix it lists"), "{said}");
        }
        let ok = verdict(r#"Fine. {"status": "ok", "goal_met": true, "learn": "x"}"#);
        assert_eq!((ok.status, ok.goal_met, ok.learn.as_deref()), (Status::Ok, Some(true), Some("x")));
        let fix = r#"{"status": "needs_fix", "inject": [{"type": "skill", "skill": "chart", "args": {"file": "a"}}]}"#;
        let fix = verdict(fix);
        assert_eq!(fix.inject[0].args, Some(serde_json::json!({"file": "a", "width": 1000})));
        let replan = verdict(r#"{"status": "replan", "reason": "no", "inject": [], "blocked": "no tool"}"#);
        assert_eq!((replan.reason.as_deref(), replan.blocked.as_deref()), (Some("no"), Some("no tool")));
    }

    #[test]
    fn a_reviewer_may_look_at_a_file_as_often_as_it_is_let() {
        let wish = r#"{"status": "look", "file": "pub/a.md"}"#;
        assert_eq!(parse(wish, &OneSkill, 2, true).unwrap(), Review::Look("pub/a.md".to_owned()));
        assert!(complaint(wish).contains("decide now"), "{}", complaint(wish));
        let nothing = parse(r#"{"status": "look"}"#, &OneSkill, 2, true).unwrap_err();
        assert_eq!(nothing.violations[0].path, "file");
    }

    #[test]
    fn what_is_refused() {
        for (text, expected) in [
            ("fine", "there is no JSON object"),
            ("{}", "status: missing"),
            (r#"{"status": "great"}"#, "status: \"great\" is not a status"),
            (r#"{"status": "replan"}"#, "reason: missing"),
            (r#"{"status": "needs_fix"}"#, "inject: missing"),
            (r#"{"status": "ok", "inject": [{"type": "msg", "detail": "x"}]}"#, "inject: only needs_fix"),
            (r#"{"status": "needs_fix", "inject": [{"type": "exec"}]}"#, "inject[0].detail: missing"),
            (r#"{"status": "needs_fix", "inject": [1, 2, 3]}"#, "inject: has 3 tasks, at most 2"),
            (r#"{"status": "ok", "goal_met": "yes", "score": 1}"#, "score: unknown field"),
        ] {
            assert!(complaint(text).contains(expected), "{text}: {}", complaint(text));
        }
    }
}
