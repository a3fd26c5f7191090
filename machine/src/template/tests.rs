//! Parts of the template that one machine reads, and errors in it that stop the start.

use super::*;

/// Reads the template with another text in a place. Returns the error, without the line, which has to be that of the place.
fn error_of(good: &str, bad: &str) -> String {
    assert_eq!(OURS.matches(good).count(), 1, "{good}");
    let line = OURS.split(good).next().unwrap().matches('\n').count() + 1;
    let error = Template::read(&OURS.replace(good, bad)).map(drop).unwrap_err().to_string();
    let told = error.strip_prefix(&format!("line {line}: "));
    told.unwrap_or_else(|| panic!("{bad:?} is in line {line}, but: {error}")).to_owned()
}

#[test]
fn what_one_machine_cannot_read_is_an_error_with_its_line() {
    for (good, bad, error) in [
        (
            "JOURNAL_URL: !Sub s3://${ReportsBucket}",
            "JOURNAL_URL: !ImportValue journal",
            "one machine does not know this use of !ImportValue",
        ),
        (
            "JOURNAL_URL: !Sub s3://${ReportsBucket}",
            "JOURNAL_URL: !Sub s3://${Bucket}",
            "Bucket is neither a parameter with a default nor a resource",
        ),
        (
            "JOURNAL_URL: !Sub s3://${ReportsBucket}",
            "JOURNAL_URL: !If [HasJournal, a, b]",
            "there is no condition HasJournal",
        ),
        ("Timeout: 290", "Timeout: soon", "invalid type: string \"soon\", expected u32"),
        ("MaximumRetryAttempts: 5\n", "MaximumRetryAttempts: \"5\"\n", "invalid type: string \"5\", expected i64"),
        ("VisibilityTimeout: 180", "VisibilityTimeout: [180]", "invalid type: sequence, expected i64"),
        ("Stream: !GetAtt LogTable.StreamArn", "Streams: !GetAtt LogTable.StreamArn", "unknown field `Streams`"),
        (
            "OmitName: true\n            ScheduleExpression: rate(1 minute)",
            "Schedule: rate(1 minute)",
            "unknown field `Schedule`",
        ),
        ("Type: SQS\n          Properties:", "Type: Kinesis\n          Properties:", "unknown variant `Kinesis`"),
        ("Enabled: !If [IsSettling", "Enable: !If [IsSettling", "unknown field `Enable`"),
        ("MaximumConcurrency: !Ref", "MinimumConcurrency: !Ref", "unknown field `MinimumConcurrency`"),
        ("BisectBatchOnFunctionError: true", "BisectBatchOnFunctionErrors: true", "unknown field `BisectBatch"),
        ("Path: /counts", "Paths: /counts", "unknown field `Paths`"),
        ("Timeout: 290", "Timeouts: 290", "unknown field `Timeouts`"),
        ("Handler: bootstrap", "Handle: bootstrap", "unknown field `Handle`"),
        ("MaximumEventAgeInSeconds: 60", "MaximumAgeInSeconds: 60", "unknown field `MaximumAgeInSeconds`"),
        ("VisibilityTimeout: 180", "VisibleAfter: 180", "unknown field `VisibleAfter`"),
        ("maxReceiveCount: 30", "maxReceives: 30", "unknown field `maxReceives`"),
        (
            "MaximumRetryAttempts: 0\n        MaximumEventAgeInSeconds: 60",
            "MaximumRetryAttempts: 2\n        MaximumEventAgeInSeconds: 60",
            "one machine repeats no run that failed",
        ),
    ] {
        let told = error_of(good, bad);
        assert!(told.starts_with(error), "{bad}: {told}");
    }
}

#[test]
fn a_function_has_its_own_values_before_those_of_all_functions() {
    let template = Template::ours().unwrap();
    let (settle, sweeper) = (template.function("settle").unwrap(), template.function("daily-due-sweeper").unwrap());
    assert_eq!((settle.timeout.num_seconds(), settle.memory, settle.concurrency), (28, 512, None));
    assert_eq!((sweeper.timeout.num_seconds(), sweeper.memory), (290, 1024));
    assert!(template.function("payments").is_err());
}

#[test]
fn variables_have_what_is_given_in_place_of_the_templates() {
    let template = Template::ours().unwrap();
    let given = |id: &str| match id {
        "PaymentsTable" => Some("hot".to_owned()),
        "HasConsole" => Some("true".to_owned()),
        "HasOwnIssuer" => Some("false".to_owned()),
        "ConsoleClientId" => Some("console".to_owned()),
        "MachineClients" => Some("feed".to_owned()),
        _ => None,
    };
    for (name, value) in [
        ("PAYMENTS_TABLE", Some("hot")),
        ("HISTORY_TABLE", Some("HistoryTable")),
        ("READ_SHARDS", Some("32")),
        ("CONSOLE", Some("true")),
        ("MACHINE_CLIENTS", Some("feed,console,")),
        ("REPORTS_URL", Some("s3://ReportsBucket")),
        ("WRITE_SHARDS", None),
    ] {
        assert_eq!(template.variable("console", name, &given).unwrap().as_deref(), value, "{name}");
    }
}

#[test]
fn a_pause_stops_the_triggers_that_it_names() {
    let triggers = |paused| {
        let template = Template::ours_while(paused).unwrap();
        let schedules: Vec<_> = template.schedules().map(|spec| spec.name.as_str()).collect();
        let enabled = template.functions.iter().filter(|function| {
            function.streams.iter().any(|it| it.enabled) || function.queues.iter().any(|it| it.enabled)
        });
        (schedules, enabled.map(|function| function.package.as_str()).collect::<Vec<_>>())
    };
    let (schedules, mappings) = triggers("none");
    let stopped = |schedule: &&str| {
        ["sweep", "redrive", "report", "seal", "recount"].contains(schedule) || schedule.starts_with("archive")
    };
    let left: Vec<_> = schedules.iter().copied().filter(|schedule| !stopped(schedule)).collect();
    assert!(left.len() + 5 < schedules.len(), "{schedules:?}");
    for (paused, without) in [("sending", &["dispatch"][..]), ("settling", &["dispatch", "settle"])] {
        let want: Vec<_> = mappings.iter().copied().filter(|package| !without.contains(package)).collect();
        assert_eq!(triggers(paused), (left.clone(), want), "{paused}");
    }
    assert!(Template::ours_while("everything").is_err());
}
