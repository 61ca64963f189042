//! Questions of the server that wait for the client's answer: the legacy eras only.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::wire::jsonrpc::Id;

/// What the client says: a result, or the text of its error.
pub(super) type Said = Result<Value, String>;

/// The open questions of one session.
#[derive(Debug, Default)]
pub(super) struct Questions {
    last_id: AtomicI64,
    open: Mutex<HashMap<Id, oneshot::Sender<Said>>>,
}

impl Questions {
    /// Opens a question: the id to ask it under, and where its answer will come. An id is never
    /// given out twice.
    pub(super) fn open(&self) -> (Id, oneshot::Receiver<Said>) {
        let id = Id::from(self.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        let (tell, told) = oneshot::channel();
        self.lock().insert(id.clone(), tell);
        (id, told)
    }

    /// The client's answer came; false: to no open question.
    pub(super) fn answer(&self, id: &Id, said: Said) -> bool {
        let waiting = self.lock().remove(id);
        // A handler that is gone does not wait any more.
        waiting.is_some_and(|tell| tell.send(said).is_ok())
    }

    /// Nobody waits for this answer any more.
    pub(super) fn give_up(&self, id: &Id) {
        self.lock().remove(id);
    }

    /// A poisoned lock is still good: no step can stop midway.
    fn lock(&self) -> MutexGuard<'_, HashMap<Id, oneshot::Sender<Said>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn an_answer_comes_to_its_question_once() {
        let questions = Questions::default();
        let (first, told) = questions.open();
        let (second, _) = questions.open();
        assert_ne!(first, second);
        assert!(questions.answer(&first, Ok(json!({ "roots": [] }))));
        assert!(!questions.answer(&first, Ok(json!({}))), "answered before");
        assert_eq!(told.await.unwrap(), Ok(json!({ "roots": [] })));
        questions.give_up(&second);
        assert!(!questions.answer(&second, Err("late".to_owned())));
    }
}
