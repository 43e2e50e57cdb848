//! Texts as vectors: the `/embeddings` of providers with OpenAI's format. Texts with similar meanings have vectors with similar
//! directions.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ring::digest::{Digest, SHA256, digest};
use serde_json::{Value, json};

use super::breaker::Breaker;
use super::chain::Remote;
use super::endpoint::Endpoint;
use super::http::{KeyHeader, Wire};
use super::price::Price;
use super::slots::Slots;
use super::time::Time;
use super::{LlmError, Priority};
use kiso_plan::estimate;
use kiso_plan::limits::Usage;
use kiso_store::store::{MAX_DIMENSIONS, Vector};

/// The role name in the accounting of these calls.
pub const ROLE: &str = "embedder";

/// Number of cached queries: retries of the planner and searches for the same text repeat recent ones.
const CACHED: usize = 64;

/// A model that returns vectors.
#[derive(Debug)]
pub struct Embedder {
    wire: Wire,
    /// The requested dimensions of a vector; `None` leaves them to the model.
    dimensions: Option<u64>,
    /// The name under which its vectors are stored.
    name: String,
    remote: Remote,
    slots: Slots,
    time: Arc<dyn Time>,
    cached: Mutex<VecDeque<(Vec<u8>, Vector)>>,
}

/// One vector for each text, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    pub vectors: Vec<Vector>,
    pub usage: Usage,
}

impl Embedder {
    /// `endpoint.base_url` is the part before `/embeddings`. Fails if it is not a valid address, or if the key cannot be a
    /// header; sends nothing yet.
    pub fn new(
        endpoint: Endpoint,
        dimensions: Option<u64>,
        (breaker, price): (Breaker, Price),
        slots: Slots,
        time: Arc<dyn Time>,
    ) -> Result<Embedder, LlmError> {
        let wire = Wire::new(endpoint, "/embeddings", KeyHeader::Bearer)?;
        // Vectors with other dimensions count as those of another model.
        let name = match dimensions {
            Some(dimensions) => format!("{} ({dimensions})", wire.name),
            None => wire.name.clone(),
        };
        let remote = Remote { breaker: Arc::new(breaker), price };
        Ok(Embedder { wire, dimensions, name, remote, slots, time, cached: Mutex::default() })
    }

    /// `provider:model`, as in `config.toml`.
    pub fn model(&self) -> &str {
        &self.wire.name
    }

    /// The name under which vectors are stored: vectors with different names cannot be compared.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the vectors of these texts. Waits for a slot like any other call; does not retry.
    pub async fn embed(&self, texts: &[String], priority: Priority) -> Result<Embeddings, LlmError> {
        let alone = |_| self.wire.broken("it failed several times in a row, and is left alone for a while");
        self.remote.breaker.check(self.time.now()).map_err(alone)?;
        let slot = self.slots.acquire(priority).await;
        let pass = self.remote.breaker.enter(self.time.now()).map_err(alone)?;
        let answer = self.ask(texts).await;
        match &answer {
            Err(LlmError::Unavailable { .. }) => pass.failed(self.time.now()),
            _ => pass.answered(),
        }
        drop(slot);
        let Embeddings { vectors, usage } = answer?;
        Ok(Embeddings { vectors, usage: self.remote.price.charge(usage) })
    }

    /// Returns the vector of a query and the cost, which is zero for a cached query. `None` if it takes longer than `patience`;
    /// the caller continues without it.
    pub async fn question(&self, text: &str, patience: Duration) -> Option<(Vector, Usage)> {
        let key = digest(&SHA256, text.as_bytes());
        if let Some(vector) = self.recall(&key) {
            return Some((vector, Usage::default()));
        }
        let texts = [text.to_owned()];
        match tokio::time::timeout(patience, self.embed(&texts, Priority::Interactive)).await {
            Ok(Ok(Embeddings { mut vectors, usage })) => {
                let vector = vectors.pop()?;
                let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
                cached.truncate(CACHED - 1);
                cached.push_front((key.as_ref().to_vec(), vector.clone()));
                Some((vector, usage))
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "memory is searched by words alone");
                None
            }
            Err(_) => {
                tracing::debug!(model = self.model(), "no vector in time; memory is searched by words alone");
                None
            }
        }
    }

    fn recall(&self, key: &Digest) -> Option<Vector> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let at = cached.iter().position(|(known, _)| known == key.as_ref())?;
        let found = cached.remove(at)?;
        let vector = found.1.clone();
        cached.push_front(found);
        Some(vector)
    }

    async fn ask(&self, texts: &[String]) -> Result<Embeddings, LlmError> {
        let mut body = json!({ "model": self.wire.endpoint.model, "input": texts });
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = dimensions.into();
        }
        let answer = self.wire.ask_once(ROLE, "application/json", kiso_base::json::bytes(&body).into()).await?;
        let vectors = vectors(&answer, texts.len()).map_err(|why| self.wire.unusable(why))?;
        let estimated: usize = texts.iter().map(|text| estimate::tokens(text)).sum();
        let input_tokens = answer["usage"]["prompt_tokens"].as_u64().unwrap_or(estimated as u64);
        Ok(Embeddings { vectors, usage: Usage { input_tokens, ..Usage::default() } })
    }
}

/// Returns the vectors of an answer, in the order of their texts.
fn vectors(answer: &Value, count: usize) -> Result<Vec<Vector>, String> {
    let rows = answer["data"].as_array().filter(|rows| rows.len() == count);
    let rows = rows.ok_or_else(|| format!("its answer has no list `data` of {count} vectors"))?;
    let mut vectors = vec![None; count];
    for (nth, row) in rows.iter().enumerate() {
        // Some servers omit the index; then the order is that of the texts.
        let at = row["index"].as_u64().map_or(Some(nth), |at| usize::try_from(at).ok());
        let place = at.and_then(|at| vectors.get_mut(at)).filter(|place| place.is_none());
        let place = place.ok_or("its answer gives a vector a place that there is not")?;
        let numbers = row["embedding"].as_array().ok_or("its answer lacks an `embedding`")?;
        let numbers: Option<Vec<f32>> = numbers.iter().map(|number| number.as_f64().map(|n| n as f32)).collect();
        let vector = numbers.as_deref().and_then(Vector::new);
        *place =
            Some(vector.ok_or_else(|| format!("an `embedding` of its answer is not 1 to {MAX_DIMENSIONS} numbers"))?);
    }
    Ok(vectors.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_read_in_the_order_of_their_texts() {
        let answer = json!({ "data": [{ "index": 1, "embedding": [0, 1.0] }, { "index": 0, "embedding": [1, 0] }] });
        let read = vectors(&answer, 2).unwrap();
        assert_eq!(read, [&[1.0, 0.0], &[0.0, 1.0]].map(|numbers| Vector::new(numbers).unwrap()));
        let unnumbered = json!({ "data": [{ "embedding": [1, 0] }, { "embedding": [0, 1] }] });
        assert_eq!(vectors(&unnumbered, 2).unwrap(), read);
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        for (answer, why) in [
            (json!({}), "no list `data`"),
            (json!({ "data": [] }), "of 1 vectors"),
            (json!({ "data": [{ "index": 1, "embedding": [1] }] }), "a place that there is not"),
            (json!({ "data": [{ "index": 0 }] }), "lacks an `embedding`"),
            (json!({ "data": [{ "index": 0, "embedding": [0, 0] }] }), "is not 1 to 4096 numbers"),
            (json!({ "data": [{ "index": 0, "embedding": ["a"] }] }), "is not 1 to 4096 numbers"),
        ] {
            let said = vectors(&answer, 1).unwrap_err();
            assert!(said.contains(why), "{answer}: {said}");
        }
        let twice = json!({ "data": [{ "index": 0, "embedding": [1] }, { "index": 0, "embedding": [1] }] });
        assert!(vectors(&twice, 2).is_err());
    }
}
