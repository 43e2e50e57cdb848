use super::*;
use kiso_base::config::ProviderKind;

fn row(name: &str, sealed: Option<&[u8]>) -> ConnectedProviderRow {
    ConnectedProviderRow {
        name: name.to_owned(),
        kind: ProviderKind::OpenAi,
        base_url: "http://localhost:1/v1".to_owned(),
        sealed: sealed.map(<[u8]>::to_vec),
        made_by: "test".to_owned(),
        created_ms: 5,
    }
}

/// Returns "name", or "name*" for the default.
fn models(store: &Store) -> Vec<String> {
    let connected = store.read_blocking(|view| view.connected()).unwrap();
    connected.models.iter().map(|model| format!("{}{}", model.name, if model.is_default { "*" } else { "" })).collect()
}

fn add(store: &Store, provider: &'static str, model: String, is_default: bool) -> Result<bool, StoreError> {
    store.write_blocking(move |tx| tx.put_connected_model((provider, &model), Some(9_000), is_default))
}

#[test]
fn one_model_is_the_default_and_all_go_with_their_provider() {
    let house = House::new();
    let store = house.open();
    for (name, sealed) in [("a", Some(&b"key"[..])), ("b", None)] {
        let row = row(name, sealed);
        store.write_blocking(move |tx| tx.put_connected_provider(&row)).unwrap();
    }
    for (provider, model, is_default) in [("a", "x", true), ("b", "y:z", true), ("a", "w", false)] {
        assert!(add(&store, provider, model.to_owned(), is_default).unwrap());
    }
    assert!(!add(&store, "gone", "x".to_owned(), true).unwrap());
    assert_eq!(models(&store), ["a:x", "b:y:z*", "a:w"]);
    let providers = store.read_blocking(|view| view.connected()).unwrap().providers;
    let shown: Vec<_> = providers.iter().map(|one| (one.name.as_str(), one.key_env.is_some(), one.connected)).collect();
    assert_eq!(shown, [("a", true, true), ("b", false, true)]);
    // Another key, the same models.
    let changed = row("a", None);
    store.write_blocking(move |tx| tx.put_connected_provider(&changed)).unwrap();
    assert_eq!(models(&store), ["a:x", "b:y:z*", "a:w"]);
    assert!(store.write_blocking(|tx| tx.delete_connected_model("b", "y:z")).unwrap());
    assert!(store.write_blocking(|tx| tx.delete_connected_provider("a")).unwrap());
    assert!(!store.write_blocking(|tx| tx.delete_connected_provider("a")).unwrap());
    assert!(models(&store).is_empty());
}

#[test]
fn there_is_an_end_of_what_is_connected() {
    let house = House::new();
    let store = house.open();
    let quota = |result: Result<(), StoreError>| matches!(result, Err(StoreError::Quota { .. }));
    for n in 0..=MAX_CONNECTED_PROVIDERS {
        let row = row(&format!("p{n}"), None);
        let put = store.write_blocking(move |tx| tx.put_connected_provider(&row));
        assert_eq!(quota(put), n == MAX_CONNECTED_PROVIDERS, "{n}");
    }
    for n in 0..=MAX_CONNECTED_MODELS {
        let put = add(&store, "p0", format!("m{n}"), false).map(|_| ());
        assert_eq!(quota(put), n == MAX_CONNECTED_MODELS, "{n}");
    }
}
