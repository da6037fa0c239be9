//! `dashboard/details`: what only the controllers' thread knows of one actor. The only request that asks it; the others
//! read shared memory. That thread gets one question at a time, and at most [`MOST`] a second. Networks of clients have
//! equal shares of these questions, and take turns. An answer is good for a second, as long as the actor does not change.

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

use super::{document::render, network::Network, row::Row, shown::Shown, turns::Turns};

/// How long an answer may take.
pub(super) const LIMIT: Duration = Duration::from_secs(2);

/// Questions to the controllers' thread within [`LIFE`]. A page asks once a second, and most questions take less than a
/// millisecond.
pub(super) const MOST: usize = 20;

/// How long an answer is good.
pub(super) const LIFE: Duration = Duration::from_secs(1);

/// Questions a second that are left for networks that have not asked yet.
const SPARE: usize = 4;

/// How long a network counts among those that ask, and thereby have a share.
const REMEMBERED: Duration = Duration::from_secs(2);

const TOO_MANY: &str = "too many questions about actors, of all pages of your network together; ask again in a second";

/// Answers questions about actors.
pub(super) struct Details {
    shown: Arc<Shown>,
    asked: Arc<Mutex<Asked>>,
    /// One asks at a time: who waits meanwhile may share the answer.
    turns: Turns,
}

#[derive(Default)]
struct Asked {
    /// Those of the last second.
    questions: VecDeque<Question>,
    /// Networks that wanted to ask, and when they last did, at most [`MOST`].
    networks: Vec<(Option<Network>, Instant)>,
}

struct Question {
    at: Instant,
    from: Option<Network>,
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
        Self { shown, asked: Arc::default(), turns: Turns::default() }
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
        let from = Network::of(request);
        let Ok(turn) = timeout_at(end, self.turns.turn(from)).await else { return unanswered() };
        let Some(_turn) = turn else { return too_many() };
        let Some(actor) = registry.actor(&path) else { return missing() };
        let now = Instant::now();
        let decision = self.asked().decide(from, &actor, now);
        match decision {
            Decision::Answer(answer) => return json(StatusCode::OK, answer),
            Decision::Refuse => return too_many(),
            Decision::Ask => {}
        }
        // It counts, even if the client goes away before the answer.
        self.remember(Question { at: now, from, actor: actor.clone(), answer: None });
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
        self.asked().questions.push_back(question);
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
    fn decide(&mut self, from: Option<Network>, actor: &ActorState, now: Instant) -> Decision {
        self.forget(now);
        let same = self.questions.iter().rev().find(|question| question.actor == *actor);
        match same.and_then(|question| question.answer.clone()) {
            Some(answer) => Decision::Answer(answer),
            None if self.may_ask(from, now) => Decision::Ask,
            None => Decision::Refuse,
        }
    }

    /// The networks that ask have equal shares. [`SPARE`] questions are left: whoever comes next need not wait.
    fn may_ask(&mut self, from: Option<Network>, now: Instant) -> bool {
        self.note(from, now);
        let share = (MOST - SPARE) / self.networks.len();
        let asked = self.questions.iter().filter(|question| question.from == from).count();
        self.questions.len() < MOST && asked < share.max(1)
    }

    /// Remembers a network. If there are too many, it takes the place of the network that asked least recently.
    fn note(&mut self, from: Option<Network>, now: Instant) {
        self.networks.retain(|(network, at)| *network != from && now.saturating_duration_since(*at) < REMEMBERED);
        if self.networks.len() == MOST {
            self.networks.remove(0);
        }
        self.networks.push((from, now));
    }

    /// Keeps the answer to the last question about an actor.
    fn fill_in(&mut self, actor: &ActorState, answer: Bytes) {
        if let Some(question) = self.questions.iter_mut().rev().find(|question| question.actor == *actor) {
            question.answer = Some(answer);
        }
    }

    fn forget(&mut self, now: Instant) {
        self.questions.retain(|question| now.saturating_duration_since(question.at) < LIFE);
    }
}

fn lock(asked: &Mutex<Asked>) -> MutexGuard<'_, Asked> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}

fn too_many() -> HttpResponse {
    let mut refused = refuse(StatusCode::TOO_MANY_REQUESTS, TOO_MANY.to_owned());
    refused.headers_mut().insert(header::RETRY_AFTER, LIFE.as_secs().into());
    refused
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
    use std::{
        net::{IpAddr, SocketAddr},
        ops::Range,
        pin::pin,
    };

    use actix_web::test::TestRequest;
    use futures::FutureExt as _;
    use kit::{Role, StatusRegistry};

    use super::*;
    use crate::dashboard::{shown::shown, turns::MOST_WAITING};

    fn actors(number: usize) -> StatusRegistry {
        let registry = StatusRegistry::default();
        (0..number).for_each(|number| drop(registry.enter(format!("a/{number}"), Role::Object)));
        registry
    }

    fn details(registry: &StatusRegistry) -> Details {
        Details::new(Arc::new(shown(registry)))
    }

    async fn ask(details: &Details, number: usize) -> HttpResponse {
        ask_from(details, 0, number).await
    }

    async fn ask_from(details: &Details, network: usize, number: usize) -> HttpResponse {
        let request = TestRequest::with_uri(&format!("/dashboard/details?path=a/{number}"));
        let peer = SocketAddr::from(([10, 0, 0, u8::try_from(network).unwrap()], 1));
        details.answer(&request.peer_addr(peer).to_http_request()).await
    }

    /// How many of the questions about these actors are answered.
    async fn answered(details: &Details, network: usize, numbers: Range<usize>) -> usize {
        let mut answered = 0;
        for number in numbers {
            answered += usize::from(ask_from(details, network, number).await.status() == 200);
        }
        answered
    }

    #[actix_web::test]
    async fn details_are_asked_twenty_times_a_second_by_all_together() {
        tokio::time::pause();
        let registry = actors(MOST + 1);
        let details = details(&registry);
        for number in 0..MOST {
            assert_eq!(ask_from(&details, number, number).await.status(), 200);
        }

        let refused = ask(&details, MOST).await;
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers().get(header::RETRY_AFTER).unwrap(), "1");
        assert_eq!(ask(&details, MOST + 1).await.status(), 404, "nobody is asked about an actor that does not exist");
        tokio::time::advance(LIFE).await;

        assert_eq!(ask(&details, MOST).await.status(), 200);
    }

    #[actix_web::test]
    async fn details_leave_questions_for_others_however_many_one_network_asks() {
        tokio::time::pause();
        let details = details(&actors(6 * MOST));
        let part = |number: usize| number * MOST..(number + 1) * MOST;

        assert_eq!(answered(&details, 1, part(0)).await, MOST - SPARE);
        assert_eq!(answered(&details, 2, part(1)).await, SPARE);
        assert_eq!(answered(&details, 3, part(2)).await, 0);
        tokio::time::advance(LIFE).await;

        for (network, first) in [(1, 3), (2, 4), (3, 5)] {
            assert_eq!(answered(&details, network, part(first)).await, (MOST - SPARE) / 3, "equal shares");
        }
    }

    #[test]
    fn details_remember_a_bounded_number_of_networks() {
        let mut asked = Asked::default();
        let now = Instant::now();
        let network = |number: u32| Some(IpAddr::from(number.to_be_bytes()).into());

        for number in 0..1000 {
            assert!(asked.may_ask(network(number), now));
        }

        assert_eq!(asked.networks.len(), MOST);
        asked.note(network(0), now + REMEMBERED);
        assert_eq!(asked.networks.len(), 1, "the others ask no more");
    }

    #[actix_web::test]
    async fn details_do_not_let_a_network_wait_for_all_questions_of_another() {
        tokio::time::pause();
        let details = details(&actors(2));
        let asking = details.turns.turn(None).await.unwrap();
        let mut flood: Vec<_> = (0..=MOST_WAITING).map(|_| Box::pin(ask_from(&details, 1, 0))).collect();
        flood.iter_mut().for_each(|request| drop(request.now_or_never()));

        assert_eq!(ask_from(&details, 1, 0).now_or_never().unwrap().status(), 429);
        let mut other = pin!(ask_from(&details, 2, 1));
        assert!(other.as_mut().now_or_never().is_none());
        drop(asking);
        flood[0].as_mut().await;

        assert_eq!(other.now_or_never().unwrap().status(), 200);
        assert!(flood[1].as_mut().now_or_never().is_some());
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
        assert_eq!(details.asked().questions.len(), 1);

        cell.update(Timestamp::UNIX_EPOCH, |state| state.finished += 1);
        assert_eq!(ask(&details, 0).await.status(), 200);

        assert_eq!(details.asked().questions.len(), 2, "the first answer is outdated");
    }

    #[actix_web::test]
    async fn details_count_for_clients_that_go_away_before_the_answer() {
        tokio::time::pause();
        let registry = actors(1);
        let details = details(&registry);
        let held = registry.clone();
        assert_eq!(ask(&details, 0).await.status(), 200);

        held.enter("a/0", Role::Object).update(Timestamp::UNIX_EPOCH, |state| state.finished += 1);
        drop(ask(&details, 0).now_or_never());

        assert_eq!(details.asked().questions.len(), 2);
    }

    #[actix_web::test]
    async fn details_are_forgotten_after_a_second_without_a_request() {
        tokio::time::pause();
        let details = details(&actors(1));
        ask(&details, 0).await;

        sleep(LIFE + Duration::from_millis(10)).await;

        assert!(details.asked().questions.is_empty());
    }
}
