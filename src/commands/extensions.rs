//! `extensions` of gardener-controller-manager: which extensions a Seed has, and why, by the rules of the controller. Writes
//! nothing.
//!
//! `Seed, Shoots, backups, registrations, installations ─► actors' installations/ ─► rows ─► text, JSON`
//!
//! Of what is listed only needs are kept. Secrets are listed in the Namespace of the Seed, as metadata.

use std::{sync::Arc, time::Duration};

use cluster::{ApiError, Cluster, Context, ListQuery, Resource, object, object::NamespacedName};
use kit::{Clock, Deadline, Priority, Random};
use process::Program as _;
use serde_json::{Value, json};

use super::{
    DIFFERENT, OK, Said,
    colours::{GREEN, PLAIN, YELLOW},
    columns::{Cell, lines, plain, styled},
    connect, report,
    screen::Content,
};
use crate::{
    actors::controller_manager::{
        installations::{
            assessment::{Assessment, KnownSeed, KnownShoot},
            backups::{BackupIndex, BucketFacts, EntryFacts, ExtensionCluster},
            demand::DemandIndex,
            domains::{DomainSecret, Domains},
            explanation::{ExplainedInstallation, InstallationState},
            installation::InstallationFacts,
            plan::{Existing, grouped},
            registration::{Catalogue, KnownRegistration, RegistrationFacts},
            seed_facts::SeedFacts,
            shoot_needs::ShootNeeds,
        },
        seed::secrets::namespace::namespace_of,
    },
    api::kinds,
    cli::controller_manager::ExtensionsOptions,
    jsonpath::TooMuch,
    programs::controller_manager::ControllerManager,
};

/// All requests together.
const TIME: Duration = Duration::from_secs(300);
/// How often a list is started again if it expires while it is read.
const MOST_LISTS: u32 = 3;
/// Secrets that name domains.
const DOMAIN_SECRETS: &str = "gardener.cloud/role in (internal-domain,default-domain)";

/// Why it is not known what a Seed needs.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExtensionsError {
    #[error("cannot read {object}: {source}")]
    Read { object: String, source: ApiError },
    #[error("cannot list {plural}: {source} — it is not known what Seed {seed} needs")]
    List { plural: String, seed: String, source: ApiError },
    #[error(transparent)]
    Report(#[from] TooMuch),
}

/// What was read.
#[derive(Default)]
struct Garden {
    catalogue: Catalogue,
    backups: BackupIndex,
    demand: DemandIndex,
    /// The Shoot whose cluster the Seed is.
    own_shoot: Option<(ShootNeeds, bool)>,
    existing: Existing,
}

/// The Seed with its extensions.
struct Found {
    seed: String,
    is_deleting: bool,
    assessment: Assessment,
    explained: Vec<ExplainedInstallation>,
}

struct Question<'a> {
    cluster: &'a Cluster,
    context: Context,
    seed: &'a str,
}

/// Shows the extensions of a Seed. The exit code is 1 if the Seed does not exist, or if a need has no registration.
pub(super) async fn extensions(
    client: kube::Client,
    (clock, random): (Clock, Random),
    options: &ExtensionsOptions,
    colours: bool,
) -> Result<Said, ExtensionsError> {
    let [label] = ControllerManager::CLUSTERS else { return Ok(Said::default()) };
    let cluster = connect::read_only_as(client, *label, clock, random);
    let cluster = &cluster.limited(options.connection.request_timeout.get());
    let context = Context::new(Priority::High, Deadline::after(TIME), "extensions");
    let question = Question { cluster, context, seed: &options.seed };
    let Some(found) = question.found().await? else {
        let remark = format!("error: there is no Seed {} — check the name", options.seed);
        return Ok(Said { remarks: vec![remark], code: DIFFERENT, ..Said::default() });
    };
    let (out, content) = match &options.report.output {
        Some(format) => (report::whole(&found.json(), format)?, Content::Data),
        None => (found.text(colours), Content::Painted),
    };
    let remarks = found.remarks();
    let code = if found.is_clear() { OK } else { DIFFERENT };
    Ok(Said { out, content, remarks, code })
}

impl Question<'_> {
    /// Returns the Seed with its extensions; `None` if it does not exist.
    async fn found(&self) -> Result<Option<Found>, ExtensionsError> {
        let at = kinds::SEED.named(&NamespacedName::new("", self.seed));
        let seed = self.cluster.find(&self.context, &at).await;
        let cannot_read = |source| ExtensionsError::Read { object: format!("Seed {}", self.seed), source };
        let Some(seed) = seed.map_err(cannot_read)? else { return Ok(None) };
        let facts = SeedFacts::of(&seed);
        let garden = self.garden(&facts).await?;
        let domains = self.domains(&facts, garden.demand.with(self.seed, |demand| !demand.shoots.is_empty())).await?;
        let own_name = NamespacedName::new("garden", self.seed);
        let own_shoot = garden.own_shoot.as_ref().map(|(needs, is_deleting)| KnownShoot {
            name: &own_name,
            needs,
            is_deleting: *is_deleting,
        });
        let assessment = garden.demand.with(self.seed, |demand| {
            let known = KnownSeed { name: self.seed, facts: &facts, demand, domains: &domains, own_shoot };
            Assessment::of_seed(known, &garden.backups, &garden.catalogue, &garden.existing)
        });
        let explained = ExplainedInstallation::of(&assessment, &garden.existing, &garden.catalogue);
        Ok(Some(Found { seed: self.seed.to_owned(), is_deleting: facts.is_deleting, assessment, explained }))
    }

    async fn garden(&self, seed: &SeedFacts) -> Result<Garden, ExtensionsError> {
        let mut garden = Garden::default();
        for (name, facts) in self.listed(&kinds::CONTROLLER_REGISTRATION, RegistrationFacts::of).await? {
            let known = KnownRegistration { version: 0, facts: Arc::new(facts) };
            garden.catalogue.put(&name.name, Some(known));
        }
        for (name, bucket) in self.listed(&kinds::BACKUP_BUCKET, BucketFacts::of).await? {
            garden.backups.put_bucket(&name.name, Some(bucket));
        }
        for (name, entry) in self.listed(&kinds::BACKUP_ENTRY, EntryFacts::of).await? {
            garden.backups.put_entry(&name, Some(entry));
        }
        let shoot = |shoot: &Value| {
            let seed = |pointer| shoot.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let is_deleting = object::deletion_timestamp(shoot).is_some();
            ([seed("/spec/seedName"), seed("/status/seedName")], Arc::new(ShootNeeds::of(shoot)), is_deleting)
        };
        let own_name = NamespacedName::new("garden", self.seed);
        for (name, ([spec, status], needs, is_deleting)) in self.listed(&kinds::SHOOT, shoot).await? {
            garden.demand.put(&name, Some(([&spec, &status], &needs)));
            if seed.is_self_hosted && name == own_name {
                garden.own_shoot = Some(((*needs).clone(), is_deleting));
            }
        }
        let own_cluster = match garden.own_shoot {
            Some(_) => ExtensionCluster::Shoot(own_name),
            None => ExtensionCluster::Seed(self.seed.into()),
        };
        let is_meant = |facts: &InstallationFacts| match &own_cluster {
            ExtensionCluster::Seed(seed) => facts.seed.as_ref() == Some(seed),
            ExtensionCluster::Shoot(shoot) => facts.shoot.as_ref() == Some(shoot),
        };
        let installations = self.listed(&kinds::CONTROLLER_INSTALLATION, InstallationFacts::of).await?;
        let installations = installations.into_iter().filter(|(_, facts)| is_meant(facts));
        garden.existing = grouped(installations.map(|(name, facts)| (name.name.into(), Arc::new(facts))));
        Ok(garden)
    }

    /// Domains count only if the Seed has Shoots.
    async fn domains(&self, seed: &SeedFacts, has_shoots: bool) -> Result<Result<Domains, String>, ExtensionsError> {
        let secrets = if has_shoots {
            let query = ListQuery { metadata_only: true, ..ListQuery::labelled(DOMAIN_SECRETS) };
            self.pages(&kinds::SECRET, Some(namespace_of(self.seed)), query, DomainSecret::of).await?
        } else {
            Vec::new()
        };
        Ok(Domains::of(seed, secrets.iter().filter_map(|(name, secret)| Some((name, secret.as_ref()?)))))
    }

    async fn listed<T>(
        &self,
        kind: &Resource,
        read: impl Fn(&Value) -> T,
    ) -> Result<Vec<(NamespacedName, T)>, ExtensionsError> {
        self.pages(kind, None, ListQuery::default(), read).await
    }

    async fn pages<T>(
        &self,
        kind: &Resource,
        namespace: Option<String>,
        query: ListQuery,
        read: impl Fn(&Value) -> T,
    ) -> Result<Vec<(NamespacedName, T)>, ExtensionsError> {
        let pages = || self.cluster.pages(self.context.clone(), kind.clone(), namespace.clone(), query.clone());
        let (mut found, mut begun, mut reading) = (Vec::new(), 1, pages());
        while let Some(page) = reading.next().await {
            match page {
                Ok(page) => found.extend(page.items.iter().map(|it| (NamespacedName::of(it), read(it)))),
                Err(error) if error.is_expired() && begun < MOST_LISTS => {
                    begun += 1;
                    found.clear();
                    reading = pages();
                }
                Err(source) => {
                    let (plural, seed) = (kind.plural.to_string(), self.seed.to_owned());
                    return Err(ExtensionsError::List { plural, seed, source });
                }
            }
        }
        Ok(found)
    }
}

impl Found {
    fn text(&self, colours: bool) -> String {
        let deletion = if self.is_deleting { " (in deletion)" } else { "" };
        let mut text = format!("Seed: {}{deletion}\n", self.seed);
        if !self.explained.is_empty() {
            let titles = ["EXTENSION", "STATE", "NEEDS", "BY"].map(plain).to_vec();
            let rows: Vec<_> = std::iter::once(titles).chain(self.explained.iter().flat_map(rows)).collect();
            text.push('\n');
            text.push_str(&lines(&rows, "", colours));
        }
        text
    }

    fn json(&self) -> Value {
        let installation = |it: &ExplainedInstallation| {
            let reasons: Vec<_> =
                it.reasons.iter().map(|reason| json!({ "needs": reason.needs, "by": reason.by })).collect();
            json!({
                "registration": it.registration, "installations": it.installations, "state": it.state.as_str(),
                "reasons": reasons,
            })
        };
        let missing = self.assessment.wanted.missing.iter().map(|pair| {
            let by: Vec<_> = self.assessment.required.reasons(pair).iter().map(ToString::to_string).collect();
            json!({ "needs": pair.to_string(), "by": by.join("; ") })
        });
        json!({
            "seed": self.seed, "deleting": self.is_deleting,
            "extensions": self.explained.iter().map(installation).collect::<Vec<_>>(),
            "withoutRegistration": missing.collect::<Vec<_>>(),
        })
    }

    /// Returns true if all needs are known, each has a registration, and the selector of each registration is usable.
    fn is_clear(&self) -> bool {
        let Assessment { wanted, domain_error, incomplete, .. } = &self.assessment;
        let is_known = wanted.missing.is_empty() && domain_error.is_none() && incomplete.is_none();
        is_known && self.explained.iter().all(|it| it.state != InstallationState::Undecided)
    }

    fn remarks(&self) -> Vec<String> {
        let missing = self.assessment.wanted.missing.iter().map(|pair| {
            let by: Vec<_> = self.assessment.required.reasons(pair).iter().map(ToString::to_string).collect();
            format!(
                "error: no ControllerRegistration serves {pair}, needed by {} — register one, or remove the need",
                by.join("; ")
            )
        });
        let domains =
            self.assessment.domain_error.iter().map(|error| format!("error: {error} — correct these Secrets"));
        let lost =
            self.assessment.lost.iter().map(|(bucket, entry)| {
                format!("warning: the BackupBucket {bucket} of BackupEntry {entry} does not exist")
            });
        let incomplete = self.assessment.incomplete.iter().map(|text| format!("error: {text} — correct this Shoot"));
        let undecided = self.explained.iter().filter(|it| it.state == InstallationState::Undecided);
        let undecided = undecided.filter_map(|it| Some((it, self.assessment.wanted.undecided.get(&it.registration)?)));
        let undecided = undecided.map(|(it, undecided)| {
            format!("error: ControllerRegistration {}: {} — correct its seedSelector", it.registration, undecided.error)
        });
        missing.chain(domains).chain(incomplete).chain(undecided).chain(lost).collect()
    }
}

/// Returns a row for each reason; the first one names the registration.
fn rows(explained: &ExplainedInstallation) -> Vec<Vec<Cell>> {
    let style = match explained.state {
        InstallationState::Installed => GREEN,
        InstallationState::Missing
        | InstallationState::Ending
        | InstallationState::Unregistered
        | InstallationState::Undecided => YELLOW,
        InstallationState::Unneeded
        | InstallationState::OfShoot
        | InstallationState::OfSeed
        | InstallationState::LeftToShoot => PLAIN,
    };
    let head = [plain(&*explained.registration), styled(explained.state.as_str(), style)];
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for reason in &explained.reasons {
        let head = if rows.is_empty() { head.clone() } else { [plain(""), plain("")] };
        rows.push(head.into_iter().chain([plain(&*reason.needs), plain(&*reason.by)]).collect());
    }
    if rows.is_empty() {
        rows.push(head.into_iter().chain([plain("-"), plain("-")]).collect());
    }
    rows
}
