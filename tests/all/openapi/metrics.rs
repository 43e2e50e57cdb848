//! `GET /metrics`, whose response is not JSON.

use super::*;

/// The text format of Prometheus: each sample follows its help and type lines, and has a number.
#[test]
fn metrics_have_the_form_that_prometheus_reads() {
    let mut api = Api::new(CONFIG);
    let message = api.served.send("main", "$ echo hello");
    api.served.reply(message);
    api.served.request("GET", "/nothing", None).refuses(404, "not_found");
    let chat = api.chat.clone();
    let text = api.ask("GET", "/metrics", "/metrics", Some(&chat), b"").body;
    let (mut helped, mut typed, mut values) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(helped.insert(name) && help.ends_with('.'), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(helped.contains(name) && typed.insert(name), "{line}");
            assert!(["counter", "gauge"].contains(&kind) && (kind == "counter") == name.ends_with("_total"), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            assert!(typed.contains(name), "{line} has no type");
            if let Some(labels) = sample.strip_prefix(name).filter(|labels| !labels.is_empty()) {
                let inner = labels.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap();
                let plain = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
                for label in inner.split(',') {
                    let (label, text) = label.split_once("=\"").unwrap();
                    assert!(plain(label) && text.strip_suffix('"').is_some_and(plain), "{line}");
                }
            }
            values.push((sample, value.parse::<u64>().unwrap_or_else(|_| panic!("{line}"))));
        }
    }
    assert_eq!(helped, typed);
    let value = |sample: &str| values.iter().find(|(name, _)| *name == sample).unwrap_or_else(|| panic!("{sample}")).1;
    assert_eq!((value("kiso_messages_total"), value("kiso_runs_total"), value("kiso_sessions")), (2, 1, 1));
    assert_eq!((value("kiso_queued_messages"), value("kiso_running_runs"), value("kiso_event_streams")), (0, 0, 0));
    assert_eq!(value("kiso_refused_total{reason=\"not_found\"}"), 1);
    assert_eq!(value("kiso_hook_events_total{hook=\"a\",result=\"queued\"}"), 0);
    // Some of the earlier connections may still be open.
    assert!(value("kiso_http_connections") >= 1);
    assert!(value("kiso_store_bytes") > 4_096 && value("kiso_http_requests_total") > 3);
}
