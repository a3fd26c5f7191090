//! Every configured variable is read by its function. A misnamed one would leave the function with its default.

use std::cell::RefCell;
use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use payments_bank::read_configuration;
use payments_boot::Lookup;
use payments_tests::deployed;

use crate::template::{FUNCTION, package, resources, template, variable_of};

#[test]
fn every_variable_is_read_by_its_function() -> Result<()> {
    let (template, deployed) = (template()?, deployed()?);
    for (name, function) in resources(&template, FUNCTION)? {
        let (read, package) = (RefCell::new(BTreeSet::new()), package(function)?);
        let variable = |variable: &str| {
            read.borrow_mut().insert(variable.to_owned());
            variable_of(&deployed, package, variable)
        };
        read_configuration(package, &Lookup::new(&variable)).with_context(|| name.to_owned())?;
        // A function may have only the global variables.
        for own in function["Properties"]["Environment"]["Variables"].as_object().into_iter().flat_map(|own| own.keys())
        {
            assert!(read.borrow().contains(own), "{name} does not read {own}");
        }
    }
    Ok(())
}

/// The console judges pauses and moves by these names.
#[test]
fn the_console_has_each_resource_under_its_own_name() -> Result<()> {
    let template = template()?;
    let variables = &template["Resources"]["ConsoleFunction"]["Properties"]["Environment"]["Variables"];
    for (variable, resource) in [
        ("SWEEPER_FUNCTION", "DailyDueSweeperFunction"),
        ("REPORT_FUNCTION", "ReportFunction"),
        ("ARCHIVE_FUNCTION", "ArchiveFunction"),
        ("RECOUNT_FUNCTION", "RecountFunction"),
        ("REDATE_FUNCTION", "RedateFunction"),
        ("REQUEST_QUEUE_URL", "RequestQueue"),
        ("REQUEST_DEAD_LETTERS_URL", "RequestDeadLetters"),
        ("RESULT_QUEUE_URL", "ResultQueue"),
        ("RESULT_DEAD_LETTERS_URL", "ResultDeadLetters"),
        ("DISPATCH_FAILURES_URL", "DispatchFailures"),
        ("PAUSED", "Paused"),
    ] {
        assert_eq!(variables[variable]["!Ref"], resource, "{variable}");
    }
    Ok(())
}
