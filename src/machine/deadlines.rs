//! The two clocks of a request: idle, restarted by accepted progress, and maximum, restarted by
//! nothing.

use thiserror::Error;

use crate::time::Ms;

/// Which clock ended a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fired {
    /// Nothing was heard of the request for too long.
    Idle,
    /// The request has been open for too long, whatever was heard.
    Maximum,
}

impl Fired {
    /// The reason as it is given to the other side.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Fired::Idle => "idle timeout",
            Fired::Maximum => "maximum timeout",
        }
    }
}

/// Limits that no request can be started with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadLimits {
    /// The idle limit is zero.
    #[error("the idle limit is 0 ms; give at least 1 ms")]
    NoIdle,
    /// The maximum is below the idle limit.
    #[error("the maximum of {max} ms is below the idle limit of {idle} ms; raise the one or lower the other")]
    MaximumBelowIdle {
        /// The idle limit, ms.
        idle: u64,
        /// The maximum, ms.
        max: u64,
    },
}

/// The deadlines of one request. All times are of one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    started: Ms,
    last_activity: Ms,
    idle: Ms,
    max: Ms,
}

impl Deadlines {
    /// Deadlines of a request that starts at `started`.
    ///
    /// # Errors
    /// When `idle` is zero or `max` is below `idle`.
    pub fn new(started: Ms, idle: Ms, max: Ms) -> Result<Deadlines, BadLimits> {
        if idle.0 == 0 {
            return Err(BadLimits::NoIdle);
        }
        if max < idle {
            return Err(BadLimits::MaximumBelowIdle { idle: idle.0, max: max.0 });
        }
        Ok(Deadlines { started, last_activity: started, idle, max })
    }

    /// Accepted progress of this very request came at `now`; nothing else may call this
    /// (`// ours:` not comments, raw bytes, heads, logs, nor what belongs to other requests).
    pub fn restart_idle(&mut self, now: Ms) {
        self.last_activity = self.last_activity.max(now);
    }

    /// The deadline that has fired at `now`, if any. Reaching a limit counts as firing it; when
    /// both are due, the maximum is the reason.
    #[must_use]
    pub fn fired(&self, now: Ms) -> Option<Fired> {
        if self.max_at() <= now {
            return Some(Fired::Maximum);
        }
        if self.idle_at() <= now {
            return Some(Fired::Idle);
        }
        None
    }

    /// When the next deadline fires if nothing more is heard.
    #[must_use]
    pub fn next_at(&self) -> Ms {
        self.idle_at().min(self.max_at())
    }

    fn idle_at(&self) -> Ms {
        Ms(self.last_activity.0.saturating_add(self.idle.0))
    }

    fn max_at(&self) -> Ms {
        Ms(self.started.0.saturating_add(self.max.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::request::{ClientRequest, Heard};

    /// What a client hears, at which millisecond.
    #[derive(Clone, Copy)]
    enum Step {
        Progress(f64, u64),
        Comment(u64),
        Response(u64),
    }
    use Step::{Comment, Progress, Response};

    /// Idle 500, maximum 2000, start 0. A real timer looks at every deadline as it comes due;
    /// `looks` are moments at which somebody looks anyway, with what is then seen.
    fn check(name: &str, steps: &[Step], ends: Option<(u64, Fired)>) {
        let limits = Deadlines::new(Ms(0), Ms(500), Ms(2000)).unwrap();
        let mut request = ClientRequest::new(limits);
        let mut fired = None;
        let end = [Comment(5000)];
        for step in steps.iter().chain(&end) {
            let (Progress(_, at) | Comment(at) | Response(at)) = *step;
            if let Some(due) = request.due_at()
                && due.0 <= at
            {
                fired = request.expire(due).map(|reason| (due.0, reason));
                break;
            }
            match *step {
                Progress(value, _) => {
                    request.progress(value, Ms(at));
                }
                Comment(_) => {}
                Response(_) => assert!(request.answer(), "{name}"),
            }
        }
        assert_eq!(fired, ends, "{name}");
    }

    #[test]
    fn the_vectors_of_the_two_clocks_hold() {
        let p = |at: u64| {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            Progress(at as f64, at)
        };
        let comments: Vec<Step> = (1..=10).map(|k| Comment(k * 100)).collect();
        check("T1", &[p(100)], Some((600, Fired::Idle)));
        check("T2", &[p(400), p(800), p(1200)], Some((1700, Fired::Idle)));
        check("T3", &[p(400), p(800), p(1200), p(1600), p(1999)], Some((2000, Fired::Maximum)));
        check("T4", &[Progress(1.0, 450), Progress(1.0, 940)], Some((950, Fired::Idle)));
        check("T5", &[], Some((500, Fired::Idle)));
        check("T6", &comments, Some((500, Fired::Idle)));
        check("T7", &[Response(499)], None);
    }

    #[test]
    fn both_due_at_the_first_look_is_the_maximum() {
        let mut limits = Deadlines::new(Ms(0), Ms(500), Ms(2000)).unwrap();
        for at in [400, 800, 1200] {
            limits.restart_idle(Ms(at));
        }
        assert_eq!(limits.fired(Ms(1500)), None);
        assert_eq!(limits.fired(Ms(1700)), Some(Fired::Idle));
        assert_eq!(limits.fired(Ms(2000)), Some(Fired::Maximum));
    }

    #[test]
    fn the_edges_are_inclusive() {
        let limits = Deadlines::new(Ms(10), Ms(500), Ms(500)).unwrap();
        assert_eq!(limits.fired(Ms(509)), None);
        assert_eq!(limits.fired(Ms(510)), Some(Fired::Maximum));
        let mut request = ClientRequest::new(Deadlines::new(Ms(0), Ms(500), Ms(2000)).unwrap());
        assert_eq!(request.progress(1.0, Ms(450)), Heard::Accepted);
        assert_eq!(request.fired(Ms(949)), None);
        assert_eq!(request.fired(Ms(950)), Some(Fired::Idle));
    }

    #[test]
    fn senseless_limits_are_refused() {
        assert_eq!(Deadlines::new(Ms(0), Ms(0), Ms(10)), Err(BadLimits::NoIdle));
        let below = Deadlines::new(Ms(0), Ms(11), Ms(10));
        assert_eq!(below, Err(BadLimits::MaximumBelowIdle { idle: 11, max: 10 }));
        assert!(Deadlines::new(Ms(0), Ms(10), Ms(10)).is_ok());
        let forever = Deadlines::new(Ms(5), Ms(u64::MAX), Ms(u64::MAX)).unwrap();
        assert_eq!(forever.fired(Ms(u64::MAX - 1)), None);
    }
}
