//! The gap between check and effect, for the fault that leaves one: calls with one key meet in it,
//! so that the double effect comes about every time and not by luck.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::time::Ms;

/// How long a call waits for another one with its key. ours: enough for a second call made by hand
/// or by another process; a call that stays alone goes on then.
const WAIT: Ms = Ms(1000);

#[derive(Debug, Default)]
pub(super) struct Gap(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    /// Who waits, by key; the number tells one call from the next.
    by_key: HashMap<String, (u64, oneshot::Sender<()>)>,
}

impl Gap {
    /// Returns when another call with this key is here too, or does not come.
    pub(super) async fn meet(&self, key: &str) {
        let (number, met) = {
            let mut waiting = self.lock();
            if let Some((_, other)) = waiting.by_key.remove(key) {
                // It gave up waiting in this very moment, and acts as well.
                let _ = other.send(());
                return;
            }
            waiting.last += 1;
            let number = waiting.last;
            let (tell, met) = oneshot::channel();
            waiting.by_key.insert(key.to_owned(), (number, tell));
            (number, met)
        };
        if tokio::time::timeout(WAIT.into(), met).await.is_err() {
            let mut waiting = self.lock();
            if waiting.by_key.get(key).is_some_and(|(other, _)| *other == number) {
                waiting.by_key.remove(key);
            }
        }
    }

    /// A poisoned lock is still good: no step can stop midway.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::TimerClock;

    #[tokio::test(start_paused = true)]
    async fn two_of_one_key_meet_and_one_alone_goes_on_in_the_end() {
        let (gap, clock) = (Gap::default(), TimerClock::start());
        tokio::join!(gap.meet("a"), gap.meet("a"));
        assert_eq!(clock.now(), Ms(0), "they met");
        tokio::join!(gap.meet("a"), gap.meet("b"));
        assert_eq!(clock.now(), WAIT, "neither met anybody");
        assert!(gap.lock().by_key.is_empty());
    }
}
