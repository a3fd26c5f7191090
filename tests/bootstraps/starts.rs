//! A bootstrap without a required variable does not start, and names the variable as its configuration does in
//! process.

use std::sync::Arc;

use anyhow::{Result, ensure};
use chrono::{DateTime, TimeDelta};
use libtest_mimic::Trial;
use payments_bank::read_configuration;
use payments_boot::Lookup;
use payments_machine::Environment;

use crate::deployed::{Deployed, Places};
use crate::sandbox::{Sandbox, Times};
use crate::tools::Tools;
use crate::trial::trial;

/// An address where nothing listens: no function gets as far as a call.
const NOWHERE: &str = "http://127.0.0.1:1";

/// The time of the starts.
const NOW: &str = "2090-06-15T09:00:00Z";

/// One trial for each function and variable that it requires.
pub(crate) fn trials(tools: &Arc<Tools>) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    for function in Deployed::all()? {
        let before = trials.len();
        for missing in function.names() {
            let get = |name: &str| (name != missing).then(|| value(&function, name)).flatten();
            let Err(error) = read_configuration(&function.package, &Lookup::new(&get)) else { continue };
            let tools = Arc::clone(tools);
            let missing = missing.to_owned();
            let name = format!("{}-without-{missing}", function.package);
            let wanted = error.to_string();
            trials.push(trial(name, move || async move { says(&tools, &function, &missing, &wanted).await }));
        }
        ensure!(trials.len() > before, "{} starts without any variable", function.package);
    }
    Ok(trials)
}

/// The value of a function's variable.
fn value(function: &Deployed, name: &str) -> Option<String> {
    let places = Places { reports: "/reports" };
    function.variables(&Environment::at(NOWHERE.to_owned()), places).ok()?.remove(name)
}

/// A function without a variable answers no event, and its log says why.
async fn says(tools: &Tools, function: &Deployed, missing: &str, wanted: &str) -> Result<()> {
    let places = Places { reports: "/reports" };
    let mut variables = function.variables(&Environment::at(NOWHERE.to_owned()), places)?;
    ensure!(variables.remove(missing).is_some(), "{missing} is not even there");
    ensure!(wanted.contains(missing), "in process nobody would know what is missing: {wanted}");
    let now = DateTime::parse_from_rfc3339(NOW)?.to_utc();
    let times = Times { now, deadline: now + TimeDelta::minutes(5) };
    let bootstrap = tools.bootstrap(&function.id, &function.package)?;
    let sandbox = Sandbox::start(tools, &bootstrap, times, &variables).await?;
    let answer = sandbox.invoke("{}").await?;
    let said = sandbox.said()?;
    ensure!(answer.status == 502, "it is asked, and answers {}: {}", answer.status, answer.body);
    ensure!(said.contains(wanted), "in process: {wanted}\nthe bootstrap: {said}");
    Ok(())
}
