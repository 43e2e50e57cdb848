//! The smallest skill: answers with its argument. Used to measure the cost of a call.

use kiso_sdk::{Call, Failure, Reply, Skill};

struct Echo;

#[derive(serde::Deserialize)]
struct Args {
    text: String,
}

impl Skill for Echo {
    type Args = Args;

    fn run(args: Args, _call: &Call) -> Result<Reply, Failure> {
        Ok(Reply::text(args.text))
    }
}

kiso_sdk::skill!(Echo);
