//! Many days of many Shoots with maintenance windows, amid outages, restarts, other leaders, jumps of the wall clock, and
//! users who move windows. Each window brings a maintenance, and a second one only for a reason. [`LongLife`] says how many.
//!
//! The test does not use the window of the program: it computes in UTC, and writes the text in some zone.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::{Arc, Mutex},
    time::Duration,
};

use cluster::object;
use gardener_resource_manager::{
    actors::controller_manager::shoot_maintenance::operation::{MAINTENANCE_OPERATION, OPERATION, TASKS},
    api::kinds,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    garden::{Garden, garden},
    long_lives::{LongLife, Phase, Random, now, pass},
    shoot_maintenance::{put_profile, shoot, two_versions},
    shoots::seconds,
};

/// All times and lengths are in seconds.
const MINUTE: i64 = 60;
const DAY: i64 = 24 * 60 * MINUTE;

/// The end of a window, in which no maintenance begins.
const RESERVED_END: i64 = 15 * MINUTE;

/// A window brings a maintenance if a leader and the API server work undisturbed for so long before its effective end.
const CALM: i64 = 15 * MINUTE;

/// A maintenance that begins in the last second of a window is written so much later.
const SLACK: i64 = 2;

/// A maintenance that is written may fail for so long.
const IN_FLIGHT: Duration = Duration::from_secs(10);

const JUMPS: [i64; 7] = [-180 * MINUTE, -20 * MINUTE, -MINUTE, MINUTE, 20 * MINUTE, 180 * MINUTE, DAY + 120 * MINUTE];

/// A maintenance window, of the whole day if nothing is written.
struct Window {
    /// Second of the day in UTC.
    begin: i64,
    /// For so long a maintenance may begin.
    open: i64,
    written: Value,
}

/// A Shoot, and its maintenances since its window has moved.
struct MaintainedShoot {
    name: String,
    window: Window,
    /// When its window moved.
    moved: i64,
    /// The clock was here already when it jumped back. A maintenance may have been planned for later.
    passed: i64,
    /// The maintenances in each window, by the effective end of the window.
    maintenances: BTreeMap<i64, WindowMaintenances>,
}

/// The maintenances of one Shoot in one window, since the last start of the first leader.
struct WindowMaintenances {
    /// When the last one was written.
    written: Instant,
    number: usize,
    /// The second leaders that were at work during one of them, and may have written it.
    second_leaders: BTreeSet<usize>,
}

/// Why a Shoot may be maintained twice in a window.
struct Reasons {
    /// The process started.
    started: Instant,
    /// The API server was cut off.
    cut_off: Option<Instant>,
    /// The number of the second leader, if there is one.
    second_leader: Option<usize>,
}

/// The maintenances that the API server has seen: when, and the names of the Shoots.
type Written = Arc<Mutex<Vec<(Instant, String)>>>;

struct Life {
    garden: Rc<Garden>,
    random: Random,
    shoots: Vec<MaintainedShoot>,
    written: Written,
    reasons: Reasons,
    /// Since when a leader and the API server work and the clock has not jumped.
    calm: i64,
    /// All windows that ended until then are checked.
    checked: i64,
    /// How many windows had to bring a maintenance.
    due: usize,
}

impl Window {
    /// Returns a window as the API allows them: 30 minutes to 6 hours at any time of the day, in any zone, or none.
    fn any(random: &mut Random) -> Self {
        if random.below(10) == 0 {
            return Self { begin: 0, open: DAY - 1, written: Value::Null };
        }
        let begin = match random.below(4) {
            0 => DAY - 10 * MINUTE,
            _ => i64::try_from(random.below(86_400)).expect("a second of the day"),
        };
        let length = MINUTE * random.one_of([30_i64, 30, 31, 45, 60, 120, 360]);
        let zones: [(&str, i64); 6] =
            [("+0000", 0), ("+0100", 60), ("-0330", -210), ("+0545", 345), ("-0800", -480), ("+1300", 780)];
        let (zone, ahead) = random.one_of(zones);
        let text = |second: i64| {
            let local = (second + ahead * MINUTE).rem_euclid(DAY);
            format!("{:02}{:02}{:02}{zone}", local / 3600, local / 60 % 60, local % 60)
        };
        let written = json!({ "begin": text(begin), "end": text(begin + length) });
        Self { begin, open: length - RESERVED_END, written }
    }

    /// Returns the effective end of the window in which a maintenance was written.
    fn end_of(&self, second: i64) -> Option<i64> {
        let begin = (second - self.begin).div_euclid(DAY) * DAY + self.begin;
        let end = begin + self.open;
        (second <= end + SLACK).then_some(end)
    }

    /// Returns the last effective end until a time.
    fn last_end(&self, until: i64) -> i64 {
        let end = self.begin + self.open;
        (until - end).div_euclid(DAY) * DAY + end
    }
}

impl WindowMaintenances {
    fn none(written: Instant) -> Self {
        Self { written, number: 0, second_leaders: BTreeSet::new() }
    }
}

impl MaintainedShoot {
    fn new(name: String, window: Window, moved: i64) -> Self {
        Self { name, window, moved, passed: i64::MIN, maintenances: BTreeMap::new() }
    }

    /// Enters a maintenance. It is in a window, and the first there or for a reason.
    fn enter(&mut self, time: Timestamp, written: Instant, reasons: &Reasons) {
        let (name, window) = (&self.name, &self.window.written);
        let Some(end) = self.window.end_of(time.as_second()) else {
            panic!("{name} is maintained at {time}, outside of {window}");
        };
        let in_window = self.maintenances.entry(end).or_insert_with(|| WindowMaintenances::none(written));
        let is_of_start = reasons.started > in_window.written;
        let is_of_error =
            reasons.cut_off.is_some_and(|cut| cut >= in_window.written && cut - in_window.written < IN_FLIGHT);
        if is_of_start {
            *in_window = WindowMaintenances::none(written);
        }
        in_window.written = written;
        in_window.second_leaders.extend(reasons.second_leader);
        if is_of_error {
            return;
        }
        in_window.number += 1;
        // Each leader plans for itself.
        let leaders = 1 + in_window.second_leaders.len();
        assert!(in_window.number <= leaders, "{name} is maintained again at {time}, in {window}");
    }

    /// Returns the effective end of the window that ended in an interval and had to bring a maintenance.
    fn due(&self, calm: i64, (after, until): (i64, i64)) -> Option<i64> {
        let end = self.window.last_end(until);
        let is_calm = end - CALM >= calm.max(self.moved);
        (end > after && end > self.passed && is_calm).then_some(end)
    }
}

impl Life {
    fn new(garden: Rc<Garden>, number: usize, mut random: Random) -> Self {
        put_profile(&garden, &two_versions());
        let begin = now(&garden).as_second();
        let mut shoots = Vec::new();
        for number in 0..number {
            let (name, window) = (format!("s{number}"), Window::any(&mut random));
            let settings = json!({ "timeWindow": window.written, "autoUpdate": { "kubernetesVersion": true } });
            garden.put(shoot(&garden, &name, json!({ "maintenance": settings })));
            shoots.push(MaintainedShoot::new(name, window, begin));
        }
        let written = written_maintenances(&garden);
        let reasons = Reasons { started: Instant::now(), cut_off: None, second_leader: None };
        Self { garden, random, shoots, written, reasons, calm: begin, checked: begin, due: 0 }
    }

    fn now(&self) -> i64 {
        now(&self.garden).as_second()
    }

    /// Users move some windows, and ask for operations in the next maintenance.
    fn change_shoots(&mut self) {
        let now = self.now();
        for shoot in &mut self.shoots {
            if self.random.below(300) == 0 {
                let window = Window::any(&mut self.random);
                if window.written != shoot.window.written {
                    let written = window.written.clone();
                    let change = |live: &mut Value| live["spec"]["maintenance"]["timeWindow"] = written;
                    self.garden.edit(&kinds::SHOOT, "a", &shoot.name, change);
                    *shoot = MaintainedShoot::new(std::mem::take(&mut shoot.name), window, now);
                }
            }
            if self.random.below(50) == 0 {
                self.garden.edit(&kinds::SHOOT, "a", &shoot.name, |live| {
                    live["metadata"]["annotations"][MAINTENANCE_OPERATION] = "rotate-ssh-keypair".into();
                });
            }
        }
    }

    /// The wall clock jumps now and then.
    fn jump(&mut self) {
        if self.random.below(8) > 0 {
            return;
        }
        let (before, by) = (self.now(), self.random.one_of(JUMPS));
        if by < 0 {
            for shoot in &mut self.shoots {
                shoot.passed = shoot.passed.max(before);
            }
        }
        self.garden.jump(by);
        self.calm = self.now();
        self.checked = self.calm;
    }

    /// Lets a phase pass. `number` tells second leaders apart.
    async fn pass(&mut self, number: usize) {
        let (phase, length) = self.random.phase([10, 40, 100, 150, 300]);
        self.reasons.second_leader = matches!(phase, Phase::TwoLead).then_some(number);
        if matches!(phase, Phase::IsCutOff) {
            self.reasons.cut_off = Some(Instant::now());
        }
        let back = pass(&self.garden, phase, length).await;
        seconds(1).await; // what is in flight is written before the clock or a window moves
        if matches!(phase, Phase::Stands) {
            self.reasons.started = Instant::now();
            for shoot in &mut self.shoots {
                shoot.passed = i64::MIN;
            }
        }
        self.enter_maintenances();
        match back {
            Some(back) => self.calm = back.as_second(),
            None => self.check(),
        }
        self.checked = self.now() - SLACK;
        self.garden.sim.clear_requests();
    }

    fn enter_maintenances(&mut self) {
        let (present, time) = (Instant::now(), now(&self.garden));
        let maintained = std::mem::take(&mut *self.written.lock().expect("no panic"));
        for (written, name) in maintained {
            let number: usize = name[1..].parse().expect("a number");
            self.shoots[number].enter(time - present.duration_since(written), written, &self.reasons);
        }
    }

    /// Checks the windows that have ended.
    fn check(&mut self) {
        let interval = (self.checked, self.now() - SLACK);
        for shoot in &self.shoots {
            let Some(end) = shoot.due(self.calm, interval) else { continue };
            let is_maintained = shoot.maintenances.contains_key(&end);
            let time = |second: i64| Timestamp::from_second(second).expect("a time");
            let (name, window, end, calm) = (&shoot.name, &shoot.window.written, time(end), time(self.calm));
            assert!(is_maintained, "{name} is not maintained in {window} until {end}, with calm since {calm}");
            self.due += 1;
        }
    }
}

/// Notes each maintenance that is written. gardener-apiserver and gardenlet carry out its operations and tasks at once, so that
/// the next maintenance has something to write.
fn written_maintenances(garden: &Garden) -> Written {
    let written = Written::default();
    let noted = written.clone();
    garden.sim.set_mutation(move |reviewed, object| {
        if reviewed.resource != "shoots" {
            return;
        }
        let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        // A dry run adds no tasks.
        let Some(annotations) = annotations.filter(|annotations| annotations.contains_key(TASKS)) else { return };
        annotations.remove(TASKS);
        annotations.remove(OPERATION);
        noted.lock().expect("no panic").push((Instant::now(), object::name(object).to_owned()));
    });
    written
}

/// spec 84 C.1, C-1 to C-5, C.3
#[test]
fn maintenance_of_many_days_misses_no_window_and_repeats_none() {
    let life = LongLife::from_environment();
    let (shoots, days, length) = (life.shoots, life.days, life.length());
    let due = garden(|garden| async move {
        let mut life = Life::new(garden.clone(), shoots, life.random);
        garden.start().await;
        let begin = Instant::now();
        let mut number = 0;
        while begin.elapsed() < length {
            life.change_shoots();
            life.jump();
            life.pass(number).await;
            number += 1;
        }
        life.due
    });
    assert!(due > shoots * days / 3, "only {due} windows of {shoots} Shoots had to bring a maintenance");
}
