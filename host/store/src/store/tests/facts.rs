//! Which facts are consolidated, and which may be corrected.

use super::remembered::fact;
use super::*;
use kiso_plan::label::Label;

/// Rule: "takes all fact entries → consolidates into fewer entries (merges duplicates, removes outdated)", "when facts exceed
/// knowledge_max_facts": those that can be merged are counted.
#[test]
fn facts_that_cannot_be_merged_are_not_counted() {
    let house = House::new();
    let store = house.open();
    let may = |max: u32| store.read_blocking(move |view| view.may_consolidate_facts(max)).unwrap();
    store
        .write_blocking(|tx| {
            for n in 0..4 {
                tx.add_fact(&fact(&format!("own {n}"), 50), n)?;
                let id = tx.add_fact(&fact(&format!("of a page {n}"), 50), n)?;
                tx.set_label(LabelledRow::Fact, id, &Label::world("web:example.org"))?;
            }
            Ok(())
        })
        .unwrap();
    assert_eq!((may(3), may(4), may(7)), (true, false, false));
    // After an attempt, another one is worthwhile when a tenth is new.
    store.write_blocking(|tx| tx.mark(Mark::Consolidated, 3)).unwrap();
    assert!(!may(3), "nothing would change");
    store.write_blocking(|tx| tx.add_fact(&fact("own 4", 50), 4)).unwrap();
    assert!(may(3));
    store
        .write_blocking(|tx| (5..20).try_for_each(|n| tx.add_fact(&fact(&format!("own {n}"), 50), 3).map(drop)))
        .unwrap();
    assert!(may(19) && !may(20));
    store
        .write_blocking(|tx| (20..40).try_for_each(|n| tx.add_fact(&fact(&format!("own {n}"), 50), 3).map(drop)))
        .unwrap();
    assert!(!may(20), "one of twenty");
    store.write_blocking(|tx| tx.add_fact(&fact("own 5", 50), 4)).unwrap();
    assert!(may(20), "what was said again counts");
}

/// Rule: "removes outdated": a run is asked about what it speaks of, and about nothing that the user has stated.
#[test]
fn facts_are_found_by_what_a_run_speaks_of() {
    let house = House::new();
    let store = house.open();
    store
        .write_blocking(|tx| {
            tx.add_fact(&fact("due.py leaves Saturdays unmoved", 70), 1)?;
            tx.add_fact(&fact("The garden is watered on Mondays", 70), 1)?;
            tx.add_fact(&fact("due.py is run on Saturdays at noon by Ada", 70), 1)?;
            tx.add_fact(&NewFact { source: USER.to_owned(), ..fact("due.py moves no Saturdays", 90) }, 1)?;
            let id = tx.add_fact(&fact("due.py breaks Saturdays", 70), 1)?;
            tx.set_label(LabelledRow::Fact, id, &Label::world("web:example.org"))?;
            tx.add_fact(&fact("due.py moves Saturdays", 70), 5)
        })
        .unwrap();
    let about = |text: &'static str| -> Vec<String> {
        let found = store.read_blocking(|view| view.facts_about(text, 5)).unwrap();
        found.into_iter().map(|fact| fact.text).collect()
    };
    assert_eq!(about("repair due.py, so that Saturdays are moved"), ["due.py leaves Saturdays unmoved"]);
    assert_eq!(about("write the invitation"), [""; 0]);
}
