//! Meanings of passages as vectors, and the search for similar ones.
//!
//! All passages are compared by the signs of their vectors' numbers (one bit each), and the nearest [`CANDIDATES`] of them by the
//! vectors themselves (one byte per number). So a search reads 128 bytes per passage with 1,024 numbers instead of 1,024. All
//! passages in the store are compared; their number is limited by [`super::MAX_CHUNKS`]. With fewer passages than candidates, the
//! signs lose nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rusqlite::OptionalExtension;

use super::{StoreError, Tx, View};

/// Maximum numbers of a vector. Common models return 384 to 3,072.
pub const MAX_DIMENSIONS: usize = 4_096;

/// Number of passages that are compared by their vectors, after the comparison of signs.
const CANDIDATES: usize = 256;

/// An embedding. Only vectors of the same model can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector(Vec<i8>);

/// A passage that waits for its vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingPassage {
    pub chunk: i64,
    pub text: String,
    pub session: Option<kiso_base::home::SessionName>,
}

impl Vector {
    /// Returns the direction of these numbers; `None` if they have none or there are too many.
    pub fn new(numbers: &[f32]) -> Option<Vector> {
        let largest = numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let usable = (1..=MAX_DIMENSIONS).contains(&numbers.len())
            && numbers.iter().all(|number| number.is_finite())
            && largest >= f32::MIN_POSITIVE;
        // The length has no meaning, so each vector can use the whole range of a byte.
        usable.then(|| Vector(numbers.iter().map(|number| (number / largest * 127.0).round() as i8).collect()))
    }

    /// Returns its number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.0.len()
    }

    /// Returns the cosine of the angle between the two; 1 for the same direction. 0 if their dimensions differ.
    pub fn likeness(&self, other: &Vector) -> f32 {
        likeness(&self.0, other.0.iter().copied())
    }

    pub(super) fn from_bytes(bytes: Vec<u8>) -> Vector {
        Vector(bytes.into_iter().map(u8::cast_signed).collect())
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.iter().map(|number| number.cast_unsigned()).collect()
    }

    fn signs(&self) -> Vec<u8> {
        let byte = |numbers: &[i8]| numbers.iter().enumerate().fold(0, |byte, (at, n)| byte | u8::from(*n > 0) << at);
        self.0.chunks(8).map(byte).collect()
    }
}

fn likeness(one: &[i8], other: impl ExactSizeIterator<Item = i8>) -> f32 {
    if one.len() != other.len() {
        return 0.0;
    }
    let (mut dot, mut of_one, mut of_other) = (0_i32, 0_i32, 0_i32);
    // At most 4,096 × 127², which fits the type.
    for (a, b) in one.iter().zip(other) {
        let (a, b) = (i32::from(*a), i32::from(b));
        dot += a * b;
        of_one += a * a;
        of_other += b * b;
    }
    let length = (f64::from(of_one) * f64::from(of_other)).sqrt();
    if length == 0.0 { 0.0 } else { (f64::from(dot) / length) as f32 }
}

/// Counts differing bits.
fn distance(one: &[u8], other: &[u8]) -> u32 {
    let (words, rest) = one.as_chunks::<8>();
    let (other_words, other_rest) = other.as_chunks::<8>();
    let words = words.iter().zip(other_words);
    let of_words = words.map(|(a, b)| (u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b)).count_ones());
    let of_rest = rest.iter().zip(other_rest).map(|(a, b)| (a ^ b).count_ones());
    of_words.sum::<u32>() + of_rest.sum::<u32>()
}

impl View<'_> {
    /// Returns the number for this model's vectors, if there are any.
    pub fn embedder(&self, model: &str) -> Result<Option<i64>, StoreError> {
        let mut query = self.conn.prepare_cached("SELECT num FROM embedders WHERE model = ?1")?;
        Ok(query.query_row([model], |row| row.get(0)).optional()?)
    }

    /// Returns passages without a vector of this embedder that it has not refused: those without any vector first, newest first
    /// in both groups.
    pub fn unembedded(&self, embedder: i64, limit: u32) -> Result<Vec<PendingPassage>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT c.id, c.text, s.name FROM memory_chunks c LEFT JOIN sessions s ON s.id = c.session
             WHERE c.embedder BETWEEN ?1 AND ?2 ORDER BY c.embedder DESC, c.id DESC LIMIT ?3",
        )?;
        let others =
            [(0, 0), (1, embedder - 1), (embedder + 1, i64::MAX), (i64::MIN, -embedder - 1), (1 - embedder, -1)];
        let mut found = Vec::new();
        for (from, to) in others {
            let left = limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            if left == 0 {
                break;
            }
            let rows = query.query_map((from, to, left), |row| {
                let session = match row.get_ref(2)? {
                    rusqlite::types::ValueRef::Null => None,
                    _ => Some(super::sessions::session_name(row, 2)?),
                };
                Ok(PendingPassage { chunk: row.get(0)?, text: row.get(1)?, session })
            })?;
            for row in rows {
                found.push(row?);
            }
        }
        Ok(found)
    }

    /// Returns the passages whose vectors of this embedder are most similar to this one, with their likeness, most similar first:
    /// at most `limit`, each with at least this likeness.
    pub fn nearest(&self, embedder: i64, to: &Vector, limit: u32, least: f32) -> Result<Vec<(i64, f32)>, StoreError> {
        let (signs, mut near) = (to.signs(), BinaryHeap::with_capacity(CANDIDATES + 1));
        let mut scan = self.conn.prepare_cached("SELECT chunk, signs FROM memory_signs WHERE embedder = ?1")?;
        let mut rows = scan.query([embedder])?;
        while let Some(row) = rows.next()? {
            let others = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            if others.len() != signs.len() {
                continue;
            }
            let far = distance(&signs, others);
            // The newer of two with the same distance.
            let place = (far, Reverse(row.get::<_, i64>(0)?));
            if near.len() < CANDIDATES || near.peek().is_some_and(|worst| place < *worst) {
                near.push(place);
                if near.len() > CANDIDATES {
                    near.pop();
                }
            }
        }
        let mut vector = self.conn.prepare_cached("SELECT vector FROM memory_vectors WHERE chunk = ?1")?;
        let mut found = Vec::new();
        for (_, Reverse(chunk)) in near {
            let how = vector.query_row([chunk], |row| {
                let bytes = row.get_ref(0)?.as_blob()?;
                Ok(likeness(&to.0, bytes.iter().map(|byte| byte.cast_signed())))
            })?;
            if how >= least {
                found.push((chunk, how));
            }
        }
        found.sort_by(|(a, how_a), (b, how_b)| how_b.total_cmp(how_a).then(b.cmp(a)));
        found.truncate(limit as usize);
        Ok(found)
    }
}

impl Tx<'_> {
    /// Returns the number for this model's vectors, creating it if necessary.
    pub fn add_embedder(&self, model: &str) -> Result<i64, StoreError> {
        match self.embedder(model)? {
            Some(num) => Ok(num),
            None => Ok(self.conn.prepare_cached("INSERT INTO embedders (model) VALUES (?1)")?.insert([model])?),
        }
    }

    /// Stores a passage's vector, replacing an older one; `None` records that the embedder refused it. Does nothing for a passage
    /// that was deleted meanwhile.
    pub fn set_vector(&self, chunk: i64, embedder: i64, vector: Option<&Vector>) -> Result<(), StoreError> {
        let mark = if vector.is_some() { embedder } else { -embedder };
        let mut update = self.conn.prepare_cached("UPDATE memory_chunks SET embedder = ?2 WHERE id = ?1")?;
        if update.execute((chunk, mark))? == 0 {
            return Ok(());
        }
        let Some(vector) = vector else {
            self.conn.prepare_cached("DELETE FROM memory_signs WHERE chunk = ?1")?.execute([chunk])?;
            self.conn.prepare_cached("DELETE FROM memory_vectors WHERE chunk = ?1")?.execute([chunk])?;
            return Ok(());
        };
        let mut signs = self
            .conn
            .prepare_cached("INSERT OR REPLACE INTO memory_signs (chunk, embedder, signs) VALUES (?1, ?2, ?3)")?;
        signs.execute((chunk, embedder, vector.signs()))?;
        let mut whole =
            self.conn.prepare_cached("INSERT OR REPLACE INTO memory_vectors (chunk, vector) VALUES (?1, ?2)")?;
        whole.execute((chunk, vector.bytes()))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    /// Pseudo-random numbers, the same each time.
    fn numbers(seed: u64, count: usize) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1 << 24) as f32 - 0.5
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    fn vector_of(seed: u64) -> Vector {
        Vector::new(&numbers(seed, 384)).unwrap()
    }

    fn open() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store.db")).unwrap();
        (dir, store)
    }

    #[test]
    fn a_vector_is_a_direction() {
        let one = Vector::new(&[3.0, 4.0, 0.0]).unwrap();
        assert!((one.likeness(&Vector::new(&[0.03, 0.04, 0.0]).unwrap()) - 1.0).abs() < 1e-3);
        assert!((one.likeness(&Vector::new(&[-3.0, -4.0, 0.0]).unwrap()) + 1.0).abs() < 1e-3);
        assert!((one.likeness(&Vector::new(&[4.0, -3.0, 0.0]).unwrap())).abs() < 2e-2);
        assert_eq!(one.likeness(&Vector::new(&[1.0, 1.0]).unwrap()), 0.0);
        for wrong in [&[][..], &[0.0, 0.0], &[f32::NAN], &[1.0, f32::INFINITY], &[1.0; MAX_DIMENSIONS + 1]] {
            assert_eq!(Vector::new(wrong), None, "{} numbers", wrong.len());
        }
        let (a, b) = (numbers(1, 768), numbers(2, 768));
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let exact = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
        let kept = Vector::new(&a).unwrap().likeness(&Vector::new(&b).unwrap());
        assert!((exact - kept).abs() < 0.01, "{exact} {kept}");
    }

    /// Among many more passages than candidates, the nearest is found, and the order is that of the vectors.
    #[test]
    fn the_nearest_of_many_are_found() {
        let (_dir, store) = open();
        let wanted = vector_of(7);
        let near = |seed: u64, part: f32| {
            let mixed = numbers(7, 384).into_iter().zip(numbers(seed, 384)).map(|(a, b)| a + part * b);
            Vector::new(&mixed.collect::<Vec<_>>()).unwrap()
        };
        store
            .write_blocking(move |tx| {
                let (first, own) = (tx.add_embedder("a:old")?, tx.add_embedder("a:m")?);
                assert_eq!((first, own, tx.add_embedder("a:m")?), (1, 2, 2));
                for n in 1..=1_500_i64 {
                    tx.add_chunk(&format!("passage {n}"), "turn", None, n)?;
                    let vector = match n {
                        300 => near(90, 0.5),
                        700 => near(91, 0.2),
                        900 => near(92, 1.0),
                        _ => vector_of(1_000 + n.unsigned_abs()),
                    };
                    tx.set_vector(n, own, Some(&vector))?;
                }
                tx.add_chunk("other kind", "turn", None, 9)?;
                tx.set_vector(1_501, own, Some(&Vector::new(&[1.0; 16]).unwrap()))?;
                tx.add_chunk("other model", "turn", None, 9)?;
                tx.set_vector(1_502, first, Some(&vector_of(7)))
            })
            .unwrap();
        let found = store.read_blocking(|view| view.nearest(2, &wanted, 3, 0.3)).unwrap();
        assert_eq!(found.iter().map(|(chunk, _)| *chunk).collect::<Vec<_>>(), [700, 300, 900]);
        assert!(found[0].1 > 0.95 && found[2].1 > 0.6, "{found:?}");
        let found = store.read_blocking(|view| view.nearest(2, &wanted, 50, 0.3)).unwrap();
        assert_eq!(found.len(), 3, "no other is alike: {found:?}");
        store.write_blocking(|tx| tx.delete_chunk(700)).unwrap();
        let found = store.read_blocking(|view| view.nearest(2, &wanted, 1, 0.3)).unwrap();
        assert_eq!(found[0].0, 300, "what is forgotten has no vector");
        assert_eq!(store.read_blocking(|view| view.nearest(9, &wanted, 1, 0.0)).unwrap(), []);
    }

    #[test]
    fn what_has_no_vector_of_this_model_waits() {
        let (_dir, store) = open();
        store
            .write_blocking(|tx| {
                for n in 1..=6 {
                    tx.add_chunk(&format!("passage {n}"), "turn", None, n)?;
                }
                let (a, b) = (tx.add_embedder("a")?, tx.add_embedder("b")?);
                tx.set_vector(1, a, Some(&vector_of(1)))?;
                tx.set_vector(2, a, None)?;
                tx.set_vector(3, b, Some(&vector_of(1)))?;
                tx.set_vector(4, b, None)?;
                tx.set_vector(77, b, Some(&vector_of(1)))
            })
            .unwrap();
        let waiting = |embedder, limit| -> Vec<i64> {
            let found = store.read_blocking(|view| view.unembedded(embedder, limit)).unwrap();
            found.into_iter().map(|waiting| waiting.chunk).collect()
        };
        assert_eq!(waiting(1, 9), [6, 5, 3, 4]);
        assert_eq!(waiting(2, 9), [6, 5, 1, 2]);
        assert_eq!(waiting(3, 9), [6, 5, 3, 1, 2, 4]);
        assert_eq!(waiting(1, 1), [6]);
        let count = |store: &Store| store.read_blocking(|view| view.nearest(2, &vector_of(1), 9, 0.0)).unwrap().len();
        assert_eq!(count(&store), 1);
        store.write_blocking(|tx| tx.set_vector(3, 2, None)).unwrap();
        assert_eq!(count(&store), 0);
    }
}
