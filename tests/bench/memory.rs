//! The time of a search of the memory, in a small and in a full one: by rare words, by words in every passage, and by meaning.

use super::{Times, row, summary};
use kiso_store::memory::{Meaning, search};
use kiso_store::store::{MAX_CHUNKS, Store, Vector};
use std::time::Instant;
use tempfile::TempDir;

/// Variable for the number of passages in the large store, so that a short run can use fewer.
const PASSAGES: &str = "KISO_BENCH_PASSAGES";

/// Dimensions of a vector, as of a common small model.
const DIMENSIONS: usize = 384;

/// Number of searches.
const SEARCHES: usize = 50;

/// Passages in one transaction.
const BATCH: u64 = 5_000;

/// Queries: rare words, words in every passage, and a word that is a prefix of others.
const QUESTIONS: [(&str, &str); 3] = [
    ("rare words", "the market closed at 777 and 778"),
    ("words of every passage", "it rained on the market"),
    ("beginnings of words", "what stati rai marke 77"),
];

/// Prints the rows.
pub(crate) async fn rows() {
    let many = std::env::var(PASSAGES).ok().and_then(|text| text.parse().ok()).unwrap_or(MAX_CHUNKS);
    let (small, large) = (Filled::new(1_000).await, Filled::new(many).await);
    for (what, question) in QUESTIONS {
        pair(&format!("search {what}"), many, [&small, &large].map(|filled| (filled, question, false))).await;
    }
    pair("search by meaning, too", many, [&small, &large].map(|filled| (filled, QUESTIONS[0].1, true))).await;
}

async fn pair(what: &str, many: u64, of: [(&Filled, &str, bool); 2]) {
    let mut times: [Vec<_>; 2] = Default::default();
    // The first is a warm-up.
    for turn in 0..=SEARCHES {
        for (times, (filled, question, by_meaning)) in times.iter_mut().zip(of) {
            let meaning = by_meaning.then(|| filled.meaning(turn as u64));
            let started = Instant::now();
            let found = search(&filled.store, question, meaning, 8).await.expect("it is searched");
            if turn > 0 {
                times.push(started.elapsed());
            }
            assert!(!found.is_empty(), "{question} finds nothing");
        }
    }
    let [few, lots]: [Times; 2] = times.map(summary);
    row(&format!("kiso: {what}, 1,000 passages"), few, None);
    row(&format!("kiso: {what}, {many} passages"), lots, Some((few, "× with 1,000")));
}

/// A store with a number of passages, each with a vector.
struct Filled {
    _dir: TempDir,
    store: Store,
}

impl Filled {
    async fn new(passages: u64) -> Filled {
        let dir = TempDir::new().expect("there is room");
        let store = Store::open(&dir.path().join("store.db")).expect("a store");
        for from in (0..passages).step_by(BATCH as usize) {
            let to = passages.min(from + BATCH);
            let write = store.write(move |tx| {
                let embedder = tx.add_embedder("bench")?;
                for n in from..to {
                    let text =
                        format!("it rained on day {n} and the market closed at {} as station {n}", n * 7_919 % 1_000);
                    tx.add_chunk(&text, "turn", None, 1)?;
                    tx.set_vector(n as i64 + 1, embedder, Some(&vector(n)))?;
                }
                Ok(())
            });
            write.await.expect("there is room");
        }
        Filled { _dir: dir, store }
    }

    fn meaning(&self, seed: u64) -> Meaning {
        Meaning { vector: vector(seed), embedder: "bench".to_owned(), least: 0.3 }
    }
}

/// A pseudorandom direction, the same each time.
fn vector(seed: u64) -> Vector {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    let numbers: Vec<f32> = std::iter::repeat_with(next).take(DIMENSIONS).collect();
    Vector::new(&numbers).expect("it has a direction")
}
