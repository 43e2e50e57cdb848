//! The receiver in the documentation.

use super::*;

/// The receiver in docs/webhooks.md works unchanged.
#[test]
fn the_documented_receiver_works() {
    if Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_err() {
        return missing_tool("the receiver in Python", "there is no python3");
    }
    let page = std::fs::read_to_string(root().join("docs/webhooks.md")).unwrap();
    let script = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let home = Home::new();
    let file = home.file("receiver.py", script);
    let start = |secret: &str| {
        let mut command = Command::new("python3");
        command.arg("-u").arg(&file).arg("0").env("KISO_WEBHOOK_SECRET", secret);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let first = lines.next().expect("it says where it listens");
        let port = first.rsplit(' ').next().unwrap().to_owned();
        (Script(child), lines, port)
    };
    let at = |port: &str| {
        format!(
            "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n[webhooks.a]\n\
                                   url = \"http://127.0.0.1:{port}/\"\nallow_private = true\nretry_base_ms = 10\n"
        )
    };
    home.config(&at("1"));
    let secret = home.kiso(&["connect", "webhook", "secret", "a"]).ok().stdout.trim().to_owned();
    let (receiver, mut lines, port) = start(&secret);
    home.config(&at(&port));
    let served = Served::start(&home);
    served.send("main", "$ echo hello | tr a-z A-Z");
    assert!(lines.next().expect("it prints what it is told").starts_with("main: "));
    lines.find(|line| line.contains("HELLO")).expect("it prints the whole text");
    until_listed(&home, "a", |line| line["delivered"] == 1);
    drop((served, receiver));
    // A receiver with another key accepts nothing.
    let (_receiver, _lines, port) = start("another");
    home.config(&at(&port));
    home.kiso(&["connect", "webhook", "test", "a"]).exit(1).says(&["it answered 401"]);
}

/// A program that ends with the test.
struct Script(std::process::Child);

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
