//! Watch streams: a JSON object per line, for as long as the server likes (api-facts §3).

use std::{
    borrow::Cow,
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf as _, Bytes, BytesMut};
use futures::Stream;
use http_body::Body as _;
use kit::json;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    ApiError, Resource, Status,
    answers::{self, Share},
    cluster::{METADATA, narrow},
    resource::Query,
    slim::Slim,
    transport::{Call, JSON, Transport},
    whole::whole,
};

/// Longest line: the largest object the server accepts (3 MiB), with room for escapes.
const LONGEST_LINE: usize = 16 << 20;
const OPENING: Duration = Duration::from_secs(30); // time limit of the server's first answer

/// What to watch. Bookmarks are always requested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchQuery {
    /// Label selector in the API's syntax. An object that leaves the selection is reported as deleted.
    pub label_selector: Option<String>,
    /// Field selector in the API's syntax.
    pub field_selector: Option<String>,
    /// Changes after this version; without it, first all objects as added.
    pub resource_version: Option<String>,
    /// Objects as `PartialObjectMetadata`.
    pub metadata_only: bool,
    /// When the server ends the stream; whole seconds. The server's default is 30 to 60 minutes.
    pub timeout: Option<Duration>,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchEvent {
    /// The type of the event.
    pub kind: WatchKind,
    /// The object without `managedFields`: its last content for a deletion, only its version for a bookmark.
    pub object: Value,
}

/// Type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchKind {
    /// The object is new, or newly in the selection.
    Added,
    /// The object changed.
    Modified,
    /// The object is gone, or left the selection.
    Deleted,
    /// No change; the stream has reached this version.
    Bookmark,
}

/// An open watch. It ends after an error, and without an error when the server's time is over.
pub struct WatchStream {
    body: Body,
    framer: Lines,
    lines: VecDeque<Bytes>,
    metadata_only: bool,
    secret: bool,
    share: Share, // room for the beginning of an event
    over: bool,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    object: Option<Slim>,
}

#[derive(Default)]
struct Lines {
    rest: BytesMut,
    searched: usize, // length of the part of `rest` without a line feed
}

impl WatchStream {
    pub(super) async fn open(
        transport: &Transport,
        resource: &Resource,
        scope: Option<&str>,
        query: &WatchQuery,
    ) -> Result<Self, ApiError> {
        let seconds = query.timeout.map(|timeout| timeout.as_secs().to_string());
        let uri = Query::default()
            .with("watch", "1")
            .with("allowWatchBookmarks", "true")
            .maybe("labelSelector", query.label_selector.as_deref())
            .maybe("fieldSelector", query.field_selector.as_deref())
            .maybe("resourceVersion", query.resource_version.as_deref())
            .maybe("timeoutSeconds", seconds.as_deref())
            .after(&resource.collection_path(scope));
        // With the list's kind the stream would end empty (api-facts §3).
        let accept = if query.metadata_only { METADATA } else { JSON };
        let secret = resource.is_secret();
        let call = Call::read(uri).accepting(accept).about_secret(secret);
        // servers compress a watch event by event, and the decompression reads the first event only
        let opened = timeout(OPENING, transport.open(&call, Some("identity"))).await;
        let opened = opened.unwrap_or_else(|_| {
            transport.contact.not_answered(&ApiError::Timeout);
            Err(ApiError::Timeout)
        });
        let body = opened?.into_body();
        let (framer, lines) = (Lines::default(), VecDeque::new());
        let share = transport.room.share();
        Ok(Self { body, framer, lines, metadata_only: query.metadata_only, secret, share, over: false })
    }

    /// Returns true in the middle of an event: if the stream ends there, the event was unreadable.
    pub(super) fn is_amid_event(&self) -> bool {
        !self.framer.rest.iter().all(u8::is_ascii_whitespace)
    }

    fn end(&mut self, error: ApiError) -> Poll<Option<Result<WatchEvent, ApiError>>> {
        self.over = true;
        Poll::Ready(Some(Err(error)))
    }

    fn decode(&self, line: &[u8]) -> Result<WatchEvent, ApiError> {
        answers::check_values(line)?;
        let event: Line = json::from_slice(line).map_err(|error| ApiError::Decode(error.to_string()))?;
        let object = event.object.map_or(Value::Null, |object| object.0);
        let kind = match event.kind.as_deref().unwrap_or_default() {
            "ADDED" => WatchKind::Added,
            "MODIFIED" => WatchKind::Modified,
            "DELETED" => WatchKind::Deleted,
            "BOOKMARK" => WatchKind::Bookmark,
            "ERROR" => return Err(ApiError::Status(Status::from_object(&object, self.secret).into())),
            _ => return Err(ApiError::Decode("a watch event of unknown type".into())),
        };
        let object = whole(object)?;
        Ok(WatchEvent { kind, object: if self.metadata_only { narrow(object) } else { object } })
    }
}

impl Stream for WatchStream {
    type Item = Result<WatchEvent, ApiError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if this.over {
                return Poll::Ready(None);
            }
            if let Some(line) = this.lines.pop_front() {
                return match this.decode(&line) {
                    Ok(event) => Poll::Ready(Some(Ok(event))),
                    Err(error) => this.end(error),
                };
            }
            let broken = |message: String| ApiError::Transport { message, sent: true };
            let frame = match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(frame) => frame,
            };
            match frame {
                None if !this.is_amid_event() => this.over = true,
                None => return this.end(broken("the watch ended in the middle of an event".into())),
                Some(Err(error)) => return this.end(broken(format!("the watch broke: {error}"))),
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    let pushed = this.framer.push(&data, &mut this.lines);
                    if let Err(error) = pushed.and_then(|()| this.share.fit(this.framer.rest.len())) {
                        return this.end(error);
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for WatchStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchStream").field("over", &self.over).finish_non_exhaustive()
    }
}

impl Lines {
    fn push(&mut self, data: &[u8], lines: &mut VecDeque<Bytes>) -> Result<(), ApiError> {
        self.rest.extend_from_slice(data);
        while let Some(found) = self.rest[self.searched..].iter().position(|byte| *byte == b'\n') {
            let line = self.rest.split_to(self.searched + found).freeze();
            self.rest.advance(1);
            self.searched = 0;
            if !line.is_empty() {
                lines.push_back(line);
            }
        }
        self.searched = self.rest.len();
        if self.rest.len() > LONGEST_LINE {
            return Err(ApiError::TooLarge(format!("a watch event of more than {LONGEST_LINE} bytes")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
