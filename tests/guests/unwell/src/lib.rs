//! A skill whose self-test fails. The install must refuse it, show the reason, and leave nothing behind.

use kiso_sdk::{Call, Failure, Reply, Skill};

struct Unwell;

#[derive(serde::Deserialize)]
struct Args {}

impl Skill for Unwell {
    type Args = Args;

    fn run(_args: Args, _call: &Call) -> Result<Reply, Failure> {
        Ok(Reply::text("this must never run"))
    }

    fn self_test() -> Result<(), String> {
        Err("the table of numbers is missing".to_owned())
    }
}

kiso_sdk::skill!(Unwell);
