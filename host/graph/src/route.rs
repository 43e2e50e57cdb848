//! Routing: the effort for a message, and its tools. The fast path and other cues only depend on the text; the rest comes from
//! the router's model.

use super::extract;
use super::fields::{Fields, MAX_SENTENCE};
use super::plan::{Secrets, Unusable};
use kiso_plan::clip::clip;
use kiso_plan::cues::durable;
use kiso_plan::effort::Effort;
use kiso_plan::plan::Violation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who decided about the effort for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoutedBy {
    Router,
    /// Short and conceptual: decided without a model.
    FastPath,
    Pill,
    /// The router gave no valid answer.
    Default,
}

/// The route of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routing {
    pub effort: Effort,
    /// Categories of the tool catalog, spelt as there, each once. Empty means that the router did not choose any, so all are
    /// used; ignored with [`Effort::Low`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// How likely tools are needed, in percent, at most 100.
    pub tool_need: u8,
    /// The user's goal in one or two sentences: the planner's directive, which follows the message itself.
    pub goal: String,
    /// Whether the message contains something worth remembering.
    pub durable: bool,
}

impl Routing {
    /// The routing of a message about which nothing is known: a plan, with all tools.
    pub fn unknown(message: &str) -> Self {
        Self {
            effort: Effort::High,
            categories: Vec::new(),
            tool_need: 100,
            goal: goal_of(message),
            durable: durable(message),
        }
    }

    /// The routing of a message that takes the fast path.
    pub fn fast(message: &str) -> Self {
        Self { effort: Effort::Low, tool_need: 0, ..Self::unknown(message) }
    }
}

fn goal_of(message: &str) -> String {
    clip(message.trim(), MAX_SENTENCE)
}

/// Parses a router's answer: `{"effort", "categories"?, "tool_need"?: 0..1, "goal"?, "durable"?, "secrets"?}`.
///
/// The router is often a small model, so errors are corrected where possible: categories that are not in `known` and unknown
/// fields are dropped; a long goal is shortened, and the message replaces a missing one. A missing `tool_need` is set according
/// to the effort, and a missing `durable` is judged by the text of the message.
///
/// Secrets are removed, and a goal that contains the value of one is refused, because goals are logged.
pub fn parse(text: &str, known: &[String], message: &str) -> Result<(Routing, Secrets), Unusable> {
    let map = match extract::object(text, "effort") {
        Ok(map) => map,
        Err(violation) => return Err(Unusable::new(text, String::new(), &Secrets::default(), vec![violation])),
    };
    let mut violations = Vec::new();
    let secrets = Secrets::read(map.get("secrets"), &mut violations);
    let mut fields = Fields::new(&map, String::new(), &mut violations);
    let effort = match fields.required("effort", 100, "missing; it is low, medium or high") {
        word if word.is_empty() => None,
        word => {
            let effort = Effort::parse(&word);
            if effort.is_none() {
                fields.wrong("effort", format!("{word:?} is not an effort; it is low, medium or high"));
            }
            effort
        }
    };
    let categories = categories(&mut fields, known);
    let tool_need = tool_need(&mut fields);
    let goal = match fields.get("goal") {
        Some(Value::String(goal)) if !goal.trim().is_empty() => goal_of(goal),
        // Removed before shortening: a part of a secret at a cut would not be found.
        None | Some(Value::String(_)) => goal_of(&secrets.strike(message)),
        Some(_) => {
            fields.wrong("goal", "must be a string");
            String::new()
        }
    };
    let durable = fields.flag("durable").unwrap_or_else(|| durable(message));
    if let Some(name) = secrets.within(&goal) {
        let message = format!("repeats the value of the secret {name}; leave it in secrets only");
        violations.push(Violation::new("goal", message));
    }
    match effort {
        Some(effort) if violations.is_empty() => {
            let tool_need = tool_need.unwrap_or(if effort == Effort::Low { 0 } else { 100 });
            Ok((Routing { effort, categories, tool_need, goal, durable }, secrets))
        }
        _ => Err(Unusable::new(text, String::new(), &secrets, violations)),
    }
}

/// Returns the known ones of the given categories; never more than the catalog has.
fn categories(fields: &mut Fields<'_>, known: &[String]) -> Vec<String> {
    let given: &[Value] = match fields.get("categories") {
        None => &[],
        Some(Value::Array(items)) => items,
        // A single category without brackets.
        Some(one @ Value::String(_)) => std::slice::from_ref(one),
        Some(_) => {
            fields.wrong("categories", "must be a list of strings");
            &[]
        }
    };
    let named = |category: &&String| {
        given.iter().filter_map(Value::as_str).any(|name| name.trim().eq_ignore_ascii_case(category))
    };
    known.iter().filter(named).cloned().collect()
}

fn tool_need(fields: &mut Fields<'_>) -> Option<u8> {
    let need = match fields.get("tool_need")? {
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        _ => f64::NAN,
    };
    if !(0.0..=1.0).contains(&need) {
        fields.wrong("tool_need", "must be a number from 0 to 1");
        return None;
    }
    Some((need * 100.0).round() as u8)
}

/// Changes the route of a message whose need for tools is below the threshold to one without tools. Returns whether it did.
pub fn calibrate(routing: &mut Routing, threshold_percent: u8) -> bool {
    let downgrade = routing.effort != Effort::Low && routing.tool_need < threshold_percent;
    if downgrade {
        routing.effort = Effort::Low;
    }
    downgrade
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known() -> Vec<String> {
        ["web", "data", "files"].map(str::to_owned).to_vec()
    }

    fn read(text: &str) -> Result<(Routing, Secrets), String> {
        parse(text, &known(), "  the message ")
            .map_err(|unusable| unusable.violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn a_whole_answer() {
        let text = r#"Sure: {"effort": "Medium", "categories": ["files", "WEB", "moon", 3, "web"], "tool_need": 0.555,
            "goal": " look it up ", "durable": true, "secrets": {"token": "ghp_abcdef"}, "mood": "good"}"#;
        let (routing, secrets) = read(text).unwrap();
        let expected = Routing {
            effort: Effort::Medium,
            categories: vec!["web".to_owned(), "files".to_owned()],
            tool_need: 56,
            goal: "look it up".to_owned(),
            durable: true,
        };
        assert_eq!(routing, expected);
        assert_eq!(secrets.names(), ["token"]);
        let stored = serde_json::to_string(&routing).unwrap();
        assert_eq!(serde_json::from_str::<Routing>(&stored).unwrap(), routing);
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        let (low, _) = read(r#"{"effort": "low"}"#).unwrap();
        assert_eq!((low.tool_need, low.goal.as_str(), low.durable), (0, "the message", false));
        let (high, _) = read(r#"{"effort": "high", "goal": null, "categories": "web"}"#).unwrap();
        assert_eq!((high.tool_need, high.categories), (100, vec!["web".to_owned()]));
        let (kept, _) = parse(r#"{"effort": "low"}"#, &[], "My name is Ada.").unwrap();
        assert!(kept.durable);
        let long = format!(r#"{{"effort": "low", "goal": "{}"}}"#, "x".repeat(10_000));
        assert!(read(&long).unwrap().0.goal.len() < MAX_SENTENCE + 100);
    }

    #[test]
    fn what_is_refused() {
        for (text, expected) in [
            ("low", "there is no JSON object"),
            ("{}", "effort: missing"),
            (r#"{"effort": "huge"}"#, "effort: \"huge\" is not an effort"),
            (r#"{"effort": 1}"#, "effort: must be a string"),
            (r#"{"effort": "low", "tool_need": 1.5}"#, "tool_need: must be a number from 0 to 1"),
            (r#"{"effort": "low", "tool_need": "0.5"}"#, "tool_need: must be"),
            (r#"{"effort": "low", "categories": {"web": 1}}"#, "categories: must be a list"),
            (r#"{"effort": "low", "goal": ["x"]}"#, "goal: must be a string"),
            (r#"{"effort": "low", "durable": "no"}"#, "durable: must be true or false"),
            (r#"{"effort": "low", "secrets": 3}"#, "secrets: must be an object"),
            (
                r#"{"effort": "low", "goal": "use ghp_abcdef", "secrets": {"t": "ghp_abcdef"}}"#,
                "goal: repeats the value",
            ),
        ] {
            let complaint = read(text).unwrap_err();
            assert!(complaint.contains(expected), "{text}: {complaint}");
        }
    }

    #[test]
    fn a_secret_is_in_no_goal_and_in_no_complaint() {
        let message = "log in with hunter2hunter2";
        let answer = r#"{"effort": "low", "secrets": {"password": "hunter2hunter2"}}"#;
        let (routing, _) = parse(answer, &[], message).unwrap();
        assert!(!routing.goal.contains("hunter2"), "{}", routing.goal);
        let answer = answer.replace("low", "hunter2hunter2");
        let unusable = parse(&answer, &[], message).unwrap_err();
        assert!(!format!("{unusable:?}").contains("hunter2"), "{unusable:?}");
    }

    proptest! {
        /// Only the threshold decides, and the effort never increases.
        #[test]
        fn calibration_follows_the_threshold(need in 0u8..=100, threshold in 0u8..=100, effort in 0usize..3) {
            let effort = [Effort::Low, Effort::Medium, Effort::High][effort];
            let mut routing = Routing { effort, tool_need: need, ..Routing::unknown("x") };
            let changed = calibrate(&mut routing, threshold);
            prop_assert_eq!(changed, effort != Effort::Low && need < threshold);
            prop_assert_eq!(routing.effort, if changed { Effort::Low } else { effort });
            prop_assert!(!calibrate(&mut routing, threshold));
        }

        #[test]
        fn any_answer_is_read(text in "[{}\\[\\]\":,a-zä0-9. \n]{0,80}", effort in "[a-z]{0,6}") {
            let _ = parse(&text, &known(), &text);
            let _ = parse(&format!("{{\"effort\": \"{effort}\", {text}"), &known(), &text);
        }
    }
}
