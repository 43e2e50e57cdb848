//! Usage and cost of model calls.

use crate::context::without_marks;
use kiso_graph::step::{Call, ModelReasoning};
use kiso_llm::{Completing, Completion, Model, Request, Sink};
use kiso_plan::limits::Usage;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tracing::Instrument;

/// Maximum size in bytes of a model's thoughts that are kept per call. A model needs minutes for a thought of this length.
const MAX_REASONING: usize = 32 << 10;

/// Maximum number of calls per step whose thoughts are kept; a step with more has many similar calls.
const MAX_REASONED: usize = 8;

/// Usage of one step's calls so far: the run gets it with the step's event, and not before.
#[derive(Debug, Default)]
pub(super) struct Meter {
    spent: Mutex<Spent>,
    /// The boundary that fences foreign text in the prompts. It is removed from answers, so that a model that copies it does not
    /// pass it on.
    boundary: String,
}

#[derive(Debug, Default)]
struct Spent {
    /// Usage of answered calls, which the step's result also contains.
    answered: Usage,
    /// Usage of failed calls.
    lost: Option<Call>,
    /// The thoughts of models before they answered.
    reasoning: Vec<ModelReasoning>,
}

impl Meter {
    /// Creates a meter for prompts with this boundary.
    pub(super) fn new(boundary: String) -> Self {
        Self { boundary, ..Self::default() }
    }

    /// Returns `model` with its usage counted here.
    pub(super) fn wrap<'a>(&'a self, model: &'a dyn Model) -> MeteredModel<'a> {
        MeteredModel { model, meter: self }
    }

    /// Returns the usage since the last event.
    pub(super) fn used(&self) -> Usage {
        let spent = self.spent();
        let mut used = spent.answered;
        if let Some(call) = &spent.lost {
            used += call.usage;
        }
        used
    }

    /// Starts counting for the next event; returns the usage that is not in a result.
    pub(super) fn take(&self) -> Option<Call> {
        let mut spent = self.spent();
        let reasoning = std::mem::take(&mut spent.reasoning);
        let taken = std::mem::replace(&mut *spent, Spent { reasoning, ..Spent::default() });
        taken.lost
    }

    /// Returns the thoughts of models since the last call.
    pub(super) fn take_reasoning(&self) -> Vec<ModelReasoning> {
        std::mem::take(&mut self.spent().reasoning)
    }

    fn keep_reasoning(&self, mut reasoning: ModelReasoning) {
        reasoning.text = without_marks(&reasoning.text, &self.boundary).trim().to_owned();
        let mut spent = self.spent();
        if !reasoning.text.is_empty() && spent.reasoning.len() < MAX_REASONED {
            spent.reasoning.push(reasoning);
        }
    }

    fn take_marks(&self, completion: &mut Completion) {
        if self.boundary.is_empty() {
            return;
        }
        let args = completion.calls.iter_mut().flat_map(|call| [&mut call.name, &mut call.args]);
        for text in args.chain([&mut completion.text]).filter(|text| text.contains(&self.boundary)) {
            *text = without_marks(text, &self.boundary);
        }
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A model whose calls are counted, whether they are answered, fail, or are cancelled.
pub(super) struct MeteredModel<'a> {
    model: &'a dyn Model,
    meter: &'a Meter,
}

impl Model for MeteredModel<'_> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn sees(&self) -> Option<bool> {
        self.model.sees()
    }

    fn hears(&self) -> bool {
        self.model.hears()
    }

    fn learn_vision(&self, sees: bool) {
        self.model.learn_vision(sees);
    }

    fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Completing<'a> {
        let span = tracing::debug_span!("llm.complete", role = %request.role, model = self.name());
        let complete = async move {
            let role = request.role.name().to_owned();
            let reasoning = ModelReasoning { role, ..ModelReasoning::default() };
            let mut sink = Counted { of: self, sink, reasoning, since: None };
            let mut answer = self.model.complete(request, &mut sink).await;
            match &mut answer {
                Ok(completion) => {
                    tracing::debug!(tokens = completion.usage.total(), "the model has answered");
                    self.meter.spent().answered += completion.usage;
                    self.meter.take_marks(completion);
                }
                Err(_) => tracing::debug!("the model has not answered"),
            }
            answer
        };
        Box::pin(complete.instrument(span))
    }
}

struct Counted<'a> {
    of: &'a MeteredModel<'a>,
    sink: &'a mut dyn Sink,
    reasoning: ModelReasoning,
    /// When the model began to think; `None` while it is not thinking.
    since: Option<Instant>,
}

impl Counted<'_> {
    /// Adds the time since the model began to think.
    fn end_thought(&mut self) {
        if let Some(since) = self.since.take() {
            self.reasoning.millis += u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        }
    }
}

/// Includes failed and cancelled calls, because their thoughts were shown.
impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.end_thought();
        self.of.meter.keep_reasoning(std::mem::take(&mut self.reasoning));
    }
}

impl Sink for Counted<'_> {
    fn text(&mut self, piece: &str) {
        self.end_thought();
        self.sink.text(piece);
    }

    fn thought(&mut self, piece: &str) {
        self.since.get_or_insert_with(Instant::now);
        let left = MAX_REASONING.saturating_sub(self.reasoning.text.len());
        self.reasoning.text.push_str(&piece[..piece.floor_char_boundary(left)]);
        self.reasoning.cut |= piece.len() > left;
        self.sink.thought(piece);
    }

    fn restart(&mut self) {
        self.end_thought();
        self.reasoning.text.clear();
        self.reasoning.cut = false;
        self.sink.restart();
    }

    fn spent(&mut self, usage: Usage) {
        let mut spent = self.of.meter.spent();
        let lost = spent.lost.get_or_insert_default();
        lost.model = self.of.name().to_owned();
        lost.usage += usage;
    }
}
