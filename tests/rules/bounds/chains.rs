//! The longest chain of calls to the store of each request.

use std::time::Duration;

use payments_boot::HTTP_BUDGET;

/// A file whose requests to the API call the store.
pub(super) struct Chain {
    pub(super) package: &'static str,
    pub(super) path: &'static str,
    /// The number of calls in the file.
    pub(super) calls: u32,
    /// The most of them that one request makes, one after the other.
    pub(super) longest: u32,
    /// Whether they may begin until the end of the budget for a request.
    pub(super) has_budget: bool,
}

/// The details are put or, for a date that has passed, only read. Then the head is read, beside a look for amendments. Then it is put, or
/// the details of an amendment are read, or a head that was not there is looked for again.
pub(super) const CREATE: Chain =
    Chain { package: "ingest", path: "functions/ingest/src/create.rs", calls: 7, longest: 3, has_budget: true };
/// The first details are read, then the head and its amendments, in the budget. At its end the new details are put and the head is changed.
/// If somebody else was first, the head is read again.
pub(super) const AMEND: Chain =
    Chain { package: "ingest", path: "functions/ingest/src/amend.rs", calls: 5, longest: 4, has_budget: true };
/// The details are read, and the head is changed as they say. If it was amended, it is changed as it is, and once more if somebody else was
/// first. Then the details of the amendment are read. If it is archived, it is read.
pub(super) const CANCEL: Chain =
    Chain { package: "ingest", path: "functions/ingest/src/cancel.rs", calls: 2, longest: 5, has_budget: false };

/// All of them. One payment takes two reads, one more if it was amended, and its versions as many as the budget allows. A page of a list takes
/// one, and then one for the data of some of its payments. Sealed rows take as long as one call, at most.
pub(super) const CHAINS: [Chain; 22] = [
    CREATE,
    AMEND,
    CANCEL,
    Chain {
        package: "query-account",
        path: "functions/query-account/src/function.rs",
        calls: 7,
        longest: 4,
        has_budget: true,
    },
    Chain {
        package: "query-account",
        path: "functions/query-account/src/page.rs",
        calls: 3,
        longest: 2,
        has_budget: true,
    },
    // All endpoints are read beside the log's head and the number of created ones. Then a page of the log, beside all endpoints again, or the endpoint's
    // consumer is read, and one of them is written between the calls of the audit trail. A damaged endpoint is read after it was written, all at once.
    // A create that was overtaken within the budget is tried again: the number, all endpoints, the write, and the trail's outcome.
    Chain {
        package: "webhooks",
        path: "functions/webhooks/src/endpoints.rs",
        calls: 19,
        longest: 5,
        has_budget: false,
    },
    // An endpoint, its consumer and the log's head are read at once. Then a page of the log is read, and the consumer is written between the calls of the
    // audit trail. If somebody else was first, it is read again.
    Chain { package: "webhooks", path: "functions/webhooks/src/operate.rs", calls: 5, longest: 5, has_budget: false },
    Chain { package: "webhooks", path: "functions/webhooks/src/audited.rs", calls: 2, longest: 2, has_budget: false },
    // Between the calls of the audit trail. If the function ends there, the trail has no outcome, and a repeat looks.
    Chain {
        package: "console",
        path: "functions/console/src/actions/cancel.rs",
        calls: 6,
        longest: 4,
        has_budget: true,
    },
    // The switch is read and changed, up to two times. A resume or a release, of one version, reads the counters before its only change.
    Chain {
        package: "console",
        path: "functions/console/src/actions/switch.rs",
        calls: 1,
        longest: 4,
        has_budget: false,
    },
    Chain {
        package: "console",
        path: "functions/console/src/actions/switch/freeing.rs",
        calls: 2,
        longest: 4,
        has_budget: false,
    },
    // The release is read beside the counters and the claims, and put, up to two times.
    Chain {
        package: "console",
        path: "functions/console/src/actions/release_day.rs",
        calls: 1,
        longest: 4,
        has_budget: false,
    },
    // The details, the head, the switch and the write, between the calls of the audit trail.
    Chain {
        package: "console",
        path: "functions/console/src/actions/send_again.rs",
        calls: 3,
        longest: 4,
        has_budget: false,
    },
    // The write, and a look after a failed condition.
    Chain {
        package: "console",
        path: "functions/console/src/actions/finding.rs",
        calls: 2,
        longest: 2,
        has_budget: false,
    },
    // The endpoint's state, and then the endpoint beside the log's head; a page of the log; the write, and both again if it failed.
    Chain {
        package: "console",
        path: "functions/console/src/actions/endpoint.rs",
        calls: 11,
        longest: 5,
        has_budget: false,
    },
    Chain { package: "query-due", path: "functions/query-due/src/date.rs", calls: 2, longest: 1, has_budget: true },
    Chain { package: "console", path: "functions/console/src/views/list.rs", calls: 2, longest: 1, has_budget: true },
    // Twice one after the other, and each as long as there is time.
    Chain {
        package: "console",
        path: "functions/console/src/views/waiting.rs",
        calls: 1,
        longest: 2,
        has_budget: true,
    },
    // A search looks for ids, for an account and on a date while there is time, and then shows what it has found.
    Chain { package: "console", path: "functions/console/src/views/find.rs", calls: 5, longest: 2, has_budget: true },
    Chain {
        package: "console",
        path: "functions/console/src/views/find/dates.rs",
        calls: 2,
        longest: 1,
        has_budget: true,
    },
    Chain {
        package: "console",
        path: "functions/console/src/views/account.rs",
        calls: 1,
        longest: 1,
        has_budget: true,
    },
    // A search may be before it. The details and the head are read. Then the findings are read beside the amendments, while there is time, and
    // beside the endpoints with the log's head, and then the segments at their places. Calls within `join!` are not counted.
    Chain {
        package: "console",
        path: "functions/console/src/views/payment.rs",
        calls: 4,
        longest: 4,
        has_budget: true,
    },
];

impl Chain {
    /// The longest that one payment takes, if a call takes this long.
    pub(super) fn of_one(&self, call: Duration) -> Duration {
        call * self.longest
    }

    /// The longest that a request takes.
    pub(super) fn of_request(&self, call: Duration) -> Duration {
        let budget = if self.has_budget { HTTP_BUDGET } else { Duration::ZERO };
        budget + self.of_one(call)
    }
}
