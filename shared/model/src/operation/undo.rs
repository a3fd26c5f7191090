//! The requests of an undo: a plan of payments, its run, and the schedule's continuation.

use std::fmt::Display;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

use super::action::ActionName;
use super::second::{Consent, Ticket, parsed};
use crate::account::AccountId;
use crate::actor::{Actor, ActorKind};
use crate::calendar::instant::{BusinessDate, UtcSecond};
use crate::payment::payment_id::PaymentId;

/// The hexadecimal digits of an id.
const ID_DIGITS: usize = 16;

/// The most payments that one plan selects by their ids. A request has 39 bytes for each: 156 KB of the 256 KB of an invocation.
pub const MAX_IDS: usize = 4_000;

/// The most payments that one plan selects by the ids of a file.
pub const MAX_FILE_IDS: usize = 100_000;

/// The longest name of a file of ids, in bytes.
const MAX_NAME: usize = 60;

/// The most due dates of a selection by account.
pub const MAX_DATES: u32 = 92;

/// The name of a run as an action of the console.
pub const ACTION: &str = "undo";

/// The id of an undo: 16 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UndoId(String);

/// The text is not the id of an undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of an undo has {ID_DIGITS} lower-case hexadecimal digits")]
pub struct UndoIdError;

as_text!(UndoId);

impl UndoId {
    /// The actor of the undo's holds and cancels: `b:undo/<id>`.
    #[must_use]
    pub fn actor(&self) -> Actor {
        Actor::new(ActorKind::Bank, &format!("undo/{self}"))
    }
}

impl FromStr for UndoId {
    type Err = UndoIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_id = text.len() == ID_DIGITS && text.bytes().all(is_digit);
        if is_id { Ok(Self(text.to_owned())) } else { Err(UndoIdError) }
    }
}

/// The payments that a plan selects.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Selector {
    /// Payments by their ids: `{"ids":["626e8292-…"]}`.
    #[serde(deserialize_with = "texts")]
    Ids(Vec<PaymentId>),
    /// An account's payments of due dates: `{"account":{"id":"tenant","from":"2026-12-01","to":"2026-12-03"}}`.
    Account {
        /// The account that pays.
        #[serde(deserialize_with = "text")]
        id: AccountId,
        /// The first due date.
        #[serde(deserialize_with = "text")]
        from: BusinessDate,
        /// The last due date.
        #[serde(deserialize_with = "text")]
        to: BusinessDate,
    },
    /// The payments that a client created from one time to another: `{"client":{"name":"feed","from":"2026-12-01T08:00:00Z",
    /// "to":"2026-12-01T09:30:00Z"}}`.
    Client(ClientTime),
    /// Payments by the ids of a file, one a line, which an operator has put as `undo/ids/feed-1.txt`: `{"file":"feed-1"}`.
    File(String),
    /// All payments of a due date: `{"dueDate":"2026-12-01"}`.
    #[serde(deserialize_with = "text")]
    DueDate(BusinessDate),
}

impl Selector {
    /// The fields of the console's form that selects the same.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let of_time = |(name, value): (&'static str, &str), from: &dyn Display, to: &dyn Display| {
            vec![(name, value.to_owned()), ("from", from.to_string()), ("to", to.to_string())]
        };
        match self {
            Self::Ids(ids) => vec![("ids", ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))],
            Self::Account { id, from, to } => of_time(("account", id.as_str()), from, to),
            Self::Client(ClientTime { name, from, to }) => of_time(("client", name), from, to),
            Self::File(name) => vec![("file", name.clone())],
            Self::DueDate(date) => vec![("due", date.to_string())],
        }
    }
}

/// A client, and the time in which it created payments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientTime {
    /// The client's name, as the `by` of its payments' events has it.
    pub name: String,
    /// The first second.
    #[serde(deserialize_with = "text")]
    pub from: UtcSecond,
    /// The last second.
    #[serde(deserialize_with = "text")]
    pub to: UtcSecond,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// Hold the due dates, and write a plan.
    Plan {
        /// The undo, which a first plan begins.
        #[serde(deserialize_with = "text")]
        id: UndoId,
        /// The payments.
        select: Selector,
    },
    /// Cancel the payments of a plan that was approved.
    Run(Approved),
    /// Go on with the runs that are not at their end.
    Continue,
}

/// An approved plan.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Approved {
    /// The undo.
    #[serde(deserialize_with = "text")]
    pub id: UndoId,
    /// The number of the plan.
    pub plan: u32,
    /// The SHA-256 of the plan's file, in lower-case hexadecimal digits.
    pub sha256: String,
    /// The action of the console that two persons agreed on.
    #[serde(default, deserialize_with = "parsed")]
    pub approval: Option<ActionName>,
    /// The ticket of a run that nobody approved in the console.
    #[serde(default, deserialize_with = "parsed")]
    pub ticket: Option<Ticket>,
    /// Whether a run that has ended begins again, as after a restore.
    #[serde(default)]
    pub again: bool,
    /// Whether a plan may run although the log may lack some of the selected payments.
    #[serde(default)]
    pub accept_inexact: bool,
}

/// The plan of a run on which two persons agree: the file with this SHA-256, and whether it may lack some payments.
#[must_use]
pub fn fields(id: &UndoId, (plan, sha256): (u32, &str), accept_inexact: bool) -> Vec<(&'static str, String)> {
    vec![
        ("undo", id.to_string()),
        ("plan", plan.to_string()),
        ("sha256", sha256.to_owned()),
        ("acceptInexact", accept_inexact.to_string()),
    ]
}

impl Approved {
    /// The consent to the run.
    #[must_use]
    pub fn consent(&self) -> Consent {
        let fields = fields(&self.id, (self.plan, &self.sha256), self.accept_inexact);
        Consent::from_fields(self.ticket.as_ref(), self.approval, (ACTION, &fields))
    }
}

/// The reason why a request is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No payment is selected, or too many are.
    #[error("\"ids\" has {0} ids; give 1 to {MAX_IDS}, or the others in a file")]
    Ids(usize),
    /// The name of the file cannot be one.
    #[error("\"file\" needs a name of 1 to {MAX_NAME} letters, digits, - and _: that of undo/ids/<name>.txt")]
    File,
    /// The first date is after the last, or too many are between them.
    #[error("\"from\" ({0}) to \"to\" ({1}) are not 1 to {MAX_DATES} dates; give the earlier date as \"from\"")]
    Dates(BusinessDate, BusinessDate),
    /// The client's name cannot be one, or its time ends before it begins.
    #[error("\"client\" needs the name that an event's \"by\" has, and a \"from\" that is not after \"to\"")]
    Client,
    /// A run has neither an approval nor a ticket.
    #[error("a run needs two persons: ask for it in the console, or send \"ticket\", which sets off FourEyesBypassed")]
    Alone,
}

impl Request {
    /// Checks the limits of a request.
    ///
    /// # Errors
    /// The request selects too much or nothing, or its approval is malformed.
    pub fn checked(self) -> Result<Self, RequestError> {
        match &self {
            Self::Plan { select: Selector::Ids(ids), .. } if !(1..=MAX_IDS).contains(&ids.len()) => {
                Err(RequestError::Ids(ids.len()))
            }
            Self::Plan { select: Selector::Account { from, to, .. }, .. }
                if !(0..i64::from(MAX_DATES)).contains(&to.days_since(*from)) =>
            {
                Err(RequestError::Dates(*from, *to))
            }
            Self::Plan { select: Selector::Client(ClientTime { name, from, to }), .. }
                if from > to || format!("c:{name}").parse::<Actor>().is_err() =>
            {
                Err(RequestError::Client)
            }
            Self::Plan { select: Selector::File(name), .. } if !is_name(name) => Err(RequestError::File),
            Self::Run(approved) if approved.consent() == Consent::Alone => Err(RequestError::Alone),
            _ => Ok(self),
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    (1..=MAX_NAME).contains(&name.len()) && is_plain
}

fn text<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

fn texts<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ID: &str = "0123456789abcdef";

    fn read(request: Value) -> Result<Request, String> {
        let request = serde_json::from_value::<Request>(request).map_err(|error| error.to_string())?;
        request.checked().map_err(|error| error.to_string())
    }

    fn client(name: &str, from: &str, to: &str) -> Value {
        json!({ "client": { "name": name, "from": from, "to": to } })
    }

    fn plan(select: Value) -> Result<Request, String> {
        read(json!({ "action": "plan", "id": ID, "select": select }))
    }

    #[test]
    fn payments_are_selected_by_ids_by_account_by_due_date_and_by_client() {
        let id = "626e8292-8e84-575a-b684-0af73927405b";
        let (from, to) = ("2026-12-01".parse().unwrap(), "2026-12-03".parse().unwrap());
        let time = |text: &str| text.parse().unwrap();
        let (begin, end) = (time("2026-12-01T08:00:00Z"), time("2026-12-01T09:30:00Z"));
        let feed = ClientTime { name: "feed".to_owned(), from: begin, to: end };
        for (select, want, fields) in [
            (json!({ "ids": [id] }), Selector::Ids(vec![id.parse().unwrap()]), format!("ids={id}")),
            (json!({ "dueDate": "2026-12-01" }), Selector::DueDate(from), "due=2026-12-01".to_owned()),
            (json!({ "file": "feed-1" }), Selector::File("feed-1".to_owned()), "file=feed-1".to_owned()),
            (
                client("feed", "2026-12-01T08:00:00Z", "2026-12-01T09:30:00Z"),
                Selector::Client(feed),
                "client=feed&from=2026-12-01T08:00:00Z&to=2026-12-01T09:30:00Z".to_owned(),
            ),
            (
                json!({ "account": { "id": "tenant", "from": "2026-12-01", "to": "2026-12-03" } }),
                Selector::Account { id: "tenant".parse().unwrap(), from, to },
                "account=tenant&from=2026-12-01&to=2026-12-03".to_owned(),
            ),
        ] {
            let form: Vec<_> = want.fields().iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(form.join("&"), fields);
            assert_eq!(plan(select), Ok(Request::Plan { id: ID.parse().unwrap(), select: want }));
        }
        assert_eq!(read(json!({ "action": "continue" })), Ok(Request::Continue));
    }

    #[test]
    fn the_actor_of_an_undo_has_its_id() {
        assert_eq!(ID.parse::<UndoId>().unwrap().actor().as_str(), "b:undo/0123456789abcdef");
    }

    #[test]
    fn a_request_beyond_a_limit_is_rejected() {
        let ids = |count| json!({ "ids": vec!["626e8292-8e84-575a-b684-0af73927405b"; count] });
        let dates = |from: &str, to: &str| json!({ "account": { "id": "tenant", "from": from, "to": to } });
        for (select, is_valid) in [
            (ids(0), false),
            (ids(MAX_IDS), true),
            (ids(MAX_IDS + 1), false),
            (dates("2026-12-01", "2026-12-01"), true),
            (dates("2026-12-02", "2026-12-01"), false),
            (dates("2026-12-01", "2027-03-02"), true),
            (dates("2026-12-01", "2027-03-03"), false),
            (client("feed", "2026-12-01T08:00:00Z", "2026-12-01T08:00:00Z"), true),
            (client("feed", "2026-12-01T08:00:01Z", "2026-12-01T08:00:00Z"), false),
            (client("", "2026-12-01T08:00:00Z", "2026-12-01T08:00:00Z"), false),
            (json!({ "file": "a".repeat(60) }), true),
            (json!({ "file": "a".repeat(61) }), false),
            (json!({ "file": "" }), false),
            (json!({ "file": "../plan-1" }), false),
        ] {
            assert_eq!(plan(select).is_ok(), is_valid);
        }
        let run =
            |field: &str, text: &str| read(json!({ "action": "run", "id": ID, "plan": 1, "sha256": "", field: text }));
        let name = "2026-12-01T09:00:00Z_00000000-0000-5000-8000-000000000001";
        assert!(run("ticket", "INC-1").is_ok() && run("approval", name).is_ok() && run("approval", "a-1").is_err());
        let alone = read(json!({ "action": "run", "id": ID, "plan": 1, "sha256": "" }));
        assert!(alone.is_err_and(|error| error.starts_with("a run needs two persons")));
        for id in ["", "0123456789ABCDEF", "0123456789abcde", "0123456789abcdef0"] {
            assert_eq!(id.parse::<UndoId>(), Err(UndoIdError), "{id}");
        }
    }
}
