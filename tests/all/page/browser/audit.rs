//! Accessibility checks of a screen with the rules of axe-core.

use super::tab::Tab;
use serde_json::{Value, json};

/// Waits for finite animations: a colour in transition belongs to neither theme.
const SETTLED: &str = "(async () => {
  const after = (ms) => new Promise((done) => setTimeout(done, ms));
  const frame = () => Promise.race([new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))), after(200)]);
  const moving = () => document.getAnimations().filter((one) => one.playState === 'running'
    && one.effect.getComputedTiming().endTime !== Infinity);
  await frame();
  // An animation out of view may be paused, and then never ends.
  for (let looks = 0; looks < 5 && moving().length; looks += 1) {
    await Promise.race([Promise.allSettled(moving().map((one) => one.finished)), after(500)]);
    await frame();
  }
  return true;
})()";

/// The rules about colours; all other rules of axe-core give the same result in every theme.
const COLOURS: &str = "{ runOnly: ['color-contrast', 'link-in-text-block'], resultTypes: ['violations'] }";

const EVERYTHING: &str = "{ resultTypes: ['violations'] }";

impl Tab {
    /// Asserts that axe-core finds no violation on the current screen. `screen` is its name in the report.
    #[track_caller]
    pub(crate) fn audit(&self, screen: &str) {
        self.finds_nothing(screen, EVERYTHING);
    }

    /// Checks only the colours, for a screen that was checked in another theme.
    #[track_caller]
    pub(crate) fn audit_colours(&self, screen: &str) {
        self.finds_nothing(screen, COLOURS);
    }

    #[track_caller]
    fn finds_nothing(&self, screen: &str, options: &str) {
        self.eval(SETTLED);
        // In an isolated world, where the page's policy does not apply and the page cannot interfere.
        let frame = self.call("Page.getFrameTree", json!({}))["frameTree"]["frame"]["id"].take();
        let world = self.call("Page.createIsolatedWorld", json!({ "frameId": frame, "worldName": "audit" }));
        let world = &world["executionContextId"];
        // The isolated world stays with its document, so axe-core is loaded once.
        if self.in_world(world, "typeof axe === 'object'") != true {
            let axe = kiso_tests::root().join("tests/vendor/axe.min.js");
            self.in_world(world, &std::fs::read_to_string(axe).expect("it is vendored"));
        }
        let found = self.in_world(
            world,
            &format!(
                "axe.run(document, {options}).then(({{ violations, passes, incomplete }}) => JSON.stringify({{
                  rules: passes.length + incomplete.length,
                  found: violations.map(({{ id, help, impact, nodes }}) => ({{ id, help, impact,
                    nodes: nodes.map(({{ target, html, failureSummary }}) => ({{ target, html: html.slice(0, 300), failureSummary }})) }})) }}))"
            ),
        );
        let found: Value = serde_json::from_str(found.as_str().expect("it answers")).expect("it is JSON");
        assert!(found["rules"].as_u64() > Some(0), "{screen}: nothing was looked at: {found}");
        let violations = found["found"].as_array().expect("it is a list");
        assert!(
            violations.is_empty(),
            "{screen}: axe-core finds {}: {}\n{}",
            violations.len(),
            json!(violations).to_string().replace("},{", "},\n{"),
            self.describe()
        );
    }

    #[track_caller]
    fn in_world(&self, world: &Value, expression: &str) -> Value {
        let asked = json!({
            "expression": expression, "contextId": world, "awaitPromise": true, "returnByValue": true,
        });
        let mut answer = self.call("Runtime.evaluate", asked);
        if let Some(details) = answer.get("exceptionDetails") {
            panic!("{}", super::record::thrown(details));
        }
        answer["result"]["value"].take()
    }
}
