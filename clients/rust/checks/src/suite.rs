//! The list of checks, and what runs them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::panic::AssertUnwindSafe;

use anyhow::{Context as _, Result, ensure};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::world::{World, variable};

/// A check: the name of its function, and what runs it.
pub(crate) type Check = (&'static str, fn(World) -> BoxFuture<'static, Result<()>>);

/// The checks of a module, each under the name of its function.
macro_rules! checks {
    ($($name:ident),* $(,)?) => {
        pub(crate) const CHECKS: &[$crate::suite::Check] =
            &[$((stringify!($name), |world| Box::pin($name(world)))),*];
    };
}
pub(crate) use checks;

/// Fails if the two differ.
pub(crate) fn equal<T: Debug + PartialEq<U>, U: Debug>(found: T, wanted: U) -> Result<()> {
    ensure!(found == wanted, "{found:?} is not {wanted:?}");
    Ok(())
}

/// Runs each check of the list, and writes `ok NAME: SENTENCE` for each that passes. Returns how many failed.
pub(crate) async fn run(checks: &[Check], world: &World) -> Result<usize> {
    let list = fs::read_to_string(variable("CHECKS")?)?;
    let mut known: BTreeMap<String, _> = checks.iter().map(|(name, check)| (name.replace('_', "-"), check)).collect();
    let mut failed = Vec::new();
    for line in list.lines() {
        let (name, _) = line.split_once(": ").with_context(|| line.to_owned())?;
        let ran = match known.remove(name) {
            // A panic fails one check alone.
            Some(check) => AssertUnwindSafe(check(world.clone())).catch_unwind().await,
            None => Ok(Err(anyhow::anyhow!("there is no such check"))),
        };
        match ran {
            Ok(Ok(())) => println!("ok {line}"),
            Ok(Err(error)) => failed.push(format!("not ok {line}: {error:?}")),
            Err(_) => failed.push(format!("not ok {line}: it panicked")),
        }
    }
    failed.extend(known.keys().map(|name| format!("not in the list: {name}")));
    failed.iter().for_each(|failure| println!("{failure}"));
    Ok(failed.len())
}
