//! Several messages at once: revision 2025-03-26 only (RPC-22). Their answers go out together.

use bytes::{BufMut, Bytes, BytesMut};

use crate::peer::server::calls::Calls;
use crate::peer::server::core::Outgoing;
use crate::peer::server::outlet::{Outflow, Outlet};

/// Carries what the handlers of a batch say to `to`: notifications and questions as they come, and
/// one array of all answers when the last handler has ended. `answers`: those that are there
/// already. Without any answer nothing is sent (JSON-RPC 2.0, section 6).
pub(super) async fn gather(mut answers: Vec<Bytes>, mut from: Outflow, to: Outlet, calls: Calls) {
    while let Some(outgoing) = from.recv().await {
        if !outgoing.may_leave() {
            continue;
        }
        if outgoing.status.is_none() {
            // Its request may be over, here, before this is written: it goes out all the same.
            let outgoing = if outgoing.is_pause() { outgoing } else { Outgoing { live: None, ..outgoing } };
            if to.send(outgoing).await.is_err() {
                return;
            }
        } else {
            if let Some(live) = &outgoing.live {
                calls.take(&live.id);
            }
            answers.push(outgoing.body);
        }
    }
    if answers.is_empty() {
        return;
    }
    // Nobody is left to tell if it fails.
    let _ = to.send(Outgoing::new(None, array(&answers), Some(200))).await;
}

/// Messages as one array.
fn array(messages: &[Bytes]) -> Bytes {
    let mut array = BytesMut::from(&b"["[..]);
    for (idx, message) in messages.iter().enumerate() {
        if idx > 0 {
            array.put_u8(b',');
        }
        array.extend_from_slice(message);
    }
    array.put_u8(b']');
    array.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::server::outlet::outlet;

    fn say(body: &'static str, status: Option<u16>) -> Outgoing {
        Outgoing::new(None, Bytes::from_static(body.as_bytes()), status)
    }

    #[tokio::test]
    async fn answers_go_out_together_at_the_end_and_nothing_goes_out_without_any() {
        for (first, said, expected) in [
            (vec![], vec![], vec![]),
            (vec![], vec![say("n", None)], vec!["n"]),
            (vec![], vec![say("1", Some(200)), say("n", None), say("2", Some(200))], vec!["n", "[1,2]"]),
            (vec!["0"], vec![say("1", Some(200))], vec!["[0,1]"]),
            (vec!["0"], vec![], vec!["[0]"]),
        ] {
            let (from, taken) = outlet(None);
            let (to, mut got) = outlet(None);
            for outgoing in said {
                from.send(outgoing).await.unwrap();
            }
            drop(from);
            gather(first.into_iter().map(Bytes::from).collect(), taken, to, Calls::default()).await;
            let mut bodies = Vec::new();
            while let Some(outgoing) = got.recv().await {
                bodies.push(String::from_utf8(outgoing.body.to_vec()).unwrap());
            }
            assert_eq!(bodies, expected);
        }
    }
}
