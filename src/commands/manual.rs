//! `man`: writes the manual pages.

use std::{fs, path::Path};

use super::{Said, output::OutputError};
use crate::cli::manual::ManualPage;

/// Makes the folder if it does not exist. Pages that exist are overwritten.
pub(super) fn write(folder: &str, pages: &[ManualPage]) -> Result<Said, OutputError> {
    let at = Path::new(folder);
    if at.exists() && !at.is_dir() {
        return Err(OutputError::NoFolder { path: folder.to_owned() });
    }
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error| OutputError::Write { path, error }
    };
    fs::create_dir_all(at).map_err(failed(at))?;
    for page in pages {
        let path = at.join(&page.file);
        fs::write(&path, &page.content).map_err(failed(&path))?;
    }
    Ok(Said { remarks: vec![format!("manual pages in {folder}: {}", pages.len())], ..Said::default() })
}
