//! The commands of gardener-controller-manager and their options. The comments of variants and options are the texts of
//! the help.

#![allow(rustdoc::broken_intra_doc_links, reason = "the help shows defaults in brackets")]

use std::ffi::OsStr;

use clap::{
    Args, Subcommand,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use cluster::Resource;
use jiff::Timestamp;

use super::{
    super::{
        epilogue::epilogue_of,
        grammar::{ConnectionOptions, PATH, ReportOptions, managed_resource, namespace},
        manual::ManOptions,
        operator_tools::{CompletionOptions, VersionOptions},
        short_names::long_name,
    },
    PROGRAM, ProgramCheckOptions,
};
use crate::{actors::controller_manager::referrers, api::meta::field::formats};

/// A command for operators.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Tool {
    /// Show who refers to an object, and which finalizer each referrer keeps on it. Nothing is written.
    ///
    /// The rules are those of the controllers. STATE is in use, in deletion (the referrer is being deleted, and counts until
    /// its own controllers have finished) or finished (it does not count any more). KEEPS is the finalizer that the referrer
    /// keeps on the object; of a Seed, ControllerInstallations keep their finalizer.
    ///
    /// Secrets are read as metadata, and never listed. The command lists the kinds that may refer to the object: the user
    /// needs the right to list them. The controller need not run.
    #[command(
        about = "Show who refers to an object",
        after_long_help = epilogue_of(
            PROGRAM,
            &[
                "referrers secret garden-dev/my-secret",
                "referrers quotas.core.gardener.cloud small -n garden-dev",
                "referrers cloudprofile aws -o json",
            ],
            "the object does not exist",
        )
    )]
    Referrers(ReferrersOptions),
    /// Show the extensions of a Seed, and why each is installed. Nothing is written.
    ///
    /// The rules are those of the controller. STATE is installed, not installed (it is wanted), in deletion, not needed, no
    /// registration (its ControllerRegistration does not exist), or undecided (its seedSelector is unusable). For a Seed that is
    /// a self-hosted Shoot it may be of the Shoot, of the Seed, or left to the Shoot. NEEDS is what the extension serves, BY is
    /// who needs that: Shoots, BackupBuckets, BackupEntries, or a field of the Seed.
    ///
    /// The command lists registrations, installations, Shoots, BackupBuckets and BackupEntries, and the metadata of Secrets in
    /// the Namespace of the Seed: the user needs the right to list them. The controller need not run.
    #[command(
        about = "Show the extensions of a Seed, and why each is installed",
        after_long_help = epilogue_of(
            PROGRAM,
            &["extensions aws-eu1", "extensions aws-eu1 -o json"],
            "the Seed does not exist, or a need has no ControllerRegistration",
        )
    )]
    Extensions(ExtensionsOptions),
    /// Show the next ten times at which the schedules of a Shoot hibernate its cluster and wake it up. No cluster is read.
    ///
    /// The rules are those of the controller shoot-hibernation: cron entries on the clocks of a location, which skip or repeat
    /// an hour when these clocks change. If several entries occur at once, the first of the list takes effect. A mistake in one
    /// entry spoils the whole list; the error names the field and the remedy.
    #[command(
        about = "Show the next times of the hibernation schedules of a Shoot",
        after_long_help = epilogue_of(
            PROGRAM,
            &[
                "hibernation --shoot shoot.yaml",
                "hibernation --shoot shoot.yaml --at 2026-03-28T12:00:00Z -o json",
                "hibernation --shoot - < shoot.yaml",
            ],
            "the schedules are invalid",
        )
    )]
    Hibernation(HibernationOptions),
    /// Show what the next maintenance of a Shoot would change, and why, from files. Nothing is read from a cluster.
    ///
    /// The rules are those of the controller. The output says whether the Shoot is due at the time, what the report in its
    /// status would say, and the changes as a merge patch. Standard error says what could not be seen, such as the verdict of
    /// the API server.
    ///
    /// A Shoot whose SecretBinding must be replaced needs that SecretBinding, and the CredentialsBindings of its namespace,
    /// as --objects.
    #[command(
        about = "Show what the next maintenance of a Shoot would change",
        after_long_help = epilogue_of(
            PROGRAM,
            &[
                "maintenance --shoot shoot.yaml --cloudprofile cloudprofile.yaml",
                "maintenance --shoot - --cloudprofile aws.yaml --at 2026-08-21T22:00:00Z -o json",
            ],
            "a part of the maintenance would fail",
        )
    )]
    Maintenance(MaintenanceOptions),
    /// Check what the program with a configuration needs of the garden cluster: rights and kinds. Nothing is written.
    ///
    /// The command reaches the cluster as the program does: run it where the program runs, for example with kubectl exec. For
    /// each right it asks the API server with a SelfSubjectAccessReview.
    ///
    /// RESULT is ok, missing, or note: the program waits for it. Only missing changes the exit code.
    #[command(
        about = "Check rights and kinds that the program needs",
        after_long_help = epilogue_of(
            PROGRAM,
            &["check --config config.yaml", "check --config config.yaml -o json"],
            "a right, a kind or the cluster is missing",
        )
    )]
    Check(ProgramCheckOptions),
    /// Print the version and the details of the build.
    #[command(
        long_about = "Print the version and the details of the build.",
        after_long_help = epilogue_of(PROGRAM, &["version", "version -o json"], "")
    )]
    Version(VersionOptions),
    /// Write a manual page for each command.
    #[command(
        long_about = "Write a manual page for the program and for each command, in section 1. A directory that does not exist \
            is made; pages that exist are overwritten.",
        after_long_help = epilogue_of(PROGRAM, &["man ~/.local/share/man/man1"], "")
    )]
    Man(ManOptions),
    /// Print a script that completes commands and flags in a shell.
    #[command(
        long_about = "Print a script that completes commands and flags in a shell.",
        after_long_help = epilogue_of(
            PROGRAM,
            &["completion bash > /etc/bash_completion.d/gardener-controller-manager"],
            ""
        )
    )]
    Completion(CompletionOptions),
}

/// Options of `referrers`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[group(skip)]
pub struct ReferrersOptions {
    /// Kind of the object, e.g. secret, quotas or Quota.core.gardener.cloud.
    #[arg(value_name = "KIND[.GROUP]", value_parser = KindParser, hide_possible_values = true, long_help = kinds_help())]
    pub kind: ReferredKind,
    /// Name of the object.
    #[arg(value_name = "[NAMESPACE/]NAME", value_parser = managed_resource)]
    pub name: String,
    /// Namespace of the object [default: that of the kubeconfig's context]
    #[arg(long, short, value_name = "NAMESPACE", value_parser = namespace)]
    pub namespace: Option<String>,
    /// How the referrers are printed.
    #[command(flatten)]
    pub report: ReportOptions,
    /// The connection to the garden cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Options of `extensions`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[group(skip)]
pub struct ExtensionsOptions {
    /// Name of the Seed.
    #[arg(value_name = "SEED", value_parser = seed)]
    pub seed: String,
    /// How the extensions are printed.
    #[command(flatten)]
    pub report: ReportOptions,
    /// The connection to the garden cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Options of `hibernation`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[group(skip)]
pub struct HibernationOptions {
    /// Manifest of the Shoot, as YAML or JSON; - reads standard input.
    #[arg(long, value_name = "FILE", value_parser = PATH)]
    pub shoot: String,
    /// Begin at this time, e.g. 2026-03-28T12:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    /// How the times are printed.
    #[command(flatten)]
    pub report: ReportOptions,
}

/// Options of `maintenance`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[group(skip)]
pub struct MaintenanceOptions {
    /// The Shoot, as JSON or YAML; - reads standard input.
    #[arg(long, value_name = "FILE", value_parser = PATH)]
    pub shoot: String,
    /// Its CloudProfile, or its NamespacedCloudProfile with the status.
    #[arg(long, value_name = "FILE", value_parser = PATH)]
    pub cloudprofile: String,
    /// SecretBindings and CredentialsBindings; may be repeated.
    #[arg(long, value_name = "FILE|DIR", value_parser = PATH, num_args = 1..)]
    pub objects: Vec<String>,
    /// Component configuration [default: that of an empty file]
    #[arg(long, value_name = "FILE", value_parser = PATH)]
    pub config: Option<String>,
    /// Time of the maintenance, e.g. 2026-08-21T22:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    /// How the maintenance is printed.
    #[command(flatten)]
    pub report: ReportOptions,
}

fn seed(text: &str) -> Result<String, &'static str> {
    let is_name = formats::dns_subdomain(text).is_empty();
    is_name.then(|| text.to_owned()).ok_or("a name must be lower case letters, digits, - and .")
}

fn time(text: &str) -> Result<Timestamp, &'static str> {
    text.parse()
        .map_err(|_| "must be a date and a time with its zone, e.g. 2026-03-28T12:00:00Z or 2026-03-28T14:00:00+02:00")
}

/// A kind whose referrers are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferredKind(&'static Resource);

/// Reads a [`ReferredKind`].
#[derive(Debug, Clone, Copy)]
struct KindParser;

impl ReferredKind {
    /// Returns it as the server addresses it.
    pub fn resource(self) -> &'static Resource {
        self.0
    }

    fn named(text: &str) -> Result<Self, String> {
        let called = |text: &str| referrers::kinds().into_iter().find(|kind| kind.is_called(text));
        called(text).or_else(|| called(long_name(text))).map(Self).ok_or_else(|| {
            let kinds: Vec<String> = referrers::kinds().iter().map(|kind| kind.kind.to_string()).collect();
            format!("must be one of {}, or its plural; a group follows a dot", kinds.join(", "))
        })
    }
}

impl TypedValueParser for KindParser {
    type Value = ReferredKind;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<ReferredKind, clap::Error> {
        let parser = StringValueParser::new().try_map(|text: String| ReferredKind::named(&text));
        parser.parse_ref(command, argument, value)
    }

    /// For completion.
    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(referrers::kinds().into_iter().map(|kind| PossibleValue::new(&*kind.plural))))
    }
}

fn kinds_help() -> String {
    let kinds: Vec<String> = referrers::kinds().iter().map(|kind| kind.kind.to_string()).collect();
    format!(
        "Kind of the object, in any case, or its plural; a group follows a dot, e.g. Quota.core.gardener.cloud. Kinds: {}",
        kinds.join(", ")
    )
}

impl Tool {
    /// Fails for options that contradict each other in a way that their declarations do not say.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self::Referrers(ReferrersOptions { kind, name, namespace, .. }) = self else { return Ok(()) };
        let given = name.split_once('/').map(|(namespace, _)| namespace);
        let Resource { plural, namespaced, .. } = kind.resource();
        match (namespaced, given.or(namespace.as_deref())) {
            (false, Some(_)) => Err(format!("{plural} have no namespace — leave it out")),
            _ if given.zip(namespace.as_deref()).is_some_and(|(given, other)| given != other) => {
                Err("-n and the namespace of a name differ — leave out one of them".to_owned())
            }
            _ => Ok(()),
        }
    }
}
