//! The bytes to write on for one read: the same bytes, uncopied, as long as nothing changes.

use bytes::{Bytes, BytesMut};

/// Collects what is to be written on, piece by piece.
#[derive(Debug)]
pub(super) struct Forward {
    chunk: Bytes,
    /// Bytes at the front of `chunk` that pass as they are.
    same: usize,
    /// All that passes, once it differs from `chunk`.
    changed: Option<BytesMut>,
}

impl Forward {
    /// `chunk`: what was read.
    pub(super) fn new(chunk: Bytes) -> Forward {
        Forward { chunk, same: 0, changed: None }
    }

    /// The next piece was `raw_len` bytes of the chunk; `forward` passes in its place.
    pub(super) fn push(&mut self, raw_len: usize, forward: &Bytes) {
        let place = self.chunk.get(self.same..).unwrap_or_default();
        let is_same = forward.len() == raw_len && (raw_len == 0 || forward.as_ptr() == place.as_ptr());
        match &mut self.changed {
            None if is_same => self.same += raw_len,
            None => {
                let mut changed = BytesMut::from(self.chunk.get(..self.same).unwrap_or_default());
                changed.extend_from_slice(forward);
                self.changed = Some(changed);
            }
            Some(changed) => changed.extend_from_slice(forward),
        }
    }

    /// What to write on. Bytes that no piece was pushed for do not pass.
    pub(super) fn finish(self) -> Bytes {
        match self.changed {
            Some(changed) => changed.freeze(),
            None => self.chunk.slice(..self.same),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_pieces_are_not_copied_and_changed_ones_take_their_place() {
        let chunk = Bytes::from_static(b"abcdef");
        let mut same = Forward::new(chunk.clone());
        same.push(2, &chunk.slice(..2));
        same.push(0, &Bytes::new());
        same.push(3, &chunk.slice(2..5));
        let out = same.finish();
        assert_eq!((out.as_ptr(), out.len()), (chunk.as_ptr(), 5));

        let mut changed = Forward::new(chunk.clone());
        changed.push(2, &chunk.slice(..2));
        changed.push(2, &Bytes::from_static(b"XYZ"));
        changed.push(1, &Bytes::new());
        changed.push(1, &chunk.slice(5..));
        assert_eq!(changed.finish(), "abXYZf");
    }
}
