use super::*;
use crate::time::SleepFuture;
use kiso_base::role::Role;
use kiso_plan::limits::Usage;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Instant;

/// A clock that only advances in pauses, and records them.
#[derive(Debug)]
struct Stepped {
    start: Instant,
    pauses: Mutex<Vec<Duration>>,
    chance: f64,
    slots: Slots,
}

impl Time for Stepped {
    fn now(&self) -> Instant {
        self.start + self.pauses.lock().unwrap().iter().sum::<Duration>()
    }

    fn sleep(&self, wait: Duration) -> SleepFuture<'_> {
        assert_eq!(self.slots.free(), 1, "a pause holds no slot");
        self.pauses.lock().unwrap().push(wait);
        Box::pin(std::future::ready(()))
    }

    fn chance(&self) -> f64 {
        self.chance
    }
}

#[derive(Clone)]
enum Say {
    /// Streams these words and returns them as the answer.
    Words(&'static [&'static str]),
    /// Streams a word, and withholds the rest.
    Withholds(&'static str),
    /// Streams a word and breaks off.
    BreaksOff(&'static str),
    Silent {
        retryable: bool,
        after: Option<u64>,
    },
    Refuses,
    Script,
}

/// Gives its answers in order, and repeats the last one.
struct Actor {
    name: &'static str,
    lines: Mutex<VecDeque<Say>>,
    asked: Mutex<Vec<u32>>,
    slots: Slots,
}

impl Actor {
    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Model for Actor {
    fn name(&self) -> &str {
        self.name
    }

    fn complete<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Completing<'a> {
        self.asked.lock().unwrap().push(request.max_tokens);
        let mut lines = self.lines.lock().unwrap();
        let line = if lines.len() > 1 { lines.pop_front().unwrap() } else { lines[0].clone() };
        let model = self.name.to_owned();
        if !self.name.starts_with("built-in") {
            assert_eq!(self.slots.free(), 0, "an attempt holds the slot");
        }
        let silent = |message: &str, retryable, after: Option<u64>| {
            let retry_after = after.map(Duration::from_secs);
            Err(LlmError::Unavailable { model: model.clone(), message: message.to_owned(), retryable, retry_after })
        };
        let answer = match line {
            Say::Words(words) => {
                words.iter().for_each(|word| sink.text(word));
                let usage = Usage { input_tokens: 300, output_tokens: 10, ..Usage::default() };
                let (text, model) = (words.concat(), self.name.to_owned());
                Ok(Completion { text, usage, counted: true, model, ..Completion::default() })
            }
            Say::Withholds(word) => {
                sink.text(word);
                let usage = Usage { input_tokens: 300, output_tokens: 10, ..Usage::default() };
                Ok(Completion { text: word.to_owned(), stop: Stop::Filter, usage, model, ..Completion::default() })
            }
            Say::BreaksOff(word) => {
                sink.text(word);
                sink.spent(Usage { input_tokens: 200, output_tokens: 1, ..Usage::default() });
                silent("the stream broke off", true, None)
            }
            Say::Silent { retryable, after } => silent("connection refused", retryable, after),
            Say::Refuses => Err(LlmError::Refused { model: model.clone(), message: "the key is wrong".to_owned() }),
            Say::Script => Err(LlmError::Script("the script is exhausted".to_owned())),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Records what it receives: a bar for a restart, and lost usage in brackets.
#[derive(Default)]
struct Ear(String);

impl Sink for Ear {
    fn text(&mut self, piece: &str) {
        self.0 += piece;
    }

    fn restart(&mut self) {
        self.0 += "|";
    }

    fn spent(&mut self, usage: Usage) {
        self.0 += &format!("[{} {} {}]", usage.input_tokens, usage.output_tokens, usage.cost_micros);
    }
}

const DOWN: Say = Say::Silent { retryable: true, after: None };

struct Stage {
    time: Arc<Stepped>,
    shared: ChainContext,
    actors: Vec<Arc<Actor>>,
    breakers: Vec<Arc<Breaker>>,
}

impl Stage {
    /// One slot, three attempts, pauses up to ten seconds, and breakers that open for a minute after five failures.
    fn new(cast: &[(&'static str, &[Say])]) -> Self {
        let slots = Slots::new(1);
        let time =
            Arc::new(Stepped { start: Instant::now(), pauses: Mutex::default(), chance: 1.0, slots: slots.clone() });
        let retries = Retries { max_attempts: 3, max_wait: Duration::from_secs(10) };
        let shared = ChainContext { slots, estimator: Arc::default(), time: time.clone(), retries };
        let actor = |(name, lines): &(&'static str, &[Say])| {
            let lines = Mutex::new(lines.iter().cloned().collect());
            Arc::new(Actor { name, lines, asked: Mutex::default(), slots: shared.slots.clone() })
        };
        let actors: Vec<_> = cast.iter().map(actor).collect();
        let breakers = actors.iter().map(|_| Arc::new(Breaker::new(5, Duration::from_secs(60)))).collect();
        Self { time, shared, actors, breakers }
    }

    fn chain(&self) -> Chain {
        let mut links = self.actors.iter().zip(&self.breakers).map(|(actor, breaker)| {
            let price = Price { cached: None, input: 1_000_000, output: 2_000_000 };
            let remote = Remote { breaker: breaker.clone(), price };
            let remote = Some(remote).filter(|_| !actor.name.starts_with("built-in"));
            Link { model: actor.clone(), remote, max_output_tokens: 500 }
        });
        Chain::new(links.next().unwrap(), links.collect(), self.shared.clone())
    }

    async fn ask(&self) -> (Result<Completion, LlmError>, String) {
        let (mut ear, user) = (Ear::default(), "a".repeat(800));
        let request = Request::new(Role::Worker, String::new(), user);
        let answer = self.chain().complete(&request, &mut ear).await;
        assert_eq!((self.shared.slots.free(), self.shared.slots.waiting()), (1, 0), "a slot is kept");
        (answer, ear.0)
    }

    fn pauses(&self) -> Vec<u64> {
        let millis = |pause: &Duration| u64::try_from(pause.as_millis()).unwrap();
        self.time.pauses.lock().unwrap().iter().map(millis).collect()
    }
}

fn message(answer: Result<Completion, LlmError>) -> String {
    answer.unwrap_err().to_string()
}

#[tokio::test(flavor = "current_thread")]
async fn a_model_that_answers_is_asked_once_and_charged() {
    let stage = Stage::new(&[("a:one", &[Say::Words(&["hel", "lo"])])]);
    let (answer, heard) = stage.ask().await;
    let answer = answer.unwrap();
    assert_eq!((heard.as_str(), answer.text.as_str(), answer.usage.cost_micros), ("hello", "hello", 320));
    assert_eq!((stage.pauses(), stage.chain().name()), (vec![], "a:one"));
    // The estimate for 800 letters is 200 tokens, and the provider counted 300.
    assert_eq!(stage.shared.estimator.ratio("a:one"), 1.1);
    assert_eq!(*stage.actors[0].asked.lock().unwrap(), [500], "an answer has the tokens that the model may use");
}

#[tokio::test(flavor = "current_thread")]
async fn an_attempt_that_broke_off_is_taken_back() {
    let lines = [Say::BreaksOff("one"), DOWN, Say::Words(&["two"])];
    let stage = Stage::new(&[("a:one", &lines)]);
    let (answer, heard) = stage.ask().await;
    let answer = answer.unwrap();
    assert_eq!((answer.text.as_str(), heard.as_str()), ("two", "one|two"));
    // The cost of the failed call is added to the cost of the answer.
    assert_eq!(
        answer.usage,
        Usage { input_tokens: 500, output_tokens: 11, cost_micros: 320 + 202, ..Usage::default() }
    );
    assert_eq!(stage.pauses(), [500, 1000]);
    // The fallback discards the first choice's text.
    let stage = Stage::new(&[("a:one", &[Say::BreaksOff("x")]), ("b:two", &[Say::Words(&["y"])])]);
    let (answer, heard) = stage.ask().await;
    let answer = answer.unwrap();
    assert_eq!((answer.model.as_str(), heard.as_str()), ("b:two", "x|x|x|y"));
    assert_eq!(answer.usage.total(), 310 + 3 * 201);
    // If no model answers, the last text is discarded as well, and the cost is reported.
    let stage = Stage::new(&[("a:one", &[Say::BreaksOff("x")])]);
    let (answer, heard) = stage.ask().await;
    assert_eq!((answer.is_err(), heard.as_str()), (true, "x|x|x|[600 3 606]"));
}

#[tokio::test(flavor = "current_thread")]
async fn what_a_provider_holds_back_is_no_answer() {
    let stage = Stage::new(&[("a:one", &[Say::Withholds("x")]), ("b:two", &[Say::Words(&["y"])])]);
    let (answer, heard) = stage.ask().await;
    let answer = answer.unwrap();
    assert_eq!((answer.model.as_str(), heard.as_str()), ("b:two", "x|y"));
    assert_eq!(answer.usage.cost_micros, 640, "both are paid for");
    let stage = Stage::new(&[("a:one", &[Say::Withholds("x")])]);
    let (answer, heard) = stage.ask().await;
    let told = message(answer);
    assert_eq!(told, "the model a:one refused the request: it held the answer back (content filter)");
    assert_eq!((heard.as_str(), stage.actors[0].asked()), ("x|[300 10 320]", 1), "taken back, paid for, asked once");
}

#[tokio::test(flavor = "current_thread")]
async fn pauses_double_up_to_the_limit_and_half_of_each_is_chance() {
    let mut stage = Stage::new(&[("a:one", &[DOWN])]);
    stage.shared.retries.max_attempts = 8;
    stage.breakers[0] = Arc::new(Breaker::new(100, Duration::from_secs(60)));
    let told = message(stage.ask().await.0);
    assert_eq!(told, "the model a:one did not answer: connection refused (8 attempts)");
    assert_eq!(stage.pauses(), [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
    let lucky =
        Stepped { start: Instant::now(), pauses: Mutex::default(), chance: 0.0, slots: stage.shared.slots.clone() };
    stage.time = Arc::new(lucky);
    stage.shared.time = stage.time.clone();
    drop(stage.ask().await);
    assert_eq!(stage.pauses(), [250, 500, 1000, 2000, 4000, 5000, 5000]);
}

#[tokio::test(flavor = "current_thread")]
async fn what_a_provider_asks_to_wait_is_waited_up_to_the_limit() {
    let lines = [
        Say::Silent { retryable: true, after: Some(7) },
        Say::Silent { retryable: true, after: Some(0) },
        Say::Words(&["x"]),
    ];
    let stage = Stage::new(&[("a:one", &lines)]);
    assert_eq!(stage.ask().await.0.unwrap().text, "x");
    assert_eq!(stage.pauses(), [7000, 1000]);
    let long = [Say::Silent { retryable: true, after: Some(11) }];
    let stage = Stage::new(&[("a:one", &long), ("b:two", &[Say::Words(&["y"])])]);
    assert_eq!(stage.ask().await.0.unwrap().text, "y");
    assert_eq!((stage.pauses(), stage.actors[0].asked()), (vec![], 1));
    let stage = Stage::new(&[("a:one", &long)]);
    let error = stage.ask().await.0.unwrap_err();
    assert_eq!(error.to_string(), "the model a:one did not answer: connection refused (it asks to wait 11 s)");
    assert!(
        matches!(error, LlmError::Unavailable { retryable: true, retry_after: Some(after), .. } if after.as_secs() == 11)
    );
}

#[tokio::test(flavor = "current_thread")]
async fn refusals_and_what_will_not_pass_go_to_the_fallback_at_once() {
    for line in [Say::Refuses, Say::Silent { retryable: false, after: None }] {
        let stage = Stage::new(&[("a:one", &[line]), ("b:two", &[Say::Words(&["y"])])]);
        assert_eq!(stage.ask().await.0.unwrap().text, "y");
        assert_eq!((stage.pauses(), stage.actors[0].asked()), (vec![], 1));
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_script_ends_the_call() {
    let stage = Stage::new(&[("a:one", &[Say::Script]), ("b:two", &[Say::Words(&["y"])])]);
    assert!(matches!(stage.ask().await.0, Err(LlmError::Script(_))));
    assert_eq!((stage.actors[0].asked(), stage.actors[1].asked()), (1, 0));
}

#[tokio::test(flavor = "current_thread")]
async fn the_error_says_what_each_model_said() {
    let stage = Stage::new(&[("a:one", &[DOWN]), ("b:two", &[Say::Refuses])]);
    let error = stage.ask().await.0.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the model a:one did not answer: connection refused (3 attempts); the fallback b:two refused: the key is wrong"
    );
    assert!(matches!(error, LlmError::Unavailable { retryable: true, .. }));
    let stage = Stage::new(&[("a:one", &[Say::Refuses]), ("b:two", &[Say::Refuses])]);
    let error = stage.ask().await.0.unwrap_err();
    assert!(matches!(error, LlmError::Refused { .. }), "{error}");
    assert!(error.to_string().ends_with("the fallback b:two refused: the key is wrong"), "{error}");
}

#[tokio::test(flavor = "current_thread")]
async fn an_endpoint_that_keeps_failing_is_left_alone_and_tried_again_later() {
    let lines = [DOWN, DOWN, DOWN, DOWN, DOWN, Say::Words(&["back"])];
    let stage = Stage::new(&[("a:one", &lines), ("b:two", &[Say::Words(&["y"])])]);
    for asked in [3, 5, 5, 5] {
        assert_eq!(stage.ask().await.0.unwrap().text, "y");
        assert_eq!(stage.actors[0].asked(), asked);
    }
    stage.time.pauses.lock().unwrap().push(Duration::from_secs(60));
    assert_eq!(stage.ask().await.0.unwrap().text, "back");
    // Without a fallback, the error contains the reason.
    let stage = Stage::new(&[("a:one", &[DOWN])]);
    assert!(message(stage.ask().await.0).contains("connection refused (3 attempts)"));
    assert!(message(stage.ask().await.0).contains("connection refused (2 attempts)"));
    let told = message(stage.ask().await.0);
    assert!(told.contains("it failed 5 times in a row, and it is left alone for 59 s more"), "{told}");
    // No call waits for it.
    let held = stage.shared.slots.acquire(crate::Priority::Interactive).await;
    let (chain, request) = (stage.chain(), Request::new(Role::Worker, String::new(), String::new()));
    let mut ear = Ear::default();
    let mut call = chain.complete(&request, &mut ear);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(call.as_mut().poll(&mut context).is_ready());
    drop(held);
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_built_in_needs_no_slot() {
    let stage = Stage::new(&[("a:one", &[DOWN]), ("built-in", &[Say::Words(&["y"])])]);
    assert_eq!(stage.ask().await.0.unwrap().usage.cost_micros, 0);
    let held = stage.shared.slots.acquire(crate::Priority::Interactive).await;
    let stage = Stage { actors: stage.actors[1..].to_vec(), ..stage };
    let request = Request::new(Role::Worker, String::new(), String::new());
    assert_eq!(stage.chain().complete(&request, &mut Ear::default()).await.unwrap().text, "y");
    drop(held);
}

/// Dropping a call releases its slot, even while it waits for an answer.
#[tokio::test(flavor = "current_thread")]
async fn a_call_that_is_dropped_leaves_nothing_behind() {
    struct Never;
    impl Model for Never {
        fn name(&self) -> &str {
            "a:never"
        }
        fn complete<'a>(&'a self, _: &'a Request, _: &'a mut dyn Sink) -> Completing<'a> {
            Box::pin(std::future::pending())
        }
    }
    let stage = Stage::new(&[("a:one", &[DOWN])]);
    let breaker = Arc::new(Breaker::new(1, Duration::ZERO));
    breaker.enter(stage.time.start).unwrap().failed(stage.time.start);
    let remote = Some(Remote { breaker: breaker.clone(), price: Price::default() });
    let chain = Chain::new(Link { model: Arc::new(Never), remote, max_output_tokens: 9 }, vec![], stage.shared.clone());
    let (request, mut ear) = (Request::new(Role::Worker, String::new(), String::new()), Ear::default());
    let mut call = chain.complete(&request, &mut ear);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(call.as_mut().poll(&mut context).is_pending());
    assert_eq!(stage.shared.slots.free(), 0);
    assert!(breaker.check(stage.time.start).is_err(), "one call finds out");
    drop(call);
    assert_eq!(stage.shared.slots.free(), 1);
    assert_eq!(breaker.check(stage.time.start), Ok(()));
}
