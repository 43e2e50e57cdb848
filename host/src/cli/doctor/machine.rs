//! The machine: its clock, the file system of the home, memory.

use std::path::Path;

use super::Finding;
use kiso_base::clock::now_ms;
use kiso_base::config::Config;
use kiso_base::home::Home;
use kiso_base::system::{Storage, machine_memory, storage};
use kiso_plan::report::size;
use kiso_store::store::{Placement, Store};

/// Tolerated milliseconds by which a clock was set back: time servers do so.
const PUT_BACK: i64 = 60_000;

/// The directory in which systemd-timesyncd records that it has reached a time server.
const TIMESYNC: &str = "/run/systemd/timesync";

/// Checks whether a time server sets the clock, if that is known.
pub(super) fn synchronized() -> Option<Finding> {
    let dir = Path::new(TIMESYNC);
    if !dir.is_dir() {
        return None;
    }
    Some(match dir.join("synchronized").exists() {
        true => Finding::Ok("set by a time server".to_owned()),
        false => Finding::Warn(
            "no time server has been reached since the machine started; a board without a battery then has a wrong \
             time (see `timedatectl`)"
                .to_owned(),
        ),
    })
}

/// Checks whether the clock went back since the last recorded message.
pub(super) fn jumped(store: &Store) -> Option<Finding> {
    let newest = store
        .read_blocking(|view| Ok(view.list_sessions(&Placement::ALL, None, 1)?.first().map(|line| line.active_ms)));
    let newest = newest.ok().flatten()?;
    let ahead = newest - now_ms();
    (ahead > PUT_BACK).then(|| {
        let ahead = ahead / 1_000;
        Finding::Warn(format!(
            "the last message is {ahead} s later than now: the clock was put back, or was wrong then; what is sorted by \
             time shows it last until then"
        ))
    })
}

/// Reports the home's file system, if it is known to matter.
pub(super) fn file_system(home: &Home) -> Option<Finding> {
    let path = home.path();
    let lost = |what: &str| {
        Finding::Warn(format!(
            "{} is on {what}, so its contents will be lost; move the home with --home",
            path.display()
        ))
    };
    Some(match storage(path)? {
        Storage::Memory => lost("memory (tmpfs)"),
        Storage::Overlay => lost("an overlay, as containers and read-only systems have"),
        Storage::Network => Finding::Warn(format!(
            "{} is on a network file system, where SQLite cannot lock safely; move the home to a local disk",
            path.display()
        )),
        Storage::FlashCard => {
            Finding::Ok("an SD card or eMMC, which wears out with every write; a USB SSD lasts longer".to_owned())
        }
    })
}

/// Reports memory and page size, and whether the configured parallel work fits.
pub(super) fn memory(config: Option<&Config>) -> Finding {
    let page = rustix::param::page_size();
    let pages = format!("pages of {} KiB", page >> 10);
    let Some((total, available)) = machine_memory() else { return Finding::Ok(pages) };
    let told = format!("{} of {} are available, {pages}", size(available), size(total));
    let Some(config) = config else { return Finding::Ok(told) };
    let (engine, exec) = (&config.engine, &config.exec);
    let most = (engine.max_calls.saturating_mul(engine.default_memory_mib))
        .saturating_add(exec.max_tasks.saturating_mul(exec.memory_mib))
        .saturating_mul(1 << 20);
    if most > total {
        return Finding::Warn(format!(
            "{told}; skills and exec tasks that run at once may take {}: lower engine.max_calls, exec.max_tasks or \
             exec.memory_mib",
            size(most)
        ));
    }
    Finding::Ok(told)
}
