//! A call that ends only after another one has started. Two that wait for each other end only if they run in parallel, so
//! sequential calls reach their deadline.

use kiso_sdk::{Call, Failure, Reply, Skill, kv};
use std::time::Duration;

struct Pair;

#[derive(serde::Deserialize)]
struct Args {
    me: String,
    other: String,
}

impl Skill for Pair {
    type Args = Args;

    fn run(args: Args, _call: &Call) -> Result<Reply, Failure> {
        kv::set(&args.me, b"here")?;
        while kv::get(&args.other)?.is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Reply::text(format!("{} met {}", args.me, args.other)))
    }
}

kiso_sdk::skill!(Pair);
