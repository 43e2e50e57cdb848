//! Logins of browsers: identified by hashes, limited in time and number, and never found by reading whole tables.

use super::statements::prepared;
use super::*;

const DAY: i64 = 24 * 60 * 60_000;

fn login(store: &Store, value: &str, now_ms: i64) -> Option<Login> {
    let id = LoginId::from_value(value);
    store.read_blocking(move |view| view.login(id, now_ms)).unwrap()
}

fn link(store: &Store, at_ms: i64) -> String {
    store.write_blocking(move |tx| tx.add_login_code(TokenScope::Admin, at_ms)).unwrap()
}

fn by_code(store: &Store, code: &str, at_ms: i64) -> Option<String> {
    let code = code.to_owned();
    store.write_blocking(move |tx| tx.log_in_by_code(&code, at_ms)).unwrap()
}

#[test]
fn a_link_is_used_once_and_in_time() {
    let house = House::new();
    let store = house.open();
    let code = link(&store, 1_000);
    assert_eq!(code.len(), 64);
    let waits = |code: &str, at| {
        let code = code.to_owned();
        store.read_blocking(move |view| view.has_login_code(&code, at)).unwrap()
    };
    assert!(waits(&code, 1_000) && waits(&code, 1_000 + CODE_MS - 1) && !waits(&code, 1_000 + CODE_MS));
    assert!(!waits("", 1_000) && !waits(&"0".repeat(64), 1_000));
    // The clock was set back by a little, and by a lot.
    assert!(waits(&code, 0) && !waits(&code, 1_000 - CODE_MS));
    let value = by_code(&store, &code, 2_000).unwrap();
    assert_eq!(by_code(&store, &code, 2_000), None);
    let found = login(&store, &value, 2_000).unwrap();
    assert_eq!((found.token, found.scope, found.created_ms), (None, TokenScope::Admin, 2_000));
    assert_eq!(login(&store, &code, 2_000), None, "the code itself is not a login");
    let late = link(&store, 0);
    assert_eq!(by_code(&store, &late, CODE_MS), None);
    // The attempt has removed it.
    assert_eq!(by_code(&store, &late, 1), None);
}

#[test]
fn a_login_ends_thirty_days_behind_its_last_use() {
    let house = House::new();
    let store = house.open();
    let value = by_code(&store, &link(&store, 0), 0).unwrap();
    assert!(login(&store, &value, 30 * DAY - 1).is_some());
    assert!(login(&store, &value, 30 * DAY).is_none());
    let id = LoginId::from_value(&value);
    store.write_blocking(move |tx| tx.touch_login(id, 20 * DAY)).unwrap();
    assert_eq!(login(&store, &value, 49 * DAY).map(|login| login.used_ms), Some(20 * DAY));
    assert!(store.write_blocking(move |tx| tx.log_out(id)).unwrap());
    assert!(!store.write_blocking(move |tx| tx.log_out(id)).unwrap());
    assert!(login(&store, &value, 20 * DAY).is_none());
}

#[test]
fn a_login_goes_with_its_token() {
    let house = House::new();
    let store = house.open();
    let add =
        |name: &'static str| store.write_blocking(move |tx| tx.add_token(name, TokenScope::Chat, 1)).unwrap().unwrap();
    let handle = |text: &str| text.split('_').nth(1).unwrap().to_owned();
    let [phone, laptop] = [add("phone"), add("laptop")].map(|text| handle(&text));
    let log_in = |handle: &str| {
        let handle = handle.to_owned();
        store.write_blocking(move |tx| tx.log_in_by_token(&handle, 5)).unwrap()
    };
    let [one, two, other] = [&phone, &phone, &laptop].map(|handle| log_in(handle).unwrap());
    assert_eq!(login(&store, &one, 5).unwrap().token.unwrap().name, "phone");
    store.write_blocking(|tx| tx.remove_token("phone")).unwrap();
    assert!(login(&store, &one, 5).is_none() && login(&store, &two, 5).is_none());
    assert_eq!(login(&store, &other, 5).unwrap().scope, TokenScope::Chat);
    assert_eq!(log_in(&phone), None);
    assert_eq!(store.write_blocking(|tx| tx.log_everybody_out()).unwrap(), 1);
    assert!(login(&store, &other, 5).is_none());
}

#[test]
fn there_are_a_hundred_at_most() {
    let house = House::new();
    let store = house.open();
    let links: Vec<String> = (0..150).map(|at| link(&store, at)).collect();
    let used: Vec<Option<String>> = links.iter().map(|code| by_code(&store, code, 200)).collect();
    assert!(used[..50].iter().all(Option::is_none) && used[50..].iter().all(Option::is_some));
    // The least recently used one makes room.
    let oldest = LoginId::from_value(used[70].as_ref().unwrap());
    store.write_blocking(move |tx| tx.touch_login(oldest, 100)).unwrap();
    by_code(&store, &link(&store, 300), 300).unwrap();
    let left: Vec<usize> = (50..150).filter(|n| login(&store, used[*n].as_ref().unwrap(), 300).is_none()).collect();
    assert_eq!(left, [70]);
    // Expired ones are removed with the next one.
    by_code(&store, &link(&store, 200 + LOGIN_MS), 200 + LOGIN_MS).unwrap();
    let count =
        |view: View<'_>| Ok(view.conn.query_row("SELECT count(*) FROM logins", (), |row| row.get::<_, i64>(0))?);
    assert_eq!(store.read_blocking(|view| count(View::new(view.conn))).unwrap(), 2);
}

/// Checks every statement that was run: none reads a table without an index, except for those that end everything.
#[test]
fn logins_are_found_by_their_indexes() {
    let house = House::new();
    house.open().close();
    let conn = connect(&house.path()).unwrap();
    conn.set_prepared_statement_cache_capacity(256);
    let tx = Tx(View::new(&conn));
    tx.add_token("phone", TokenScope::Chat, 1).unwrap();
    let handle = tx.tokens().unwrap().remove(0).handle;
    let value = tx.log_in_by_token(&handle, 1).unwrap().unwrap();
    let code = tx.add_login_code(TokenScope::Chat, 1).unwrap();
    tx.has_login_code(&code, 1).unwrap();
    tx.log_in_by_code(&code, 1).unwrap();
    tx.touch_login(LoginId::from_value(&value), 2).unwrap();
    tx.login(LoginId::from_value(&value), 2).unwrap();
    tx.log_out(LoginId::from_value(&value)).unwrap();
    let sent: Vec<String> = prepared(&conn).into_iter().filter(|sql| sql.contains("login")).collect();
    assert!(sent.len() >= 9, "{sent:#?}");
    // SQLite's own statement when a token is revoked.
    for sql in sent.into_iter().chain(["DELETE FROM logins WHERE token = ?1".to_owned()]) {
        let mut plan = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let nulls = rusqlite::params_from_iter(vec![rusqlite::types::Null; plan.parameter_count()]);
        let steps: Vec<String> =
            plan.query_map(nulls, |row| row.get("detail")).unwrap().collect::<Result<_, _>>().unwrap();
        for step in steps {
            // To make room, at most a hundred rows are read in the order of an index.
            let bounded =
                !step.starts_with("SCAN") || ["logins_by_use", "login_codes_by_age"].iter().any(|i| step.contains(i));
            assert!(bounded && !step.contains("TEMP B-TREE"), "{step}\n{sql}");
        }
    }
}
