//! What the service manager hears of `run` while it runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::interval;
use tracing::error;

use crate::admin::Progress;
use crate::systemd::{self, Notifier};
use crate::view::View;

/// How often `systemctl status` is given new figures.
const STATUS: Duration = Duration::from_secs(10);

/// Tells of figures, and gives signs of life for as long as the workers make progress: by the judgement of `/livez`.
pub(super) async fn report(notifier: Arc<Notifier>, view: Arc<View>) {
    if !notifier.is_heard() {
        return;
    }
    let watchdog = systemd::watchdog();
    // Three signs within the time of one: a machine under load may delay two.
    let mut tick = interval(watchdog.map_or(STATUS, |time| (time / 3).min(STATUS)));
    let (mut progress, mut told, mut stuck) = (Progress::default(), Instant::now(), false);
    loop {
        tick.tick().await;
        let now = Instant::now();
        // A stop takes the time that it is given, with nobody reading any more.
        let live = match view.is_stopping() {
            true => Ok(()),
            false => progress.look(now, &view.worker_states(), Ok(())).live,
        };
        match live {
            Ok(()) => {
                stuck = false;
                if watchdog.is_some() {
                    notifier.alive();
                }
                if now.duration_since(told) >= STATUS && !view.is_stopping() {
                    told = now;
                    notifier.status(&status(&view));
                }
            }
            Err(why) => {
                if !std::mem::replace(&mut stuck, true) {
                    error!(why, "no more signs of life for the service manager");
                }
                notifier.status(&why);
            }
        }
    }
}

/// One line for `systemctl status`.
pub(super) fn status(view: &View) -> String {
    let (config, report) = (view.config(), view.report());
    let addresses: Vec<_> = config.listeners.iter().map(|listener| listener.address.to_string()).collect();
    format!(
        "listening on {} with {} workers: {} received, {} delivered, {} in memory, {} dropped by the kernel",
        addresses.join(", "),
        report.workers.len(),
        report.received,
        report.delivered,
        report.in_memory,
        report.kernel_drops
    )
}
