//! Heap profiles and statistics of the allocator. The allocator takes samples only if a setting says so when it starts,
//! before `main`. A process with profiling therefore restarts itself once, with the setting in its environment
//! ([`prepare`]); all other processes pay nothing.

use std::{
    env,
    ffi::OsString,
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use actix_web::{HttpResponse, http::StatusCode, web};
use jemalloc_pprof::PROF_CTL;
use tikv_jemalloc_ctl::{Access, AsName, epoch, stats};

use super::{download, plain, refuse};

/// Environment variable with the allocator's settings.
const SETTINGS: &str = "_RJEM_MALLOC_CONF";
const TAKE_SAMPLES: &str = "prof:true";

/// Why there are no heap profiles. Everything else works.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoHeapProfiles {
    /// The setting is present but has no effect: this program uses another allocator.
    #[error("the allocator takes no samples")]
    Unsupported,
    /// The configuration can be read only once, and a restarted process would read it again.
    #[error("the configuration {0} is no regular file, so the program cannot restart itself")]
    ConfigIsRead(PathBuf),
    #[error("the program cannot restart itself: {0}")]
    Start(#[from] io::Error),
}

/// Makes the allocator take samples. May replace this process by a new one with the same arguments and process id, so
/// call it before anything is started. `config`: the file that it has read. Fails if there will be no samples.
pub(crate) fn prepare(config: Option<&Path>) -> Result<(), NoHeapProfiles> {
    if takes_samples() {
        return Ok(());
    }
    if let Some(config) = config.filter(|config| !config.is_file()) {
        return Err(NoHeapProfiles::ConfigIsRead(config.to_owned()));
    }
    let settings = with_samples(env::var_os(SETTINGS)).ok_or(NoHeapProfiles::Unsupported)?;
    let mut again = Command::new(env::current_exe()?);
    // Returns only if it fails.
    Err(again.args(env::args_os().skip(1)).env(SETTINGS, settings).exec().into())
}

/// Returns the settings with ours, or `None` if ours is set already.
fn with_samples(settings: Option<OsString>) -> Option<OsString> {
    let mut settings = settings.unwrap_or_default();
    if settings.to_string_lossy().split(',').any(|setting| setting == TAKE_SAMPLES) {
        return None;
    }
    if !settings.is_empty() {
        settings.push(",");
    }
    settings.push(TAKE_SAMPLES);
    Some(settings)
}

fn takes_samples() -> bool {
    c"opt.prof".to_bytes_with_nul().name().read().unwrap_or(false)
}

pub(super) async fn profile() -> HttpResponse {
    let Some(control) = PROF_CTL.as_ref() else {
        return refuse(StatusCode::NOT_FOUND, NoHeapProfiles::Unsupported);
    };
    let mut control = control.clone().lock_owned().await;
    match web::block(move || control.dump_pprof()).await {
        Ok(Ok(profile)) => download("heap", profile),
        Ok(Err(error)) => {
            let why = format!("no heap profile, for which {} must be writable: {error}", env::temp_dir().display());
            refuse(StatusCode::INTERNAL_SERVER_ERROR, why)
        }
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, error),
    }
}

pub(super) async fn statistics() -> HttpResponse {
    match measure() {
        Ok(statistics) => plain(statistics),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, format!("the allocator keeps no statistics: {error}")),
    }
}

fn measure() -> Result<String, tikv_jemalloc_ctl::Error> {
    epoch::advance()?; // the numbers are those of this moment
    let rows = [
        ("allocated", stats::allocated::read()?, "by the program, in use"),
        ("active", stats::active::read()?, "pages with something in use"),
        ("resident", stats::resident::read()?, "in memory, with what is kept for later"),
        ("mapped", stats::mapped::read()?, "of the address space"),
        ("retained", stats::retained::read()?, "of the address space, given back"),
        ("metadata", stats::metadata::read()?, "of the allocator's own"),
    ];
    let lines = rows.map(|(name, bytes, meaning)| format!("{bytes:>12}  {name:<9}  {meaning}\n"));
    Ok(format!("bytes\n{}", lines.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe is empty at the second read: the process would run with the defaults.
    #[test]
    fn a_process_whose_configuration_is_no_file_does_not_start_itself_anew() {
        let refused = prepare(Some(Path::new("/dev/null"))).map_err(|error| error.to_string());

        let text = "the configuration /dev/null is no regular file, so the program cannot restart itself";
        assert_eq!(refused, Err(text.to_owned()));
    }

    #[test]
    fn heap_profile_setting_is_added_once() {
        let added = |settings: Option<&str>| with_samples(settings.map(Into::into)).map(|it| it.into_string().unwrap());

        assert_eq!(added(None).as_deref(), Some("prof:true"));
        assert_eq!(added(Some("narenas:1")).as_deref(), Some("narenas:1,prof:true"));
        assert_eq!(added(Some("narenas:1,prof:true")), None, "a process does not start itself for ever");
    }
}
