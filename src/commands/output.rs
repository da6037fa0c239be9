//! Writes files, all or nothing.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use kit::credentials::without_credentials;

use super::input::{STDIN, is_read_from_folders};
pub(super) use crate::cli::terminal::{escaped, foreign, one_line, remark, without_middle};

#[derive(Debug, thiserror::Error)]
pub(super) enum OutputError {
    #[error("cannot write {}: {error}", without_credentials(path))]
    Write { path: String, error: io::Error },
    #[error("{} is a file — name a directory", without_credentials(path))]
    NoFolder { path: String },
    #[error(
        "{} is read as input and would be overwritten — name another file for the output",
        without_credentials(path)
    )]
    Input { path: String },
    #[error(
        "{} is in the folder {}, which is read as input: the next run would read what this one wrote — name a file \
         outside of it",
        without_credentials(path),
        without_credentials(folder)
    )]
    InFolder { path: String, folder: String },
}

/// Refuses an output file that is among the inputs, or that the next run would read as input. Call it before reading.
pub(super) fn check(path: &str, inputs: &[String]) -> Result<(), OutputError> {
    let location = location(Path::new(path));
    for input in inputs.iter().filter(|input| *input != STDIN) {
        let Ok(input_location) = std::fs::canonicalize(input) else { continue };
        if input_location == location {
            return Err(OutputError::Input { path: path.to_owned() });
        }
        if input_location.is_dir() && location.starts_with(&input_location) && is_read_from_folders(&location) {
            return Err(OutputError::InFolder { path: path.to_owned(), folder: input.clone() });
        }
    }
    Ok(())
}

/// Writes a file that only its owner may read, all or nothing. Pipes and devices are written to directly.
pub(super) fn write(path: &str, text: &str) -> Result<(), OutputError> {
    let failed = |error| OutputError::Write { path: path.to_owned(), error };
    let location = location(Path::new(path));
    if std::fs::metadata(&location).is_ok_and(|metadata| !metadata.is_file()) {
        let mut stream = OpenOptions::new().write(true).open(&location).map_err(failed)?;
        return stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).map_err(failed);
    }
    whole(&location, text).map_err(failed)
}

fn whole(location: &Path, text: &str) -> io::Result<()> {
    let folder = location.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(location).map_err(|error| error.error)?;
    // Syncing the folder makes the name durable; not all file systems support it.
    File::open(folder).and_then(|folder| folder.sync_all()).ok();
    Ok(())
}

/// Resolves links. The file itself need not exist yet.
fn location(path: &Path) -> PathBuf {
    if let Ok(location) = std::fs::canonicalize(path) {
        return location;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (std::fs::canonicalize(folder), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}
