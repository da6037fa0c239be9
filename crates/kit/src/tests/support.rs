use std::{
    cell::{Cell as StdCell, RefCell},
    collections::VecDeque,
    rc::Rc,
    time::Duration,
};

use futures::future::LocalBoxFuture;
use tokio::time::Instant;

use crate::{
    testing::{Universe, universe},
    *,
};

pub(super) const EVENT: Causes = Causes::own(0); // the cause that concerns each scripted reconciler

pub(super) type ScriptedReconcile = Reconcile<String, String>;

pub(super) type Script = Rc<dyn Fn(&ScriptedReconcile) -> Step>;

pub(super) type Description = fn(&String) -> (&'static str, serde_json::Value);

pub(super) enum Step {
    End(Result<Outcome, Failure>),
    After(Duration, Result<Outcome, Failure>),
    Run(LocalBoxFuture<'static, Result<Outcome, Failure>>),
    Panic,
    Hang,
    /// Ignores its deadline, and panics when it is dropped. This panic is outside of the reconcile, so the actor dies.
    HangThenKill,
}

pub(super) struct Scripted {
    pub(super) permits: usize,
    pub(super) causes: Vec<Causes>,
    pub(super) script: Script,
    pub(super) on_object: Box<dyn Fn(&String)>,
    pub(super) ready: Rc<StdCell<bool>>,
    pub(super) readiness: Signal,
    pub(super) error: Rc<RefCell<Option<String>>>,
    pub(super) away: Rc<StdCell<bool>>,
    pub(super) resync: Option<Duration>,
    /// What the controller adds to the details of an actor.
    pub(super) description: StdCell<Option<Description>>,
    pub(super) log: RefCell<Vec<Run>>,
    pub(super) running: StdCell<usize>,
    pub(super) most_running: StdCell<usize>,
    zero: StdCell<Option<Instant>>,
}

#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) key: String,
    pub(super) reconciler: usize,
    pub(super) wake: Wake<String>,
    pub(super) at: Duration,
    pub(super) limit: Duration,
    /// How many reconciles its memory has seen, including this one.
    pub(super) memory: u32,
}

impl GeneralController for Scripted {
    type Key = String;
    type Ref = String;
    type Object = ();
    type Memory = u32;

    fn name(&self) -> &'static str {
        "scripted"
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        let (ready, signal) = (self.ready.clone(), self.readiness.clone());
        let (error, away) = (self.error.clone(), self.away.clone());
        let requirement =
            SyncRequirement::new("store", move || ready.get(), signal).explained(move || error.borrow().clone());
        let requirement = requirement.excused_while(move || away.get());
        let reconciler = |(name, causes): (&'static str, &Causes)| {
            let reconciler =
                Reconciler::new(name, self.permits).causes(*causes).max_back_off(seconds(60)).deadline(seconds(30));
            let reconciler = reconciler.requires(requirement.clone());
            match self.resync {
                Some(period) => reconciler.resync(period),
                None => reconciler,
            }
        };
        ["first", "second", "third"].into_iter().zip(&self.causes).map(reconciler).collect()
    }

    fn object(&self, key: &String) -> Self::Object {
        (self.on_object)(key);
    }

    async fn reconcile(
        self: &Rc<Self>,
        _: &Rc<()>,
        memory: &mut u32,
        reconcile: &ScriptedReconcile,
    ) -> Result<Outcome, Failure> {
        *memory += 1;
        self.log.borrow_mut().push(Run {
            key: reconcile.key.clone(),
            reconciler: reconcile.reconciler,
            wake: reconcile.wake.clone(),
            at: self.elapsed(),
            limit: reconcile.deadline.left(),
            memory: *memory,
        });
        self.running.set(self.running.get() + 1);
        self.most_running.set(self.most_running.get().max(self.running.get()));
        let _leaving = Leaving(self.clone());
        match (self.script)(reconcile) {
            Step::End(result) => result,
            Step::After(time, result) => {
                tokio::time::sleep(time).await;
                result
            }
            Step::Run(future) => future.await,
            Step::Panic => panic!("scripted"),
            Step::Hang => std::future::pending().await,
            Step::HangThenKill => {
                let _killer = PanicsWhenDropped;
                std::future::pending().await
            }
        }
    }

    fn details(self: &Rc<Self>, key: &String, object: Option<&Rc<()>>) -> Option<(&'static str, serde_json::Value)> {
        object.and(self.description.get()).map(|description| description(key))
    }
}

/// Counts a reconcile out, however it ends.
struct Leaving(Rc<Scripted>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get() - 1);
    }
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("scripted, while a reconcile is dropped");
    }
}

impl Scripted {
    pub(super) fn new(script: impl Fn(&ScriptedReconcile) -> Step + 'static) -> Self {
        Self {
            permits: 5,
            causes: vec![EVENT],
            script: Rc::new(script),
            on_object: Box::new(|_| {}),
            ready: Rc::new(StdCell::new(true)),
            readiness: Signal::default(),
            error: Rc::default(),
            away: Rc::default(),
            resync: None,
            description: StdCell::new(None),
            log: RefCell::default(),
            running: StdCell::new(0),
            most_running: StdCell::new(0),
            zero: StdCell::new(None),
        }
    }

    pub(super) fn permits(mut self, permits: usize) -> Self {
        self.permits = permits;
        self
    }

    pub(super) fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    pub(super) fn reconcilers(mut self, causes: impl IntoIterator<Item = Causes>) -> Self {
        self.causes = causes.into_iter().collect();
        self
    }

    pub(super) fn on_object(mut self, hook: impl Fn(&String) + 'static) -> Self {
        self.on_object = Box::new(hook);
        self
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.zero.get().map(|zero| zero.elapsed()).unwrap_or_default()
    }

    pub(super) fn seconds(&self) -> Vec<u64> {
        self.log.borrow().iter().map(|run| run.at.as_secs()).collect()
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.log.borrow().iter().map(|run| run.key.clone()).collect()
    }

    pub(super) fn reconciles(&self) -> usize {
        self.log.borrow().len()
    }

    pub(super) fn last(&self) -> Run {
        self.log.borrow().last().cloned().expect("a reconcile ran")
    }
}

pub(super) fn steps(steps: impl IntoIterator<Item = fn() -> Step>) -> impl Fn(&ScriptedReconcile) -> Step {
    let steps: RefCell<VecDeque<fn() -> Step>> = RefCell::new(steps.into_iter().collect());
    move |_| {
        let mut steps = steps.borrow_mut();
        let step = if steps.len() > 1 { steps.pop_front() } else { steps.front().copied() };
        step.map_or_else(done, |step| step())
    }
}

pub(super) fn done() -> Step {
    Step::End(Ok(Outcome::Done))
}

pub(super) fn retire() -> Step {
    Step::End(Ok(Outcome::Retire))
}

pub(super) fn fail() -> Step {
    Step::End(Err(Failure::new("no")))
}

pub(super) fn one_second() -> Step {
    Step::After(seconds(1), Ok(Outcome::Done))
}

pub(super) const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(super) async fn reconcile_time(count: u64) {
    tokio::time::sleep(seconds(count)).await;
}

pub(super) fn key(name: &str) -> String {
    name.to_owned()
}

pub(super) fn object(name: &str) -> String {
    name.to_owned()
}

pub(super) fn run<F: Future>(
    controller: Scripted,
    test: impl FnOnce(Supervised<Scripted>, Rc<Scripted>, Universe) -> F,
) -> F::Output {
    universe(1, |universe| async move {
        let controller = Rc::new(controller);
        controller.zero.set(Some(Instant::now()));
        let supervised = Supervised::start(controller.clone(), &universe.env);
        let result = test(supervised.clone(), controller, universe.clone()).await;
        supervised.stop(Duration::ZERO).await;
        result
    })
}

pub(super) fn shown(universe: &Universe, name: &str) -> ActorState {
    let path = format!("scripted/{name}");
    let actors = universe.env.status_registry.snapshot();
    actors.into_iter().find(|actor| actor.path == path).expect("the key has an actor")
}
