//! The tools that these tests need besides a Rust toolchain: the bootstraps, the emulator, libfaketime.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use payments_boot::Lookup;

/// The remedy if these tests are skipped.
pub(crate) const WANTED: &str = "Set BOOTSTRAPS to the folder of sam build or cargo lambda, LAMBDA_EMULATOR to \
     aws-lambda-rie, and FAKETIME_LIBRARY to libfaketime.so.1; .ci/run-bootstraps.sh does.";

/// The paths of the tools.
#[derive(Debug)]
pub(crate) struct Tools {
    bootstraps: PathBuf,
    /// AWS's Lambda Runtime Interface Emulator.
    pub(crate) emulator: PathBuf,
    /// libfaketime, which shows a program another time.
    pub(crate) clock: PathBuf,
}

impl Tools {
    /// Reads the paths from the environment; `None` if it names no path.
    pub(crate) fn find() -> Result<Option<Self>> {
        let lookup = Lookup::environment();
        let named = ["BOOTSTRAPS", "LAMBDA_EMULATOR", "FAKETIME_LIBRARY"].map(|name| lookup.text(name));
        let [bootstraps, emulator, clock] = match named {
            [None, None, None] => return Ok(None),
            [Some(bootstraps), Some(emulator), Some(clock)] => [bootstraps, emulator, clock],
            _ => bail!("some of what these tests need is missing. {WANTED}"),
        };
        Ok(Some(Self { bootstraps: existing(&bootstraps)?, emulator: existing(&emulator)?, clock: existing(&clock)? }))
    }

    /// The path of a function's program: `sam build` names its folder by logical id, `cargo lambda` by package.
    pub(crate) fn bootstrap(&self, id: &str, package: &str) -> Result<PathBuf> {
        let places = [id, package].map(|folder| self.bootstraps.join(folder).join("bootstrap"));
        let found = places.iter().find(|place| place.is_file());
        match found {
            Some(place) => Ok(place.clone()),
            None => bail!("{package} has no bootstrap in {}", self.bootstraps.display()),
        }
    }
}

fn existing(path: &str) -> Result<PathBuf> {
    ensure!(Path::new(path).exists(), "{path} does not exist. {WANTED}");
    Ok(std::path::absolute(path)?)
}
