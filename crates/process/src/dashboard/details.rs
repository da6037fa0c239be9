//! `dashboard/details`: what only the controllers' thread knows of one actor. The only request that asks it; the others
//! read shared memory. That thread gets one question at a time, and at most [`MOST`] a second, whoever asks. An answer
//! is good for a second, as long as the actor does not change.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    rt, web,
};
use bytes::Bytes;
use jiff::Timestamp;
use kit::{ActorDetails, ActorState, Unanswered};
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout_at};

use super::{document::render, row::Row, shown::Shown};

/// How long an answer may take.
pub(super) const LIMIT: Duration = Duration::from_secs(2);

/// Questions to the controllers' thread within [`LIFE`]. A page asks once a second, and most questions take less than a
/// millisecond.
pub(super) const MOST: usize = 20;

/// How long an answer is good.
pub(super) const LIFE: Duration = Duration::from_secs(1);

const TOO_MANY: &str = "too many questions about actors, of all pages together; ask again in a second";

/// Answers questions about actors.
pub(super) struct Details {
    shown: Arc<Shown>,
    asked: Arc<Mutex<Asked>>,
    /// One asks at a time: who waits meanwhile may share the answer.
    turn: tokio::sync::Mutex<()>,
}

/// The questions of the last second.
#[derive(Default)]
struct Asked(VecDeque<Question>);

struct Question {
    at: Instant,
    /// The actor before the question.
    actor: ActorState,
    /// `None`: not answered in time, or not yet.
    answer: Option<Bytes>,
}

/// What to do with a question.
#[derive(Debug, PartialEq)]
enum Decision {
    Answer(Bytes),
    Ask,
    Refuse,
}

#[derive(Serialize)]
struct DetailsDocument<'a> {
    now: Timestamp,
    row: Row<'a>,
    details: &'a [(String, String)],
    #[serde(flatten)]
    known: ActorDetails,
}

#[derive(Serialize)]
struct ErrorDocument {
    error: String,
}

impl Details {
    pub(super) fn new(shown: Arc<Shown>) -> Self {
        Self { shown, asked: Arc::default(), turn: tokio::sync::Mutex::default() }
    }

    /// Answers a request with `?path=` of an actor: 404 if there is none, 429 after too many questions, 503 if the thread
    /// does not answer in time.
    pub(super) async fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let pairs = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
        let pairs = pairs.map(web::Query::into_inner).unwrap_or_default();
        let path = pairs.into_iter().find_map(|(key, value)| (key == "path").then_some(value)).unwrap_or_default();
        let registry = &self.shown.status_registry;
        let missing = || refuse(StatusCode::NOT_FOUND, format!("there is no actor {}", kit::quote::shown(&path)));
        let unanswered = || refuse(StatusCode::SERVICE_UNAVAILABLE, Unanswered.to_string());
        if registry.actor(&path).is_none() {
            return missing();
        }
        let end = Instant::now() + LIMIT;
        let Ok(_turn) = timeout_at(end, self.turn.lock()).await else { return unanswered() };
        let Some(actor) = registry.actor(&path) else { return missing() };
        let now = Instant::now();
        let decision = self.asked().decide(&actor, now);
        match decision {
            Decision::Answer(answer) => return json(StatusCode::OK, answer),
            Decision::Refuse => {
                let mut refused = refuse(StatusCode::TOO_MANY_REQUESTS, TOO_MANY.to_owned());
                refused.headers_mut().insert(header::RETRY_AFTER, LIFE.as_secs().into());
                return refused;
            }
            Decision::Ask => {}
        }
        // It counts, even if the client goes away before the answer.
        self.remember(Question { at: now, actor: actor.clone(), answer: None });
        let known = registry.ask(&path, end.saturating_duration_since(now)).await;
        // Read after the answer, so that the row is not older.
        let row = registry.actor(&path);
        let answer = known.ok().zip(row.as_ref()).map(|(known, row)| self.render(row, known.unwrap_or_default()));
        match answer {
            Some(answer) => {
                self.asked().fill_in(&actor, answer.clone());
                json(StatusCode::OK, answer)
            }
            None if row.is_none() => missing(),
            None => unanswered(),
        }
    }

    fn render(&self, actor: &ActorState, known: ActorDetails) -> Bytes {
        let row = Row::without_details(actor);
        let document = DetailsDocument { now: self.shown.now(), row, details: &actor.details, known };
        let mut answer = Vec::new();
        render(&document, &mut answer);
        answer.into()
    }

    /// Keeps a question for a second.
    fn remember(&self, question: Question) {
        let end = question.at + LIFE;
        self.asked().0.push_back(question);
        let asked = self.asked.clone();
        rt::spawn(async move {
            sleep(end.saturating_duration_since(Instant::now())).await;
            lock(&asked).forget(end);
        });
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        lock(&self.asked)
    }
}

impl Asked {
    fn decide(&mut self, actor: &ActorState, now: Instant) -> Decision {
        self.forget(now);
        let same = self.0.iter().rev().find(|question| question.actor == *actor);
        match same.and_then(|question| question.answer.clone()) {
            Some(answer) => Decision::Answer(answer),
            None if self.0.len() < MOST => Decision::Ask,
            None => Decision::Refuse,
        }
    }

    /// Keeps the answer to the last question about an actor.
    fn fill_in(&mut self, actor: &ActorState, answer: Bytes) {
        if let Some(question) = self.0.iter_mut().rev().find(|question| question.actor == *actor) {
            question.answer = Some(answer);
        }
    }

    fn forget(&mut self, now: Instant) {
        self.0.retain(|question| now.saturating_duration_since(question.at) < LIFE);
    }
}

fn lock(asked: &Mutex<Asked>) -> MutexGuard<'_, Asked> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refuse(status: StatusCode, error: String) -> HttpResponse {
    let mut document = Vec::new();
    render(&ErrorDocument { error }, &mut document);
    json(status, document.into())
}

fn json(status: StatusCode, document: Bytes) -> HttpResponse {
    HttpResponse::build(status).content_type("application/json").body(document)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use kit::{Role, StatusRegistry};

    use super::*;
    use crate::dashboard::shown::shown;

    fn actors(number: usize) -> StatusRegistry {
        let registry = StatusRegistry::default();
        (0..number).for_each(|number| drop(registry.enter(format!("a/{number}"), Role::Object)));
        registry
    }

    fn details(registry: &StatusRegistry) -> Details {
        Details::new(Arc::new(shown(registry)))
    }

    async fn ask(details: &Details, number: usize) -> HttpResponse {
        let request = TestRequest::with_uri(&format!("/dashboard/details?path=a/{number}")).to_http_request();
        details.answer(&request).await
    }

    #[actix_web::test]
    async fn details_are_asked_twenty_times_a_second_by_all_together() {
        tokio::time::pause();
        let registry = actors(MOST + 1);
        let details = details(&registry);
        for number in 0..MOST {
            assert_eq!(ask(&details, number).await.status(), 200);
        }

        let refused = ask(&details, MOST).await;
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers().get(header::RETRY_AFTER).unwrap(), "1");
        assert_eq!(ask(&details, MOST + 1).await.status(), 404, "nobody is asked about an actor that does not exist");
        tokio::time::advance(LIFE).await;

        assert_eq!(ask(&details, MOST).await.status(), 200);
    }

    #[actix_web::test]
    async fn details_of_an_actor_that_does_not_change_are_asked_once_a_second() {
        tokio::time::pause();
        let registry = actors(1);
        let cell = registry.enter("a/0", Role::Object);
        let details = details(&registry);
        for _ in 0..10 * MOST {
            assert_eq!(ask(&details, 0).await.status(), 200);
        }
        assert_eq!(details.asked().0.len(), 1);

        cell.update(Timestamp::UNIX_EPOCH, |state| state.finished += 1);
        assert_eq!(ask(&details, 0).await.status(), 200);

        assert_eq!(details.asked().0.len(), 2, "the first answer is outdated");
    }

    #[actix_web::test]
    async fn details_count_for_clients_that_go_away_before_the_answer() {
        tokio::time::pause();
        let registry = actors(1);
        let details = details(&registry);
        let held = registry.clone();
        assert_eq!(ask(&details, 0).await.status(), 200);

        held.enter("a/0", Role::Object).update(Timestamp::UNIX_EPOCH, |state| state.finished += 1);
        drop(futures::FutureExt::now_or_never(ask(&details, 0)));

        assert_eq!(details.asked().0.len(), 2);
    }

    #[actix_web::test]
    async fn details_are_forgotten_after_a_second_without_a_request() {
        tokio::time::pause();
        let details = details(&actors(1));
        ask(&details, 0).await;

        sleep(LIFE + Duration::from_millis(10)).await;

        assert!(details.asked().0.is_empty());
    }
}
