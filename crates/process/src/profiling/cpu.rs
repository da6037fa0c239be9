//! CPU profiles: a timer interrupts the running code a hundred times per second of CPU time, and the stack is kept.

use std::{collections::HashMap, env, time::Duration};

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, rt::time::timeout, web};
use jemalloc_pprof::{StackProfile, WeightedStack};
use mappings::MAPPINGS;
use pprof::{ProfilerGuard, ProfilerGuardBuilder, UnresolvedReport};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{download, refuse, symbols::name_of};

/// Samples per second, as in Go.
const FREQUENCY: i32 = 100;
const NANOSECONDS_PER_SAMPLE: f64 = 1e9 / FREQUENCY as f64;
const DEFAULT_SECONDS: u64 = 30;
/// Stacks are kept until the end, and people do not wait longer for a request.
const MOST_SECONDS: u64 = 600;
/// The function that takes the sample. It and its callees are not part of the profile.
const SAMPLER: &str = "perf_signal_handler";

/// Addresses of one stack, innermost call first, and how often it was seen.
type Stack = (Vec<usize>, isize);

pub(super) async fn profile(
    request: HttpRequest,
    one: web::Data<Semaphore>,
    end: web::Data<CancellationToken>,
) -> HttpResponse {
    let length = match length(request.query_string()) {
        Ok(length) => length,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, error),
    };
    let Ok(_turn) = one.try_acquire() else {
        return failed("Could not enable CPU profiling: cpu profiling already in use");
    };
    // Begin and end make and read more than 100 MB: not on the thread that answers scrapes.
    let profiler = match web::block(begin).await {
        Ok(Ok(profiler)) => profiler,
        Ok(Err(error)) => return failed(format!("Could not enable CPU profiling: {error}")),
        Err(error) => return failed(error),
    };
    if timeout(length, end.cancelled()).await.is_ok() {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "the process ends");
    }
    match web::block(move || finish(profiler)).await {
        Ok(Ok(profile)) => download("profile", profile),
        Ok(Err(error)) => failed(format!("the samples cannot be read: {error}")),
        Err(error) => failed(error),
    }
}

fn failed(why: impl std::fmt::Display) -> HttpResponse {
    refuse(StatusCode::INTERNAL_SERVER_ERROR, why)
}

fn begin() -> Result<ProfilerGuard<'static>, String> {
    // The profiler needs a temporary file, keeps its own failure for ever, and does not say what failed.
    tempfile::tempfile().map_err(|error| format!("{} must be writable: {error}", env::temp_dir().display()))?;
    // Does not follow stacks into the unwinder's own locks, nor into the kernel's page of functions without frames.
    let profiler = ProfilerGuardBuilder::default().frequency(FREQUENCY).blocklist(&["libgcc", "pthread", "vdso"]);
    profiler.build().map_err(|error| error.to_string())
}

fn finish(profiler: ProfilerGuard<'static>) -> pprof::Result<Vec<u8>> {
    let stacks = profiler.report().build_unresolved().map(stacks)?;
    drop(profiler);
    Ok(encode(stacks))
}

/// Reads `?seconds=<n>`; absent or 0 means the default.
fn length(query: &str) -> Result<Duration, String> {
    let pairs = web::Query::<Vec<(String, String)>>::from_query(query).map(web::Query::into_inner).unwrap_or_default();
    let Some((_, text)) = pairs.into_iter().find(|(key, _)| key == "seconds") else {
        return Ok(Duration::from_secs(DEFAULT_SECONDS));
    };
    match text.parse() {
        Ok(0) => Ok(Duration::from_secs(DEFAULT_SECONDS)),
        Ok(seconds @ 1..=MOST_SECONDS) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("seconds must be a whole number from 1 to {MOST_SECONDS}")),
    }
}

fn stacks(report: UnresolvedReport) -> Vec<Stack> {
    let stacks = report.data.into_iter();
    // 0 marks the point where a stack cannot be followed further.
    let addresses =
        |frames: &[backtrace::Frame]| frames.iter().map(|frame| frame.ip() as usize).filter(|&it| it != 0).collect();
    stacks.map(|(stack, count)| (addresses(&stack.frames), count)).collect()
}

/// The profile in pprof's format. Looks up names, which reads the program's file.
fn encode(stacks: Vec<Stack>) -> Vec<u8> {
    let mut profile = StackProfile::default();
    let mut is_sampler = HashMap::new();
    for (addresses, count) in stacks {
        let sampler = |address: &usize| {
            let found = is_sampler.entry(*address);
            *found.or_insert_with(|| name_of(*address).is_some_and(|name| name.contains(SAMPLER)))
        };
        // After the sampler comes the kernel's frame for the return from a signal.
        let own = addresses.iter().position(sampler).map_or(0, |position| position + 2);
        let mut addresses = addresses.get(own..).unwrap_or_default().to_vec();
        // All addresses except the innermost are return addresses, just after the call; the format expects that of all.
        if let Some(innermost) = addresses.first_mut() {
            *innermost += 1;
            addresses.reverse();
            profile.push_stack(WeightedStack { addrs: addresses, weight: count as f64 * NANOSECONDS_PER_SAMPLE }, None);
        }
    }
    for mapping in MAPPINGS.iter().flatten() {
        profile.push_mapping(mapping.clone());
    }
    profile.to_pprof(("cpu", "nanoseconds"), ("cpu", "nanoseconds"), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 70 §9.3
    #[test]
    fn a_profile_takes_the_seconds_that_were_asked_for() {
        let table = [
            ("", Some(30)),
            ("seconds=0", Some(30)),
            ("seconds=5", Some(5)),
            ("debug=1&seconds=600", Some(600)),
            ("seconds=601", None),
            ("seconds=-1", None),
            ("seconds=1.5", None),
            ("seconds=", None),
        ];

        for (query, seconds) in table {
            assert_eq!(length(query).ok(), seconds.map(Duration::from_secs), "{query}");
        }
    }

    #[test]
    fn stacks_that_nothing_ran_on_make_an_empty_profile() {
        let profile = encode(vec![(Vec::new(), 3)]);

        assert!(profile.starts_with(&[0x1f, 0x8b]), "it is compressed by gzip");
    }
}
