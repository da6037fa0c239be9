use std::{
    cell::RefCell,
    fmt::Write,
    rc::Rc,
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use futures::poll;

use super::support::*;
use crate::{testing::universe, *};

const LARGE: usize = 1024 * 1024; // more than a job that runs in place may have

/// Runs a controller whose reconciles and wakes are drawn from `seed`. Returns what happened, as text.
fn random_universe(seed: u64) -> String {
    universe(seed, |universe| async move {
        let (random, store) = (universe.env.random.clone(), Signal::default());
        let draw = random.clone();
        let raised = store.clone();
        let script = move |reconcile: &ScriptedReconcile| {
            let result = match (draw.unit() * 8.0) as u32 {
                0 => Err(Failure::new("no")),
                1 => Ok(Outcome::After(Duration::from_secs_f64(draw.unit()))),
                2 => Ok(Outcome::Wait(vec![raised.moment()])),
                3 => Ok(Outcome::Again),
                4 => Ok(Outcome::Continue),
                5 => Ok(Outcome::Retire),
                _ => Ok(Outcome::Done),
            };
            match (draw.unit() * 20.0) as u32 {
                0 => Step::Panic,
                // For one reconciler only: two panics at once end the process.
                1 if reconcile.reconciler == 0 => Step::HangThenKill,
                2..8 => Step::End(result),
                _ => Step::After(Duration::from_secs_f64(draw.unit()), result),
            }
        };
        let controller = Rc::new(Scripted::new(script).permits(3).reconcilers([EVENT, EVENT.with(Causes::own(1))]));
        let supervised = Supervised::start(controller.clone(), &universe.env);
        for _ in 0..500 {
            let name = format!("key-{}", (random.unit() * 20.0) as u32);
            let causes = if random.unit() < 0.5 { EVENT } else { Causes::own(1) };
            let wake = if random.unit() < 0.5 { Wake::high(causes) } else { Wake::low(causes) };
            supervised.wake(&name, wake.about(object(&format!("{}", (random.unit() * 9.0) as u32))));
            if random.unit() < 0.1 {
                store.raise();
            }
            tokio::time::sleep(random.jitter(Duration::from_millis(100), 1.0)).await;
        }
        let mut text = String::new();
        for run in controller.log.borrow().iter() {
            writeln!(text, "{run:?}").unwrap();
        }
        for actor in universe.env.status_registry.snapshot() {
            writeln!(text, "{actor:?}").unwrap();
        }
        supervised.stop(Duration::from_secs(60)).await;
        text
    })
}

#[test]
fn rule_12_runs_with_one_seed_are_the_same_byte_for_byte() {
    let (first, second, other) = (random_universe(7), random_universe(7), random_universe(8));

    assert!(first.lines().count() > 300, "something happened");
    assert!(first == second, "two runs with one seed differ");
    assert!(first != other, "the seed decides");
}

#[test]
fn rule_12_cpu_jobs_of_tests_end_in_the_order_they_began() {
    universe(1, |universe| async move {
        let order = Arc::new(Mutex::new(Vec::new()));
        let jobs = (0..6).map(|number| {
            let order = order.clone();
            universe.env.cpu.run(LARGE, move || order.lock().unwrap().push(number))
        });
        futures::future::join_all(jobs).await;

        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
    });
}

#[test]
fn rule_12_small_cpu_jobs_run_in_place() {
    universe(1, |_| async move {
        let here = std::thread::current().id();
        let cpu = Cpu::pool(1);
        let mut small = Box::pin(cpu.run(64 * 1024, || std::thread::current().id()));
        let large = cpu.run(64 * 1024 + 1, || std::thread::current().id()).await;

        assert!(matches!(poll!(&mut small), std::task::Poll::Ready(Ok(thread)) if thread == here));
        assert!(large.is_ok_and(|thread| thread != here));
    });
}

#[test]
fn rule_12_cpu_job_that_panics_is_an_error_of_its_caller() {
    universe(1, |_| async move {
        for (cpu, bytes) in [(Cpu::inline(), LARGE), (Cpu::pool(1), 0), (Cpu::pool(1), LARGE)] {
            let panics = cpu.run::<()>(bytes, || panic!("scripted job")).await;
            let next = cpu.run(bytes, || 7).await;

            assert_eq!((panics, next), (Err(JobPanicked), Ok(7)));
        }
    });
}

#[test]
fn rule_12_cpu_job_whose_caller_was_dropped_keeps_its_permit() {
    universe(1, |_| async move {
        let cpu = Cpu::pool(1);
        let order = Arc::new(Mutex::new(Vec::new()));
        let (release, gate) = mpsc::channel::<()>();
        let (log, later) = (order.clone(), order.clone());
        let mut first = Box::pin(cpu.run(LARGE, move || {
            gate.recv().unwrap();
            log.lock().unwrap().push("first");
        }));
        assert!(poll!(&mut first).is_pending());
        drop(first);
        let mut second = Box::pin(cpu.run(LARGE, move || later.lock().unwrap().push("second")));
        assert!(poll!(&mut second).is_pending());
        release.send(()).unwrap();
        second.await.unwrap();

        assert_eq!(*order.lock().unwrap(), ["first", "second"]);
    });
}

#[test]
fn rule_12_jitter_stays_within_its_spread_and_does_not_overflow() {
    let random = Random::seeded(1);
    let drawn = RefCell::new(Vec::new());
    for _ in 0..100 {
        drawn.borrow_mut().push(random.jitter(seconds(10), 0.5));
    }

    assert!(drawn.borrow().iter().all(|time| (seconds(10)..seconds(15)).contains(time)));
    assert_eq!(random.jitter(Duration::MAX, 1.0), Duration::MAX);
}
