//! The names under which a deployed console finds functions, queues and reports.

use payments_boot::{ConfigError, Lookup};
use payments_files::Storage;

use crate::operations::{BankQueue, Startable};

/// The names of functions and queues, and the storage of the reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resources {
    /// The names of the functions, in the order of [`FUNCTIONS`].
    functions: [String; FUNCTIONS.len()],
    /// The URLs of the queues, in the order of [`QUEUES`].
    queues: [String; QUEUES.len()],
    /// `REPORTS_URL`: the storage of the reports.
    pub reports: Storage,
}

/// The variables with the names of functions.
const FUNCTIONS: [(Startable, &str); 6] = [
    (Startable::Sweeper, "SWEEPER_FUNCTION"),
    (Startable::Report, "REPORT_FUNCTION"),
    (Startable::Archive, "ARCHIVE_FUNCTION"),
    (Startable::Recount, "RECOUNT_FUNCTION"),
    (Startable::Redate, "REDATE_FUNCTION"),
    (Startable::Undo, "UNDO_FUNCTION"),
];

/// The variables with the URLs of queues.
const QUEUES: [(BankQueue, &str); 5] = [
    (BankQueue::Requests, "REQUEST_QUEUE_URL"),
    (BankQueue::RequestDeadLetters, "REQUEST_DEAD_LETTERS_URL"),
    (BankQueue::Results, "RESULT_QUEUE_URL"),
    (BankQueue::ResultDeadLetters, "RESULT_DEAD_LETTERS_URL"),
    (BankQueue::DispatchFailures, "DISPATCH_FAILURES_URL"),
];

impl Resources {
    /// Reads the names.
    pub(crate) fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        let mut functions = FUNCTIONS.map(|_| String::new());
        for (place, (_, variable)) in functions.iter_mut().zip(FUNCTIONS) {
            *place = lookup.required(variable, "the name of a function of this stack")?;
        }
        let mut queues = QUEUES.map(|_| String::new());
        for (place, (_, variable)) in queues.iter_mut().zip(QUEUES) {
            *place = lookup.required(variable, "the URL of a queue of this stack")?;
        }
        let reports = lookup.required("REPORTS_URL", "where reports are stored, such as s3://bucket/prefix")?;
        Ok(Self { functions, queues, reports })
    }

    /// The name of a function.
    #[cfg(feature = "aws")]
    pub(crate) fn function(&self, wanted: Startable) -> &str {
        named(&FUNCTIONS, &self.functions, wanted)
    }

    /// The URL of a queue.
    #[cfg(feature = "aws")]
    pub(crate) fn queue(&self, wanted: BankQueue) -> &str {
        named(&QUEUES, &self.queues, wanted)
    }
}

/// The name in the place that a resource has among the variables.
#[cfg(feature = "aws")]
fn named<'n, T: PartialEq>(variables: &[(T, &str)], names: &'n [String], wanted: T) -> &'n str {
    let place = variables.iter().position(|(known, _)| *known == wanted);
    place.and_then(|place| names.get(place)).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_resource_has_a_variable_and_its_own_name() {
        let get = |name: &str| {
            Some(if name == "REPORTS_URL" { "s3://reports".to_owned() } else { name.to_ascii_lowercase() })
        };
        let resources = Resources::read(&Lookup::new(&get)).unwrap();
        assert_eq!(FUNCTIONS.map(|(function, _)| function), {
            use Startable::{Archive, Recount, Redate, Report, Sweeper, Undo};
            [Sweeper, Report, Archive, Recount, Redate, Undo]
        });
        assert_eq!(QUEUES.map(|(queue, _)| queue), BankQueue::ALL);
        #[cfg(feature = "aws")]
        {
            assert_eq!(resources.function(Startable::Recount), "recount_function");
            assert_eq!(resources.queue(BankQueue::DispatchFailures), "dispatch_failures_url");
        }
        assert_eq!(resources.reports.to_string(), "s3://reports/");
    }
}
