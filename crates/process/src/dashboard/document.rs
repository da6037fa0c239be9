//! JSON documents with a row for each actor, rendered while they are read. So a reader that is slow, or reads nothing,
//! costs a list of paths and one piece, and not a copy of all rows.

use std::{sync::Arc, vec};

use bytes::Bytes;
use kit::{ActorState, StatusRegistry};
use serde::Serialize;

/// Bytes after which a piece is complete. As much waits in the buffer of a connection.
const PIECE: usize = 32 * 1024;

/// Appends the row of an actor.
pub(super) type RowWriter = fn(&ActorState, &mut Vec<u8>);

/// The pieces of a document. Each row is as new as its piece, or newer than the rest of the document. The row of an actor
/// that has ended meanwhile is left out.
pub(super) struct Document {
    registry: StatusRegistry,
    write_row: RowWriter,
    /// Actors whose rows are missing.
    paths: vec::IntoIter<Arc<str>>,
    has_rows: bool,
    /// What comes after the rows. Empty at the end.
    end: &'static str,
    piece: Vec<u8>,
}

impl Document {
    /// A document with the fields of `head`, which has at least one, and the field `actors`. It stands between `begin` and
    /// `end`.
    pub(super) fn new(
        registry: StatusRegistry,
        paths: Vec<Arc<str>>,
        write_row: RowWriter,
        (begin, head, end): (&str, &impl Serialize, &'static str),
    ) -> Self {
        let mut piece = begin.as_bytes().to_vec();
        render(head, &mut piece);
        piece.pop(); // the brace, which is in `end`
        piece.extend_from_slice(b",\"actors\":[");
        Self { registry, write_row, paths: paths.into_iter(), has_rows: false, end, piece }
    }
}

impl Iterator for Document {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        while self.piece.len() < PIECE
            && let Some(path) = self.paths.next()
        {
            let Some(actor) = self.registry.actor(&path) else { continue };
            if std::mem::replace(&mut self.has_rows, true) {
                self.piece.push(b',');
            }
            (self.write_row)(&actor, &mut self.piece);
        }
        if self.paths.as_slice().is_empty() {
            self.piece.extend_from_slice(std::mem::take(&mut self.end).as_bytes());
        }
        let piece = std::mem::take(&mut self.piece);
        (!piece.is_empty()).then(|| piece.into())
    }
}

/// Appends a value as JSON, `{}` if that fails.
pub(super) fn render(value: &impl Serialize, to: &mut Vec<u8>) {
    let begin = to.len();
    if let Err(error) = serde_json::to_writer(&mut *to, value) {
        tracing::error!(%error, "Could not render the dashboard");
        to.truncate(begin);
        to.extend_from_slice(b"{}");
    }
}

#[cfg(test)]
mod tests {
    use kit::Role;
    use serde_json::{Value, json};

    use super::*;
    use crate::dashboard::row::Row;

    fn document(registry: &StatusRegistry) -> Document {
        let write_row: RowWriter = |actor, piece| render(&Row::whole(actor), piece);
        Document::new(registry.clone(), registry.paths(), write_row, ("", &json!({"version": 1}), "]}"))
    }

    fn enter(registry: &StatusRegistry, actors: usize) {
        for number in 0..actors {
            let cell = registry.enter(format!("a/{number:05}"), Role::Object);
            cell.update(jiff::Timestamp::UNIX_EPOCH, |state| state.line = "x".repeat(200));
        }
    }

    #[test]
    fn document_has_the_row_of_each_actor_in_pieces() {
        for actors in [0, 1, 2, 1000] {
            let registry = StatusRegistry::default();
            enter(&registry, actors);

            let pieces: Vec<_> = document(&registry).collect();

            assert!(pieces.iter().all(|piece| piece.len() < PIECE + 1024));
            let document: Value = serde_json::from_slice(&pieces.concat()).unwrap();
            assert_eq!((&document["version"], document["actors"].as_array().unwrap().len()), (&json!(1), actors));
        }
    }

    #[test]
    fn document_leaves_out_actors_that_end_while_it_is_read() {
        let registry = StatusRegistry::default();
        enter(&registry, 1000);
        let mut document = document(&registry);

        let mut pieces = vec![document.next().unwrap()];
        (500..1000).for_each(|number| registry.leave(&format!("a/{number:05}")));
        pieces.extend(document);

        let document: Value = serde_json::from_slice(&pieces.concat()).unwrap();
        assert_eq!(document["actors"].as_array().unwrap().len(), 500);
    }
}
