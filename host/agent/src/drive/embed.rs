//! Embeddings of passages and queries, from the model in `[memory]`. Those of passages are background work; a search waits only
//! briefly for that of its query, and otherwise does without.

use super::{DriveError, RunExecutor};
use crate::tool::builtin::documentation;
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_llm::embed::{Embedder, Embeddings, ROLE};
use kiso_llm::{LlmError, Priority};
use kiso_plan::limits::Usage;
use kiso_store::memory::Meaning;
use kiso_store::secret::Secrets;
use kiso_store::store::{PendingPassage, RunId, UsageLine, Vector};

/// Maximum number of batches of passages that are embedded after one reply.
const BATCHES: usize = 4;

/// A text that every model accepts: distinguishes a refused passage from a provider that refuses everything.
const PLAIN: &str = "hello";

/// Maximum length of a query in characters; its beginning is the most important part.
const QUESTION: usize = 2_000;

impl RunExecutor {
    /// Embeds passages without a vector, up to the limit of a turn; returns the number of new vectors. Stops at the first error:
    /// the others wait for the next time, and word search finds them until then.
    pub async fn embed_passages(&self) -> Result<usize, DriveError> {
        let Some(embedder) = self.models.embedder() else { return Ok(0) };
        let name = embedder.name().to_owned();
        let known = name.clone();
        let num = match self.store.read(move |view| view.embedder(&known)).await? {
            Some(num) => num,
            None => self.store.write(move |tx| tx.add_embedder(&name)).await?,
        };
        let most = u32::try_from(self.config.memory.embedding_batch).unwrap_or(u32::MAX);
        let mut done = 0;
        for _ in 0..BATCHES {
            let mut waiting = self.store.read(move |view| view.unembedded(num, most)).await?;
            // Passages of one session at a time, which pays for the call. Its limit is not checked, because the passages of all
            // other sessions would have to wait.
            let session = waiting.first().and_then(|first| first.session.clone());
            waiting.retain(|passage| passage.session == session);
            if waiting.is_empty() {
                break;
            }
            if let Some(limit) = self.over_limit(None, Usage::default()).await? {
                tracing::debug!(limit = limit.limit, "passages are embedded later");
                break;
            }
            match self.embed_batch(embedder, num, session.as_ref(), waiting).await? {
                Ok(embedded) => done += embedded,
                Err(error) => {
                    tracing::debug!(%error, "passages are embedded later");
                    break;
                }
            }
        }
        Ok(done)
    }

    /// Embeds the sections of the documentation without a vector, accounted to this session: all of them at the first search of a
    /// version. Stops at the first error; word search finds the rest, and the next search retries.
    pub async fn embed_documentation(&self, session: Option<&SessionName>) -> Result<(), DriveError> {
        let Some(embedder) = self.models.embedder() else { return Ok(()) };
        let name = embedder.name().to_owned();
        let num = self.store.write(move |tx| tx.add_embedder(&name)).await?;
        let known = self.store.read(move |view| view.doc_vectors(num)).await?;
        let missing: Vec<_> = documentation().iter().filter(|section| !known.contains_key(&section.digest)).collect();
        for batch in missing.chunks(usize::try_from(self.config.memory.embedding_batch).unwrap_or(1).max(1)) {
            if let Some(limit) = self.over_limit(session, Usage::default()).await? {
                tracing::debug!(limit = limit.limit, "the documentation is embedded later");
                return Ok(());
            }
            let texts: Vec<String> = batch.iter().map(|section| section.embedded()).collect();
            let vectors = match self.embed(embedder, session, &texts).await? {
                Ok(vectors) => Ok(vectors.into_iter().map(Some).collect()),
                Err(LlmError::Refused { .. }) => self.embed_each(embedder, session, &texts).await?,
                Err(error) => Err(error),
            };
            let vectors: Vec<Option<Vector>> = match vectors {
                Ok(vectors) => vectors,
                Err(error) => {
                    tracing::debug!(%error, "the documentation is embedded later");
                    return Ok(());
                }
            };
            let new: Vec<_> = batch.iter().map(|section| section.digest.clone()).zip(vectors).collect();
            let write = self.store.write(move |tx| {
                let current: Vec<_> = documentation().iter().map(|section| section.digest.clone()).collect();
                tx.set_doc_vectors(num, &new, &current)
            });
            write.await?;
        }
        Ok(())
    }

    async fn embed_batch(
        &self,
        embedder: &Embedder,
        num: i64,
        session: Option<&SessionName>,
        passages: Vec<PendingPassage>,
    ) -> Result<Result<usize, LlmError>, DriveError> {
        let secrets = match session {
            Some(session) => self.secrets_of(session).await?,
            None => self.keys_alone(),
        };
        let clean = |passage: &PendingPassage| secrets.redact(&passage.text);
        let texts: Vec<String> = passages.iter().map(clean).collect();
        let vectors = match self.embed(embedder, session, &texts).await? {
            Ok(vectors) => vectors.into_iter().map(Some).collect(),
            Err(LlmError::Refused { .. }) => match self.embed_each(embedder, session, &texts).await? {
                Ok(vectors) => vectors,
                Err(error) => return Ok(Err(error)),
            },
            Err(error) => return Ok(Err(error)),
        };
        let embedded = vectors.iter().flatten().count();
        let write = self.store.write(move |tx| {
            passages
                .iter()
                .zip(&vectors)
                .try_for_each(|(passage, vector)| tx.set_vector(passage.chunk, num, vector.as_ref()))
        });
        write.await?;
        Ok(Ok(embedded))
    }

    /// Embeds the texts one by one, because one of them was refused; that one gets no vector. A provider that refuses everything,
    /// for example because it wants another key, is not treated as a refusal of the texts.
    async fn embed_each(
        &self,
        embedder: &Embedder,
        session: Option<&SessionName>,
        texts: &[String],
    ) -> Result<Result<Vec<Option<Vector>>, LlmError>, DriveError> {
        if let Err(error) = self.embed(embedder, session, &[PLAIN.to_owned()]).await? {
            return Ok(Err(error));
        }
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            vectors.push(match self.embed(embedder, session, std::slice::from_ref(text)).await? {
                Ok(mut vectors) => vectors.pop(),
                Err(LlmError::Refused { .. }) => None,
                Err(error) => return Ok(Err(error)),
            });
        }
        Ok(Ok(vectors))
    }

    /// Makes one call and accounts for it.
    async fn embed(
        &self,
        embedder: &Embedder,
        session: Option<&SessionName>,
        texts: &[String],
    ) -> Result<Result<Vec<Vector>, LlmError>, DriveError> {
        match embedder.embed(texts, Priority::Background).await {
            Ok(Embeddings { vectors, usage }) => {
                self.account(embedder, session, None, usage).await?;
                Ok(Ok(vectors))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Returns the embedding of a query. `None` without an embedding model, if it does not answer in time, or if a limit allows
    /// no call; `unwritten` is usage that is not stored yet. `secrets` are removed before anything is sent.
    pub async fn meaning(
        &self,
        question: &str,
        secrets: &Secrets,
        session: Option<&SessionName>,
        run: Option<&RunId>,
        unwritten: Usage,
    ) -> Result<Option<Meaning>, DriveError> {
        let Some(embedder) = self.models.embedder() else { return Ok(None) };
        let question: String = secrets.redact(question.trim()).chars().take(QUESTION).collect();
        if question.is_empty() || self.over_limit(session, unwritten).await?.is_some() {
            return Ok(None);
        }
        let memory = &self.config.memory;
        let patience = std::time::Duration::from_millis(memory.query_timeout_ms);
        let Some((vector, usage)) = embedder.question(&question, patience).await else { return Ok(None) };
        if usage != Usage::default() {
            self.account(embedder, session, run, usage).await?;
        }
        let least = memory.min_likeness_percent as f32 / 100.0;
        Ok(Some(Meaning { vector, embedder: embedder.name().to_owned(), least }))
    }

    async fn account(
        &self,
        embedder: &Embedder,
        session: Option<&SessionName>,
        run: Option<&RunId>,
        usage: Usage,
    ) -> Result<(), DriveError> {
        let line = UsageLine { at_ms: now_ms(), role: ROLE.to_owned(), model: embedder.model().to_owned(), usage };
        let (session, run) = (session.cloned(), run.cloned());
        let write = self.store.write(move |tx| match session {
            Some(session) => tx.add_usage(&session, run.as_ref(), &line),
            // Memory that all sessions share belongs to no session.
            None => tx.add_usage_of_day(line.at_ms, line.usage),
        });
        Ok(write.await?)
    }
}
