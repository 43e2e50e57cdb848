//! Ids of runs that begin at the same moment.

use super::*;

#[test]
fn of_thousands_of_runs_in_one_millisecond_each_has_an_id() {
    let house = House::new();
    let store = house.open();
    // Without a check for duplicates, some of these would be equal in nearly every attempt.
    let begin = |tx: &Tx<'_>| (0..4_000).map(|_| tx.create_run(&session("s"), "text", 1)).collect();
    let ids: Result<Vec<RunId>, StoreError> = store.write_blocking(begin);
    let ids: std::collections::HashSet<RunId> = ids.unwrap().into_iter().collect();
    assert_eq!(ids.len(), 4_000);
}
