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
