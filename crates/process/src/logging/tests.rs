use std::{
    io,
    rc::Rc,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use cluster::object::NamespacedName;
use kit::{
    Causes, Controller, Failure, Outcome, Reconcile, Reconciler, Supervised, Wake,
    testing::{settle, universe},
};
use serde_json::{Value, json};
use tracing::subscriber::with_default;
use tracing_subscriber::Registry;

use super::*;

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn captured(level: Level, format: Format, log: impl FnOnce()) -> String {
    let stream = Captured::default();
    let now: NowFn = Arc::new(|| "2024-05-01T10:11:12.345Z".parse().unwrap());
    let (layer, handle, _) = layer(Logging { level, format }, now, stream.clone());

    with_default(Registry::default().with(layer), log);

    assert!(handle.finish(Duration::from_secs(5)));
    String::from_utf8(stream.0.lock().unwrap().clone()).unwrap()
}

fn records(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn log_at_all_levels() {
    tracing::error!("e");
    tracing::warn!("w");
    tracing::info!("i");
    tracing::debug!("d");
    tracing::trace!("t");
    tracing::info!(target: "hyper::proto", "library i");
    tracing::debug!(target: "hyper::proto", "library d");
}

#[test]
fn levels_admit_what_they_say() {
    let table = [
        (Level::Error, vec!["e"]),
        (Level::Info, vec!["e", "w", "i", "library i"]),
        (Level::Debug, vec!["e", "w", "i", "d", "library i"]),
    ];

    for (level, expected) in table {
        let text = captured(level, Format::Json, log_at_all_levels);
        let messages: Vec<_> = records(&text).iter().map(|record| record["msg"].as_str().unwrap().to_owned()).collect();
        assert_eq!(messages, expected, "{level}");
    }
}

/// spec 70 §10: there are three levels
#[test]
fn a_warning_is_written_as_info() {
    let text = captured(Level::Debug, Format::Json, log_at_all_levels);

    let levels: Vec<_> = records(&text).iter().map(|record| record["level"].as_str().unwrap().to_owned()).collect();

    assert_eq!(levels, ["error", "info", "info", "debug", "info"]);
}

#[test]
fn values_keep_their_types_and_names() {
    let text = captured(Level::Info, Format::Json, || {
        let error = io::Error::other("no route");
        tracing::error!(
            count = 3,
            share = 0.5,
            odd = f64::NAN,
            yes = true,
            name = "x",
            shown = %Level::Info,
            reconcileID = "r-1",
            error = &error as &dyn std::error::Error,
            "Reconciler error"
        );
    });

    let mut record = records(&text).remove(0);
    let object = record.as_object_mut().unwrap();
    assert_eq!(object.remove("logger"), Some("process.logging.tests".into()));
    assert_eq!(
        record,
        json!({
            "level": "error", "ts": "2024-05-01T10:11:12.345Z", "msg": "Reconciler error", "count": 3, "share": 0.5,
            "odd": "NaN", "yes": true, "name": "x", "shown": "info", "reconcileID": "r-1", "error": "no route"
        })
    );
}

#[test]
fn records_carry_the_fields_of_the_spans_around_them() {
    let text = captured(Level::Info, Format::Json, || {
        let outer = tracing::info_span!("controller", logger = "health", controller = "health", attempt = 1);
        let _outer = outer.enter();
        let inner = tracing::info_span!("pass", namespace = "a", name = tracing::field::Empty);
        inner.record("name", "b");
        let _inner = inner.enter();
        tracing::info!(attempt = 2, "Reconciled");
    });

    assert_eq!(
        text,
        concat!(
            r#"{"level":"info","ts":"2024-05-01T10:11:12.345Z","logger":"health","msg":"Reconciled","#,
            r#""controller":"health","attempt":2,"namespace":"a","name":"b"}"#,
            "\n"
        )
    );
}

#[test]
fn text_records_are_lines_too() {
    let text = captured(Level::Info, Format::Text, || {
        tracing::error!(logger = "health", error = "a\nb", "First\nsecond");
        tracing::info!("Next");
    });

    assert_eq!(
        text,
        "2024-05-01T10:11:12.345Z\tERROR\thealth\tFirst\\nsecond\t{\"error\":\"a\\nb\"}\n\
         2024-05-01T10:11:12.345Z\tINFO\tprocess.logging.tests\tNext\n"
    );
}

#[test]
fn levels_and_formats_have_the_names_of_the_configuration() {
    assert_eq!(Level::NAMES.map(|name| Level::from_name(name).unwrap().to_string()), Level::NAMES);
    assert_eq!(Format::NAMES.map(Format::from_name), [Some(Format::Json), Some(Format::Text)]);
    assert_eq!((Level::from_name("trace"), Format::from_name("xml")), (None, None));
}

#[test]
fn panic_messages_are_logged_only_if_constant() {
    let constant = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new("broken"))).unwrap_err();
    let made = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new("broken".to_owned()))).unwrap_err();

    assert_eq!(constant_message(&*constant), "broken");
    assert_eq!(constant_message(&*made), "message withheld");
}

struct Failing;

impl Controller for Failing {
    type Key = NamespacedName;
    type Memory = ();

    fn name(&self) -> &'static str {
        "failing"
    }

    fn causes(&self) -> &'static [&'static str] {
        &["drift"]
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        vec![Reconciler::new("failing", 1).about(("example.org", "Thing"))]
    }

    async fn reconcile(self: &Rc<Self>, (): &mut (), _: &Reconcile<NamespacedName>) -> Result<Outcome, Failure> {
        tracing::info!("Looking");
        Err(Failure::terminal("there is nothing"))
    }
}

/// spec 70 §10
#[test]
fn records_of_a_reconcile_name_it_and_so_does_its_failure() {
    let text = captured(Level::Info, Format::Json, || {
        universe(1, |universe| async move {
            let supervised = Supervised::start(Rc::new(Failing), &universe.env);
            let wake = Wake::high(Causes::OBJECT.with(Causes::own(0)));
            supervised.wake(&NamespacedName::new("garden", "a"), wake.clone());
            settle().await;
            supervised.wake(&NamespacedName::new("", "b"), wake);
            settle().await;
            supervised.stop(Duration::ZERO).await;
        });
    });

    let mut records = records(&text);
    let mut ids = Vec::new();
    let mut reported = Vec::new();
    for record in &mut records {
        ids.push(record["reconcileID"].take());
        let of_reconcile =
            ["controller", "controllerGroup", "controllerKind", "trigger"].map(|name| record[name].take());
        assert_eq!(of_reconcile, ["failing", "example.org", "Thing", "object+drift"]);
        reported.push([&record["msg"], &record["namespace"], &record["name"]].map(|value| value.as_str().unwrap()));
    }
    let looking = |namespace, name| ["Looking", namespace, name];
    let failed = |namespace, name| ["Reconciler error", namespace, name];
    assert_eq!(reported, [looking("garden", "a"), failed("garden", "a"), looking("", "b"), failed("", "b")]);
    assert_eq!(records[1]["error"], "there is nothing");
    assert!(ids[0] == ids[1] && ids[2] == ids[3] && ids[0] != ids[2], "{ids:?}");
    assert_eq!(ids[0].as_str().map(str::len), Some(36));
}

/// Spec 70 §10's levels, changed while the process runs.
#[test]
fn the_switch_turns_debug_on_and_off_again() {
    let stream = Captured::default();
    let now: NowFn = Arc::new(|| "2024-05-01T10:11:12.345Z".parse().unwrap());
    let logging = Logging { level: Level::Error, format: Format::Json };
    let (layer, handle, mut switch) = layer(logging, now, stream.clone());
    let log = || {
        tracing::debug!("d");
        tracing::error!("e");
    };

    with_default(Registry::default().with(layer), || {
        log();
        switch.toggle();
        log();
        switch.toggle();
        log();
    });

    assert!(handle.finish(Duration::from_secs(5)));
    let text = String::from_utf8(stream.0.lock().unwrap().clone()).unwrap();
    let messages: Vec<_> = records(&text).iter().map(|record| record["msg"].as_str().unwrap().to_owned()).collect();
    let change = "The level of the log changes";
    assert_eq!(messages, ["e", change, "d", "e", change, "e"]);
}
