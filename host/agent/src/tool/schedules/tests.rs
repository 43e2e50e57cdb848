use super::*;
use kiso_base::home::Home;
use kiso_store::store::MessageRole;

const HOUR: i64 = 3_600_000;

/// 2026-11-22T00:00:00Z
const MIDNIGHT: i64 = 1_795_305_600_000;

struct House {
    dir: tempfile::TempDir,
    schedules: Schedules,
}

fn house() -> House {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::open(&dir.path().join("home")).unwrap();
    let store = Store::open(&dir.path().join("store.db")).unwrap();
    House { schedules: Schedules::new(&Config::default(), &store, &Vault::open(&home)), dir }
}

fn wanted(name: &str, timing: &str) -> ScheduleRequest {
    ScheduleRequest {
        label: Default::default(),
        name: name.to_owned(),
        timing: timing.to_owned(),
        zone: Some("UTC".to_owned()),
        message: "look at the sea".to_owned(),
        session: None,
        model: None,
        caller: CallerScope::User,
    }
}

impl House {
    async fn add(&self, wanted: ScheduleRequest) -> Result<Schedule, String> {
        self.schedules.add(wanted, MIDNIGHT).await.map_err(|error| error.to_string())
    }

    /// Returns the due times of a schedule's receipts, in hours since midnight, oldest first.
    async fn due(&self, name: &str) -> Vec<i64> {
        let receipts = self.schedules.receipts(Some(name), None, 100).await.unwrap();
        receipts.iter().rev().map(|receipt| (receipt.due_ms - MIDNIGHT) / HOUR).collect()
    }

    /// Ends waiting work, so that the next time is not skipped.
    async fn answer(&self, name: &str) {
        let session = session_of(name).unwrap();
        let store = &self.schedules.store;
        store.write(move |tx| tx.cancel_queued(&session, "{}", "seen", 0)).await.unwrap().expect("it waits");
    }
}

#[tokio::test]
async fn what_is_due_comes_once_and_what_was_missed_comes_once_for_all() {
    let house = house();
    house.add(wanted("sea", "0 * * * *")).await.unwrap();
    let fire = async |at| house.schedules.fire_due(at).await.unwrap().map(|next| (next - MIDNIGHT) / HOUR);
    assert_eq!((fire(MIDNIGHT + HOUR - 1).await, house.due("sea").await), (Some(1), vec![]));
    assert_eq!((fire(MIDNIGHT + HOUR).await, house.due("sea").await), (Some(2), vec![1]));
    assert_eq!((fire(MIDNIGHT + HOUR + 5).await, house.due("sea").await), (Some(2), vec![1]));
    house.answer("sea").await;
    // The daemon was not running for hours: the receipt has the first of the missed times.
    assert_eq!((fire(MIDNIGHT + 9 * HOUR + 5).await, house.due("sea").await), (Some(10), vec![1, 2]));
    let receipt = house.schedules.receipts(None, None, 1).await.unwrap().remove(0);
    assert_eq!((receipt.fired_ms - receipt.due_ms, receipt.by_hand), (7 * HOUR + 5, false));
    let of = session_of("sea").unwrap();
    let messages = house.schedules.store.read(move |view| view.last_messages(&of, 10)).await.unwrap();
    assert_eq!(messages.iter().filter(|message| message.role == MessageRole::User).count(), 2);
}

#[tokio::test]
async fn a_single_time_is_over_when_it_came() {
    let house = house();
    house.add(wanted("once", "at 2026-11-22 03:00")).await.unwrap();
    assert_eq!(house.schedules.fire_due(MIDNIGHT + 4 * HOUR).await.unwrap(), None);
    assert_eq!(house.due("once").await, [3]);
    let over = house.schedules.one("once").await.unwrap();
    assert_eq!((over.next_ms, describe(&over).ends_with(": over")), (None, true));
    assert!(coming(&over, 5).is_empty());
    let resumed = house.schedules.pause("once", false, CallerScope::User, MIDNIGHT).await.unwrap();
    assert_eq!(resumed.next_ms, None);
}

#[tokio::test]
async fn a_clock_that_is_put_back_brings_nothing_twice_and_holds_nothing_up() {
    let house = house();
    house.add(wanted("sea", "0 * * * *")).await.unwrap();
    let hours = async || (house.schedules.one("sea").await.unwrap().next_ms.unwrap() - MIDNIGHT) / HOUR;
    house.schedules.fire_due(MIDNIGHT + HOUR).await.unwrap();
    house.answer("sea").await;
    // Corrected by minutes: the time that has fired does not fire again.
    house.schedules.mend(MIDNIGHT + HOUR - 600_000).await.unwrap();
    assert_eq!((hours().await, house.schedules.fire_due(MIDNIGHT + HOUR).await.unwrap().is_some()), (2, true));
    assert_eq!(house.due("sea").await, [1]);
    // The clock was a year ahead, the schedule fired, and the clock is corrected.
    house.schedules.fire_due(MIDNIGHT + 8_760 * HOUR).await.unwrap();
    assert!(hours().await > 8_000);
    house.schedules.mend(MIDNIGHT + 5 * HOUR + 1).await.unwrap();
    assert_eq!(hours().await, 6);
}

#[tokio::test]
async fn what_rests_misses_its_times_and_goes_on_with_the_next() {
    let house = house();
    house.add(wanted("sea", "0 * * * *")).await.unwrap();
    let pause =
        async |paused, at| house.schedules.pause("sea", paused, CallerScope::User, at).await.unwrap().next_ms.unwrap();
    pause(true, MIDNIGHT).await;
    assert_eq!(house.schedules.fire_due(MIDNIGHT + 5 * HOUR).await.unwrap(), None);
    assert_eq!(pause(false, MIDNIGHT + 5 * HOUR + 1).await, MIDNIGHT + 6 * HOUR);
    pause(true, MIDNIGHT + 5 * HOUR + 2).await;
    assert_eq!(pause(false, MIDNIGHT + 5 * HOUR + 3).await, MIDNIGHT + 6 * HOUR, "none of them passed meanwhile");
    assert!(house.due("sea").await.is_empty());
    house.schedules.run("sea", CallerScope::User, MIDNIGHT + 5 * HOUR + 4).await.unwrap();
    let waiting = house.schedules.run("sea", CallerScope::User, MIDNIGHT + 5 * HOUR + 5).await.unwrap_err();
    assert!(matches!(waiting, ScheduleError::StillWaiting));
    assert_eq!(house.schedules.one("sea").await.unwrap().next_ms, Some(MIDNIGHT + 6 * HOUR), "a hand moves nothing");
}

#[tokio::test]
async fn a_schedule_of_an_administrator_is_not_a_users() {
    let house = house();
    let all = &house.schedules;
    house.add(ScheduleRequest { caller: CallerScope::Admin, ..wanted("root", "@daily") }).await.unwrap();
    house.add(wanted("mine", "@daily")).await.unwrap();
    assert!(matches!(all.remove("root", CallerScope::User).await, Err(ScheduleError::Forbidden { .. })));
    assert!(matches!(all.run("root", CallerScope::User, MIDNIGHT).await, Err(ScheduleError::Forbidden { .. })));
    assert!(matches!(all.pause("root", true, CallerScope::User, MIDNIGHT).await, Err(ScheduleError::Forbidden { .. })));
    all.remove("mine", CallerScope::User).await.unwrap();
    all.remove("root", CallerScope::Admin).await.unwrap();
    assert!(matches!(all.remove("root", CallerScope::Admin).await, Err(ScheduleError::Unknown { .. })));
}

#[tokio::test]
async fn what_cannot_be_scheduled_is_told_why() {
    let house = house();
    house.add(wanted("sea", "@daily")).await.unwrap();
    let refused = async |wanted| house.add(wanted).await.unwrap_err();
    assert!(refused(wanted("sea", "@hourly")).await.contains("already"));
    for name in ["", "-a", "A", "a b", &"a".repeat(41), "a.b"] {
        assert!(refused(wanted(name, "@daily")).await.contains("cannot be the name"), "{name}");
    }
    let often = refused(wanted("a", "*/30 * * * * *")).await;
    assert!(often.contains("every 30 seconds; at least 60") && often.contains("schedule.min_interval_s"), "{often}");
    assert!(refused(wanted("a", "at 2026-11-21 00:00")).await.contains("is in the past"));
    assert!(refused(ScheduleRequest { message: "  ".to_owned(), ..wanted("a", "@daily") }).await.contains("empty"));
    let long = ScheduleRequest { message: "x".repeat(MAX_MESSAGE + 1), ..wanted("a", "@daily") };
    assert!(refused(long).await.contains("at most 16384"));
    let model = ScheduleRequest { model: Some("x:y".to_owned()), ..wanted("a", "@daily") };
    assert!(refused(model).await.contains("there are reflex"));
    let own = ScheduleRequest { session: Some(session_of("a").unwrap()), ..wanted("a", "@daily") };
    assert!(refused(own).await.contains("its own session"));
    for n in 1..100 {
        house.add(wanted(&format!("s{n}"), "@daily")).await.unwrap();
    }
    assert!(refused(wanted("a", "@daily")).await.contains("schedule.max_schedules"));
}

#[tokio::test]
async fn a_credential_is_nowhere_in_clear() {
    let house = house();
    let secret = "ghp_7Qx29aB31kLmN04pQrStUvWxYz012345";
    let wanted = ScheduleRequest { message: format!("ask with the token {secret}"), ..wanted("ask", "@hourly") };
    let schedule = house.add(wanted).await.unwrap();
    assert_eq!(house.schedules.message(&schedule).unwrap(), "ask with the token [secret github_token]");
    house.schedules.fire_due(MIDNIGHT + HOUR).await.unwrap();
    let kept = house.schedules.vault.load(&house.schedules.store, &session_of("ask").unwrap()).await.unwrap();
    assert_eq!((kept.len(), kept[0].1.expose()), (1, secret), "the session that works for it has it");
    house.schedules.store.close();
    let bytes = std::fs::read(house.dir.path().join("store.db")).unwrap();
    let holds = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!holds(secret) && !holds("ask with the token"));
}
