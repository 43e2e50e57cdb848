//! Requests that a task names before it starts, and hosts on cards.

use super::address::{addresses, bare, host_and_port, texts};
use super::{CallLabels, EXEC, Tools};
use kiso_plan::approval::{CallEffect, CardAccess, Destination, NETWORK};
use kiso_plan::network::{READING, covers, split_port};
use kiso_plan::plan::{Task, TaskKind};
use kiso_sandbox::effect::network::{WantedHost, is_near};
use kiso_sandbox::effect::sink::SinkCall;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Commands that access hosts. A line without any of them only mentions its addresses.
const COMMANDS: [&str; 13] =
    ["curl", "wget", "git", "pip", "pip3", "python", "python3", "node", "nodejs", "js", "pytest", "npm", "npx"];

/// The default package index of `pip`.
const PACKAGE_INDEX: [&str; 2] = ["pypi.org", "files.pythonhosted.org"];

/// The default registry of `npm`.
const NPM_REGISTRY: &str = "registry.npmjs.org";

/// Options of `curl` and `wget` that send data, with the corresponding method.
const SENDING: [(&str, &str); 14] = [
    ("-d", "POST"),
    ("--data", "POST"),
    ("--data-raw", "POST"),
    ("--data-binary", "POST"),
    ("--data-urlencode", "POST"),
    ("--json", "POST"),
    ("-F", "POST"),
    ("--form", "POST"),
    ("--form-string", "POST"),
    ("--post-data", "POST"),
    ("--post-file", "POST"),
    ("-T", "PUT"),
    ("--upload-file", "PUT"),
    ("push", "POST"),
];

impl Tools {
    /// Returns the requests that a task, or a call in its form, names explicitly.
    pub fn named_requests(&self, task: &Task, labels: &CallLabels) -> Vec<WantedHost> {
        let (hosts, method) = match task.kind {
            TaskKind::Exec => of_line(&task.detail),
            TaskKind::Skill => {
                let args = task.args.as_ref().unwrap_or(&Value::Null);
                let hosts = texts(args).into_iter().filter_map(host_and_port);
                (hosts.filter(|host| self.is_open_to(task, host)).collect(), "GET".to_owned())
            }
            TaskKind::Msg | TaskKind::Act => return Vec::new(),
        };
        let reads = READING.contains(&method.as_str());
        let wanted = hosts.into_iter().map(|host| {
            let call = SinkCall {
                sink: "request",
                tool: task.skill.clone().unwrap_or_else(|| EXEC.to_owned()),
                destination: format!("host:{}", bare(&host)),
                changes: !reads,
                decision: labels.decision.clone(),
                args: Vec::new(),
            };
            let problems = if labels.enforcement.refuses() { call.problems() } else { Vec::new() };
            let because = (!problems.is_empty()).then(|| problems.join("; "));
            WantedHost { host, method: method.clone(), reads, because }
        });
        wanted.collect()
    }
}

impl Tools {
    /// Returns whether the skill of a task is bundled and requests every host, and its grant does not mention this one.
    fn is_open_to(&self, task: &Task, host: &str) -> bool {
        let found = task.skill.as_deref().and_then(|tool| self.skills.find_tool(tool).ok());
        let Some((skill, _)) = found.filter(|(skill, _)| skill.is_bundled()) else { return false };
        let (name, port) = split_port(host);
        let granted = self.skills.allowed(&skill).is_ok_and(|allowed| {
            let granted = allowed.http.iter().chain(&allowed.ask.http);
            granted.into_iter().any(|(need, _)| covers(&need.host, name, port))
        });
        !granted && skill.manifest.needs.http.iter().any(|need| need.host == "*")
    }
}

/// Returns the hosts that a command line names, and the method of its requests.
fn of_line(line: &str) -> (BTreeSet<String>, String) {
    let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || "\"'`;|&()<>=".contains(c)).collect();
    let names = |name: &str| words.iter().any(|word| word.rsplit('/').next() == Some(name));
    if !COMMANDS.iter().any(|command| names(command)) {
        return (BTreeSet::new(), "GET".to_owned());
    }
    let mut hosts: BTreeSet<String> = addresses(line).filter_map(host_and_port).collect();
    let installs = (names("pip") || names("pip3")) && (names("install") || names("download"));
    let elsewhere = ["--index-url", "-i", "--no-index"].iter().any(|option| words.contains(option));
    if installs && !elsewhere {
        hosts.extend(PACKAGE_INDEX.map(str::to_owned));
    }
    let fetches = names("npm") && ["install", "i", "add", "ci", "view"].iter().any(|word| words.contains(word));
    if fetches && !words.iter().any(|word| word.starts_with("--registry")) {
        hosts.insert(NPM_REGISTRY.to_owned());
    }
    let after = |options: [&str; 2]| {
        let at = words.iter().position(|word| options.contains(word))?;
        words.get(at + 1).map(|method| method.to_ascii_uppercase())
    };
    let sent = || SENDING.iter().find(|(option, _)| words.contains(option)).map(|(_, method)| (*method).to_owned());
    let gets = words.contains(&"-G") || words.contains(&"--get");
    let named = after(["-X", "--request"]).or_else(|| after(["--method", "--method"]));
    let method = named.or_else(|| sent().filter(|_| !gets)).unwrap_or_else(|| "GET".to_owned());
    (hosts, method)
}

/// Returns the questions about hosts for a card, grouped by site. `shown` is the call that requests them.
pub(crate) fn host_effects(wanted: &[WantedHost], shown: &[(String, String)]) -> Vec<CallEffect> {
    let mut sites: BTreeMap<(String, Option<String>), BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for wanted in wanted {
        let site = sites.entry((site(&wanted.host), wanted.because.clone())).or_default();
        let methods = site.entry(wanted.host.clone()).or_default();
        match wanted.reads {
            true => methods.extend(READING.map(str::to_owned)),
            false => _ = methods.insert(wanted.method.clone()),
        }
    }
    let effect = |((_, because), hosts): ((String, Option<String>), BTreeMap<String, BTreeSet<String>>)| {
        let destination =
            |(host, methods): (String, BTreeSet<String>)| Destination { host, methods: methods.into_iter().collect() };
        let hosts: Vec<_> = hosts.into_iter().map(destination).collect();
        let once = hosts.iter().all(|to| is_near(&to.host));
        let access = CardAccess { of: NETWORK.to_owned(), hosts, secrets: Vec::new() };
        let canonical = because.clone().unwrap_or_default();
        CallEffect {
            because: because.into_iter().collect(),
            once,
            ..CallEffect::new(NETWORK, vec![access], shown, &canonical)
        }
    };
    sites.into_iter().map(effect).collect()
}

/// Returns the site of a host, only for display on a card.
fn site(host: &str) -> String {
    let name = bare(host);
    let labels: Vec<&str> = name.split('.').collect();
    if name.parse::<std::net::IpAddr>().is_ok() || labels.len() < 3 {
        return name.to_owned();
    }
    // "example.co.uk" is a site, and "co.uk" is not.
    let is_short = |label: &&str| label.len() <= 3;
    let kept = if labels.iter().rev().take(2).all(is_short) { 3 } else { 2 };
    labels[labels.len() - kept..].join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_hosts_that_it_reaches_and_not_those_that_it_mentions() {
        for (line, hosts, method) in [
            ("curl -s https://a.example/x | jq .", &["a.example"][..], "GET"),
            ("echo https://a.example", &[], "GET"),
            ("curl -d @f http://a.example:8080/x", &["a.example:8080"], "POST"),
            ("curl -G -d q=1 https://a.example", &["a.example"], "GET"),
            ("curl -X DELETE 'https://a.example/1'", &["a.example"], "DELETE"),
            ("wget --post-data=a https://a.example", &["a.example"], "POST"),
            ("git clone https://a.example/r.git", &["a.example"], "GET"),
            ("cd r && git push https://a.example/r.git", &["a.example"], "POST"),
            ("pip install six", &["files.pythonhosted.org", "pypi.org"], "GET"),
            ("pip install -i https://i.example/simple six", &["i.example"], "GET"),
            ("npm install docx && node make.js", &["registry.npmjs.org"], "GET"),
            ("npm test", &[], "GET"),
            ("npm i docx --registry https://i.example", &["i.example"], "GET"),
            ("/usr/bin/curl https://a.example", &["a.example"], "GET"),
        ] {
            let (found, found_method) = of_line(line);
            assert_eq!(
                (found.iter().map(String::as_str).collect::<Vec<_>>(), found_method.as_str()),
                (hosts.to_vec(), method),
                "{line}"
            );
        }
    }

    #[test]
    fn hosts_of_a_site_are_one_question() {
        let wanted = |host: &str, method: &str| WantedHost {
            host: host.to_owned(),
            method: method.to_owned(),
            reads: method == "GET",
            because: None,
        };
        let all = [wanted("a.example.org", "GET"), wanted("b.example.org", "POST"), wanted("a.other.co.uk", "GET")];
        let effects = host_effects(&all, &[("command".to_owned(), "curl".to_owned())]);
        let hosts = |effect: &CallEffect| effect.access[0].hosts.iter().map(|to| to.host.clone()).collect::<Vec<_>>();
        assert_eq!(
            effects.iter().map(hosts).collect::<Vec<_>>(),
            [vec!["a.example.org", "b.example.org"], vec!["a.other.co.uk"]]
        );
        for (host, expected) in [
            ("a.b.example.org", "example.org"),
            ("127.0.0.1:80", "127.0.0.1"),
            ("example.org", "example.org"),
            ("x.other.co.uk", "other.co.uk"),
        ] {
            assert_eq!(site(host), expected);
        }
    }
}
