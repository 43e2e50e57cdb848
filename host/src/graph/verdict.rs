//! How a verdict is read from a reviewer's answer.

pub use kiso_plan::verdict::*;

use super::extract;
use super::fields::{Fields, MAX_SENTENCE};
use super::plan::{Catalog, Secrets, Unusable};

/// Reads a reviewer's answer. Injected tasks are checked like a plan's, except that none of them has to be a message;
/// at most `max_tasks` are taken.
pub fn parse(text: &str, catalog: &dyn Catalog, max_tasks: usize) -> Result<Verdict, Unusable> {
    let unusable = |violations| Unusable::new(text, String::new(), &Secrets::default(), violations);
    let map = extract::object(text, "status").map_err(|violation| unusable(vec![violation]))?;
    let mut violations = Vec::new();
    let mut fields = Fields::new(&map, String::new(), &mut violations);
    fields.only(&["status", "inject", "reason", "learn", "goal_met"]);
    let status = match fields.required("status", 100, "missing; it is ok, needs_fix or replan").as_str() {
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
        Some(status) if violations.is_empty() => Ok(Verdict { status, inject, reason, learn, goal_met }),
        _ => Err(unusable(violations)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::OneSkill;
    use super::*;

    fn complaint(text: &str) -> String {
        let unusable = parse(text, &OneSkill, 2).unwrap_err();
        unusable.violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_three_answers() {
        let ok = parse(r#"Fine. {"status": "ok", "goal_met": true, "learn": "x"}"#, &OneSkill, 2).unwrap();
        assert_eq!((ok.status, ok.goal_met, ok.learn.as_deref()), (Status::Ok, Some(true), Some("x")));
        let fix = r#"{"status": "needs_fix", "inject": [{"type": "skill", "skill": "chart", "args": {"file": "a"}}]}"#;
        let fix = parse(fix, &OneSkill, 2).unwrap();
        assert_eq!(fix.inject[0].args, Some(serde_json::json!({"file": "a", "width": 1000})));
        let replan = parse(r#"{"status": "replan", "reason": "no", "inject": []}"#, &OneSkill, 2).unwrap();
        assert_eq!(replan.reason.as_deref(), Some("no"));
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
