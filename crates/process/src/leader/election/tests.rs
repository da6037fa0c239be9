use serde_json::json;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn timing() -> Timing {
    Timing::new(15 * SECOND, 10 * SECOND, 2 * SECOND).unwrap()
}

struct Candidate {
    election: Election,
    zero: Instant,
}

impl Candidate {
    fn new() -> Self {
        let zero = Instant::now();
        Self { election: Election::new("me".into(), "ns".into(), "grm".into(), timing(), zero), zero }
    }

    fn leading() -> Self {
        let mut candidate = Self::new();
        candidate.election.begin(candidate.at(0));
        let Action::Update(lease) = candidate.election.read(lease("", 1), candidate.at(0)) else { panic!("not free") };
        assert_eq!(candidate.election.written(Answer::Lease(lease), candidate.at(0)), Action::Wait(2 * SECOND));
        candidate
    }

    fn at(&self, seconds: u64) -> Tick {
        let wall = "2026-01-02T03:04:05Z".parse::<Timestamp>().unwrap() + Duration::from_secs(seconds);
        Tick { now: self.zero + Duration::from_secs(seconds), wall, random: 0.5 }
    }
}

fn lease(holder: &str, renewal: u64) -> Answer {
    Answer::Lease(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "ns", "name": "grm", "uid": "u", "resourceVersion": renewal.to_string()},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewal.to_string(),
            "leaseTransitions": 3},
    }))
}

/// spec 70 §12
#[test]
fn leader_election_texts_of_bad_configurations() {
    let short = Timing::new(15 * SECOND, 2 * SECOND, 2 * SECOND).unwrap_err();

    assert_eq!(short.to_string(), "renewDeadline must be greater than retryPeriod*JitterFactor");
    assert!(Timing::new(10 * SECOND, 10 * SECOND, 2 * SECOND).is_err());
    for (lock, text) in [
        ("endpoints", "endpoints lock is removed, migrate to leases"),
        ("configmaps", "configmaps lock is removed, migrate to leases"),
        ("endpointsleases", "endpointsleases lock is removed, migrate to leases"),
        ("configmapsleases", "configmapsleases lock is removed, migrated to leases"),
        ("x", "Invalid lock-type x"),
    ] {
        assert_eq!(check_lock_type(lock).unwrap_err().to_string(), text);
    }
    assert_eq!(check_lock_type("leases"), Ok(()));
}

#[test]
fn lease_that_is_missing_is_created() {
    let mut candidate = Candidate::new();

    assert_eq!(candidate.election.begin(candidate.at(0)), Action::Get);
    let created = candidate.election.read(Answer::Missing, candidate.at(1));

    let Action::Create(lease) = created else { panic!("{created:?}") };
    assert_eq!(
        lease,
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": "ns", "name": "grm"},
            "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                "acquireTime": "2026-01-02T03:04:06.000000Z", "renewTime": "2026-01-02T03:04:06.000000Z"},
        })
    );
    candidate.election.written(Answer::Lease(lease), candidate.at(2));
    assert_eq!(candidate.election.held_since(), Some(candidate.at(1).now));
}

/// spec 70 §12: its holder does not know yet, and writes until its own deadline.
#[test]
fn lease_deleted_under_its_holder_is_created_when_it_would_have_expired() {
    let mut candidate = Candidate::new();
    candidate.election.read(lease("other", 1), candidate.at(0));

    let (early, late) = (candidate.at(14), candidate.at(15));
    assert_eq!(candidate.election.read(Answer::Missing, early), Action::Wait(SECOND));
    assert!(matches!(candidate.election.read(Answer::Missing, late), Action::Create(_)));
}

#[test]
fn lease_deleted_while_free_is_created_at_once() {
    let mut candidate = Candidate::new();
    candidate.election.read(lease("", 1), candidate.at(0));

    assert!(matches!(candidate.election.read(Answer::Missing, candidate.at(0)), Action::Create(_)));
}

#[test]
fn lease_holder_reads_at_once_if_another_replica_created_its_deleted_lease() {
    let mut leader = Candidate::leading();
    leader.election.begin(leader.at(2));
    leader.election.written(Answer::Missing, leader.at(2));
    assert!(matches!(leader.election.read(Answer::Missing, leader.at(2)), Action::Create(_)));

    assert_eq!(leader.election.written(Answer::Exists, leader.at(2)), Action::Get);
    assert_eq!(leader.election.read(lease("other", 5), leader.at(2)), Action::Lost);
}

#[test]
fn candidate_tries_again_after_one_to_two_point_two_retry_periods() {
    let mut candidate = Candidate::new();
    for (random, expected) in [(0.0, 2.0), (0.5, 3.2), (0.999, 4.3976)] {
        let at = Tick { random, ..candidate.at(0) };

        assert_eq!(candidate.election.read(Answer::Failed, at), Action::Wait(Duration::from_secs_f64(expected)));
    }
}

#[test]
fn lease_is_free_when_its_record_stands_still_for_its_duration_by_our_clock() {
    let mut candidate = Candidate::new();
    let waits = |action| matches!(action, Action::Wait(_));

    assert!(waits(candidate.election.read(lease("other", 1), candidate.at(0))));
    assert!(waits(candidate.election.read(lease("other", 2), candidate.at(10)))); // renewed
    assert!(waits(candidate.election.read(lease("other", 2), candidate.at(24))));
    let taken = candidate.election.read(lease("other", 2), candidate.at(25));

    let Action::Update(lease) = taken else { panic!("{taken:?}") };
    assert_eq!(lease["spec"]["holderIdentity"], "me");
    assert_eq!(lease["spec"]["leaseTransitions"], 4);
    assert_eq!(lease["metadata"]["resourceVersion"], "2");
}

#[test]
fn candidate_reads_again_when_the_lease_expires() {
    let mut candidate = Candidate::new();
    candidate.election.read(lease("other", 1), candidate.at(0));

    assert_eq!(candidate.election.read(lease("other", 1), candidate.at(14)), Action::Wait(SECOND));
}

#[test]
fn lease_renewal_counts_from_when_the_watch_showed_it() {
    let mut candidate = Candidate::new();
    candidate.election.read(lease("other", 1), candidate.at(0));
    let Answer::Lease(renewed) = lease("other", 2) else { unreachable!() };
    assert!(!candidate.election.saw(renewed, candidate.at(2).now));

    assert!(matches!(candidate.election.read(lease("other", 2), candidate.at(16)), Action::Wait(_)));
    assert!(matches!(candidate.election.read(lease("other", 2), candidate.at(17)), Action::Update(_)));
}

#[test]
fn lease_seen_free_is_read_before_it_is_taken() {
    let mut candidate = Candidate::new();
    candidate.election.read(lease("other", 1), candidate.at(0));
    let Answer::Lease(free) = lease("", 2) else { unreachable!() };

    assert!(candidate.election.saw(free, candidate.at(1).now));
    assert_eq!(candidate.election.begin(candidate.at(1)), Action::Get);
    assert!(matches!(candidate.election.read(lease("third", 3), candidate.at(1)), Action::Wait(_)));
}

#[test]
fn lease_holder_ignores_the_watch() {
    let mut leader = Candidate::leading();
    let Answer::Lease(free) = lease("", 9) else { unreachable!() };

    assert!(!leader.election.saw(free, leader.at(1).now));
    assert!(matches!(leader.election.begin(leader.at(2)), Action::Update(_)));
}

#[test]
fn lease_metadata_change_is_no_renewal() {
    let mut candidate = Candidate::new();
    candidate.election.read(lease("other", 1), candidate.at(0));
    let Answer::Lease(mut touched) = lease("other", 1) else { unreachable!() };
    touched["metadata"]["resourceVersion"] = "99".into();

    let taken = candidate.election.read(Answer::Lease(touched), candidate.at(15));

    let Action::Update(lease) = taken else { panic!("{taken:?}") };
    assert_eq!(lease["metadata"]["resourceVersion"], "99");
}

#[test]
fn lease_holder_updates_without_reading_and_reads_after_a_conflict() {
    let mut leader = Candidate::leading();

    let renewal = leader.election.begin(leader.at(2));
    let Action::Update(renewed) = renewal else { panic!("{renewal:?}") };
    assert_eq!(renewed["spec"]["renewTime"], "2026-01-02T03:04:07.000000Z");
    assert_eq!(renewed["spec"]["acquireTime"], "2026-01-02T03:04:05.000000Z");
    assert_eq!(renewed["spec"]["leaseTransitions"], 4);
    assert_eq!(leader.election.written(Answer::Failed, leader.at(3)), Action::Get);

    let again = leader.election.read(lease("me", 9), leader.at(4));
    let Action::Update(renewed) = again else { panic!("{again:?}") };
    assert_eq!(renewed["metadata"]["resourceVersion"], "9");
    leader.election.written(Answer::Lease(renewed), leader.at(5));
    assert_eq!(leader.election.held_since(), Some(leader.at(4).now));
}

#[test]
fn lease_holder_gives_up_after_the_renew_deadline() {
    let mut leader = Candidate::leading();

    leader.election.begin(leader.at(2));
    assert_eq!(leader.election.written(Answer::Failed, leader.at(7)), Action::Get);
    // the wait ends at the deadline, not after it
    assert_eq!(leader.election.read(Answer::Failed, leader.at(9)), Action::Wait(SECOND));
    assert_eq!(leader.election.begin(leader.at(10)), Action::Lost);
    assert_eq!(leader.election.held_since(), None);
}

/// fault 16
#[test]
fn lease_holder_gives_up_at_once_when_it_sees_another_holder() {
    let mut leader = Candidate::leading();
    leader.election.begin(leader.at(2));
    leader.election.written(Answer::Failed, leader.at(2));

    assert_eq!(leader.election.read(lease("other", 5), leader.at(3)), Action::Lost);
}

#[test]
fn lease_acquisition_of_unknown_outcome_is_made_certain() {
    let mut candidate = Candidate::new();
    candidate.election.read(lease("", 1), candidate.at(0));
    candidate.election.written(Answer::Failed, candidate.at(5));
    assert_eq!(candidate.election.held_since(), None);
    assert_eq!(candidate.election.begin(candidate.at(8)), Action::Get);

    assert!(matches!(candidate.election.read(lease("me", 2), candidate.at(8)), Action::Update(_)));
}

/// A candidate that waits for another's lease to end must not wait for its own.
#[test]
fn lease_that_we_may_have_acquired_is_not_held_by_another() {
    let mut candidate = Candidate::new();
    candidate.election.read(lease("other", 1), candidate.at(0));
    assert_eq!(candidate.election.held_by_another_until(), Some(candidate.at(15).now));
    candidate.election.read(lease("", 2), candidate.at(1));
    assert_eq!(candidate.election.held_by_another_until(), None);
    candidate.election.written(Answer::Failed, candidate.at(1));
    let Answer::Lease(written) = lease("me", 3) else { unreachable!() };

    candidate.election.saw(written, candidate.at(2).now);

    assert_eq!(candidate.election.held_by_another_until(), None);
}

/// spec 70 §12
#[test]
fn lease_released_has_no_holder_and_lasts_a_second() {
    let mut leader = Candidate::leading();

    let lease = leader.election.release(leader.at(3)).unwrap();

    assert_eq!(lease["spec"]["holderIdentity"], "");
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 1);
    assert_eq!(lease["spec"]["leaseTransitions"], 4);
    assert_eq!(leader.election.release(leader.at(3)), None);
    assert_eq!(Candidate::new().election.release(leader.at(3)), None);
}
