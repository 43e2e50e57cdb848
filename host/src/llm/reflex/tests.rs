//! What the rules make of messages, outputs and briefs.

mod fixtures;

use fixtures::*;

#[test]
fn explore() {
    for message in include_str!("/tmp/phrases.txt").lines() {
        let plan = if std::env::var("ORDERS").is_ok() { crate::llm::reflex::plan::plan(&pieces(message, vec![orders()])) } else { plan(message) };
        println!("> {message}");
        for l in lines(&plan) { println!("    {l}"); }
        for t in &plan.tasks { if plan.blocked.is_none() && t.detail.contains("Note") { println!("    {}", t.detail.replace('\n', " | ")); }
          if let Some(e)=&t.expect { println!("      expect: {e}"); } if let Some(a)=&t.args && let Some(x)=a.get("title") {println!("      title {x}")}}
    }
}
