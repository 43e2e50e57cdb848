//! Greets by name.

use kiso_sdk::{Call, Failure, Reply, Skill};

struct Greeter;

/// As `[kiso.skill.args]` in kiso.toml declares them.
#[derive(serde::Deserialize)]
struct Args {
    name: String,
    loud: bool,
}

impl Skill for Greeter {
    type Args = Args;

    fn run(args: Args, call: &Call) -> Result<Reply, Failure> {
        kiso_sdk::log::info(format!("greeting in session {}", call.session));
        let text = greeting(&args.name, args.loud)
            .ok_or_else(|| Failure::new("bad-args", "the name is blank; say whom to greet"))?;
        Ok(Reply::text(text.clone()).data(&serde_json::json!({ "greeting": text })))
    }

    /// Runs once when the skill is installed; an error refuses the install.
    fn self_test() -> Result<(), String> {
        match greeting("Ada", false).as_deref() {
            Some("Hello, Ada!") => Ok(()),
            other => Err(format!("a greeting became {other:?}")),
        }
    }
}

kiso_sdk::skill!(Greeter);

fn greeting(name: &str, loud: bool) -> Option<String> {
    let name = name.trim();
    let text = format!("Hello, {name}!");
    (!name.is_empty()).then(|| if loud { text.to_uppercase() } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_trimmed_and_needed() {
        assert_eq!(greeting(" Ada ", true).as_deref(), Some("HELLO, ADA!"));
        assert_eq!(greeting(" ", false), None);
    }
}
