use super::*;
use kiso_plan::network::{NetworkAccess, NetworkRule};

fn remember(
    store: &Store,
    of: Option<&str>,
    host: &str,
    access: NetworkAccess,
    methods: &[&str],
) -> Result<Option<i64>, StoreError> {
    let methods = methods.iter().map(|method| (*method).to_owned()).collect();
    let rule = NetworkRule { methods, ..NetworkRule::new(host, access) };
    let new = NewNetworkRule { session: of.map(session), rule, by: "test".to_owned() };
    store.write_blocking(move |tx| tx.remember_network_rule(&new, 5))
}

/// Returns "access host methods" for each rule.
fn rules(store: &Store, of: &str) -> Vec<String> {
    let rules = store.read_blocking(|view| view.network_rules(&session(of))).unwrap();
    let shown = |rule: &NetworkRule| format!("{} {} {}", rule.access.as_str(), rule.host, rule.methods.join(","));
    rules.iter().map(|rule| shown(rule).trim_end().to_owned()).collect()
}

#[test]
fn a_session_has_its_own_rules_before_those_for_all() {
    use NetworkAccess::{Allow, Ask, Deny};
    let house = House::new();
    let store = house.open();
    begin(&store, 1);
    remember(&store, None, "all.example", Allow, &[]).unwrap();
    remember(&store, Some("s"), "own.example", Ask, &[]).unwrap();
    assert_eq!(remember(&store, Some("unknown"), "x.example", Allow, &[]).unwrap(), None);
    assert_eq!(rules(&store, "s"), ["ask own.example", "allow all.example"]);
    assert_eq!(rules(&store, "other"), ["allow all.example"]);

    remember(&store, Some("s"), "All.Example", Deny, &[]).unwrap();
    assert_eq!(rules(&store, "s"), ["ask own.example", "deny all.example", "allow all.example"]);
    let lines = store.read_blocking(|view| view.network_rule_lines(None)).unwrap();
    let hosts: Vec<_> = lines.iter().map(|line| (line.session.is_some(), line.rule.host.as_str())).collect();
    assert_eq!(hosts, [(false, "all.example"), (true, "all.example"), (true, "own.example")]);
    assert_eq!((lines[0].by.as_str(), lines[0].created_ms), ("test", 5));
    let other = session("other");
    assert_eq!(store.read_blocking(|view| view.network_rule_lines(Some(&other))).unwrap().len(), 1);

    let forget = |of: Option<&str>, host: &'static str| {
        let of = of.map(session);
        store.write_blocking(move |tx| tx.forget_network_rules(of.as_ref(), host)).unwrap()
    };
    assert_eq!((forget(None, "own.example"), forget(Some("unknown"), "all.example")), (0, 0));
    assert_eq!((forget(Some("s"), "ALL.example"), forget(Some("s"), "all.example")), (1, 0));
    assert_eq!(rules(&store, "s"), ["ask own.example", "allow all.example"]);
}

#[test]
fn a_host_has_one_rule_for_each_method() {
    use NetworkAccess::{Allow, Ask, Deny};
    let house = House::new();
    let store = house.open();
    let host = "a.example";
    for (access, methods, expected) in [
        (Allow, &[][..], &["allow a.example"][..]),
        (Allow, &[], &["allow a.example"]),
        (Allow, &["POST", "PUT"], &["allow a.example", "allow a.example POST,PUT"]),
        (Deny, &["PUT"], &["allow a.example", "allow a.example POST", "deny a.example PUT"]),
        (Deny, &[], &["deny a.example"]),
        (Allow, &["GET"], &["deny a.example POST,PUT,PATCH,DELETE", "allow a.example GET"]),
        (Allow, &["POST"], &["deny a.example PUT,PATCH,DELETE", "allow a.example GET", "allow a.example POST"]),
        (Ask, &["HEAD"], &["deny a.example PUT,PATCH,DELETE", "allow a.example POST", "ask a.example HEAD"]),
    ] {
        remember(&store, None, host, access, methods).unwrap();
        assert_eq!(rules(&store, "s"), expected);
    }
    let rule = NetworkRule { label: Some(kiso_plan::label::Integrity::World), ..NetworkRule::new(host, Deny) };
    let new = NewNetworkRule { session: None, rule, by: String::new() };
    store.write_blocking(move |tx| tx.remember_network_rule(&new, 1)).unwrap();
    assert_eq!(rules(&store, "s").len(), 4, "a rule for other labels replaces none");
}

#[test]
fn there_are_a_thousand_rules_for_all_and_for_each_session() {
    let house = House::new();
    let store = house.open();
    begin(&store, 1);
    store
        .write_blocking(|tx| {
            tx.conn.execute(
                r#"WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000)
                   INSERT INTO network_rules (host, rule, made_by, created_ms)
                   SELECT 'a' || n, '{"host":"a' || n || '","access":"deny"}', '', 1 FROM n"#,
                (),
            )?;
            Ok(())
        })
        .unwrap();
    let refused = remember(&store, None, "b", NetworkAccess::Allow, &[]);
    assert!(matches!(refused, Err(StoreError::Quota { max: MAX_NETWORK_RULES, .. })), "{refused:?}");
    assert!(remember(&store, Some("s"), "b", NetworkAccess::Allow, &[]).unwrap().is_some());
    assert!(remember(&store, None, "a7", NetworkAccess::Deny, &[]).unwrap().is_some(), "it replaces one");
    assert_eq!(rules(&store, "s").len(), 1_001);
}
