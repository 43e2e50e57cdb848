//! Detects an action loop that repeats the same batch of calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use kiso_plan::call::ToolCall;

/// The same batch this many times in a row is a loop. Twice is a retry.
pub const LOOP_AT: u32 = 3;

/// Counts equal batches in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// The calls of the last batch in canonical form, sorted; empty before the first batch.
    last: Vec<(String, String)>,
    times: u32,
}

impl Repeat {
    /// Records the next batch. Returns whether it is at least the third equal one in a row.
    ///
    /// Batches are equal if they call the same tools equally often with the same arguments. Ids, the order of calls, and the
    /// formatting of JSON do not matter. A batch without calls ends a sequence.
    pub fn is_loop(&mut self, calls: &[ToolCall]) -> bool {
        let mut batch: Vec<_> = calls.iter().map(|call| (call.name.clone(), canonical(&call.args))).collect();
        batch.sort_unstable();
        if batch == self.last {
            self.times = self.times.saturating_add(1);
        } else {
            (self.last, self.times) = (batch, 1);
        }
        !calls.is_empty() && self.times >= LOOP_AT
    }

    /// How many times in a row the last batch was called.
    pub fn times(&self) -> u32 {
        if self.last.is_empty() { 0 } else { self.times }
    }
}

/// Returns JSON arguments with sorted keys and without spaces; other texts stay unchanged.
fn canonical(args: &str) -> String {
    match serde_json::from_str::<Value>(args) {
        Ok(mut value) => {
            value.sort_all_objects();
            value.to_string()
        }
        // Models omit the arguments of a call that needs none.
        Err(_) if args.trim().is_empty() => "{}".to_owned(),
        Err(_) => args.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(id: &str, name: &str, args: &str) -> ToolCall {
        ToolCall::new(id, name, args)
    }

    #[test]
    fn the_third_batch_in_a_row_is_a_loop() {
        let mut repeat = Repeat::default();
        let written = [
            r#"{"a": 1, "b": {"c": 2, "d": [3]}}"#,
            r#"{"b":{"d":[3],"c":2},"a":1}"#,
            r#"{"a":1,"b":{"c":2,"d":[3]}}"#,
        ];
        let batches = written.map(|args| [call("x", "f", args), call("y", "g", "")]);
        assert!(!repeat.is_loop(&batches[0]));
        let mut turned = batches[1].clone();
        turned.reverse();
        turned[0].id = "z".to_owned();
        turned[0].args = "{}".to_owned();
        assert!(!repeat.is_loop(&turned));
        let stored = serde_json::to_string(&repeat).unwrap();
        let mut repeat: Repeat = serde_json::from_str(&stored).unwrap();
        assert!(repeat.is_loop(&batches[2]));
        assert!(repeat.is_loop(&batches[2]));
        assert_eq!(repeat.times(), 4);
        assert!(!repeat.is_loop(&[]));
        assert!(!repeat.is_loop(&batches[0]));
    }

    #[test]
    fn other_calls_begin_anew() {
        for other in [
            vec![call("", "f", "{\"a\": 2}")],
            vec![call("", "g", "{\"a\": 1}")],
            vec![call("", "f", "{\"a\": 1}"); 2],
            vec![call("", "f", "{\"a\": ")],
        ] {
            let mut repeat = Repeat::default();
            let same = [call("", "f", "{\"a\": 1}")];
            assert!(!repeat.is_loop(&same) && !repeat.is_loop(&same));
            assert!(!repeat.is_loop(&other) && !repeat.is_loop(&same) && !repeat.is_loop(&same));
            assert!(repeat.is_loop(&same));
        }
        let mut silent = Repeat::default();
        assert!((0..5).all(|_| !silent.is_loop(&[])));
        assert_eq!(silent.times(), 0);
    }

    proptest! {
        /// A loop is reported exactly when the last three batches are equal.
        #[test]
        fn three_in_a_row(batches in prop::collection::vec(0u8..3, 0..30)) {
            let mut repeat = Repeat::default();
            for (at, kind) in batches.iter().enumerate() {
                let said = repeat.is_loop(&[call(&at.to_string(), "f", &format!("{{\"a\": {kind}}}"))]);
                prop_assert_eq!(said, at >= 2 && batches[at - 2..at].iter().all(|other| other == kind));
            }
        }
    }
}
