//! `--except`: the events that are left out, because the fault itself made them.

use std::str::FromStr;

use payments_model::{Actor, PublicActor, Status, UtcSecond};

use super::known::Version;

/// The conditions for leaving out an event. All given conditions must be true.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Except {
    actor: Option<PublicActor>,
    from: Option<UtcSecond>,
    to: Option<UtcSecond>,
    kind: Option<Kind>,
}

/// The kind of an event that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Created,
    Amended,
    Cancelled,
}

impl Kind {
    fn from_version(version: &Version) -> Option<Self> {
        match (version.status, &version.amendment) {
            (Status::Scheduled, None) => Some(Self::Created),
            (Status::Scheduled, Some(_)) => Some(Self::Amended),
            (Status::Cancelled, _) => Some(Self::Cancelled),
            _ => None,
        }
    }
}

/// The text is not an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExceptError {
    /// It has another form.
    #[error(
        "expected actor=client:NAME, actor=operator or actor=bank, from=INSTANT, to=INSTANT or type=payment.scheduled, payment.amended or payment.cancelled, or some of them with \
         commas between them; what was claimed or settled is never left out"
    )]
    Form,
    /// No instant is between its own.
    #[error("from is after to, so nothing would be left out")]
    Order,
}

impl FromStr for Except {
    type Err = ExceptError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut except = Self::default();
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or(ExceptError::Form)?;
            let instant = || value.parse().map_err(|_| ExceptError::Form);
            match name {
                "actor" => except.actor = Some(value.parse().map_err(|_| ExceptError::Form)?),
                "from" => except.from = Some(instant()?),
                "to" => except.to = Some(instant()?),
                "type" => except.kind = Some(kind_of(value)?),
                _ => return Err(ExceptError::Form),
            }
        }
        let is_ordered = except.from.is_none_or(|from| except.to.is_none_or(|to| from <= to));
        if is_ordered { Ok(except) } else { Err(ExceptError::Order) }
    }
}

fn kind_of(text: &str) -> Result<Kind, ExceptError> {
    match text {
        "payment.scheduled" => Ok(Kind::Created),
        "payment.amended" => Ok(Kind::Amended),
        "payment.cancelled" => Ok(Kind::Cancelled),
        _ => Err(ExceptError::Form),
    }
}

impl Except {
    /// Whether the event of this version is left out. Claims and settlements are never left out.
    pub(crate) fn is(&self, version: &Version) -> bool {
        let kind = Kind::from_version(version);
        kind.is_some()
            && self.actor.as_ref().is_none_or(|actor| is_by(version, actor))
            && self.from.is_none_or(|from| version.at >= from)
            && self.to.is_none_or(|to| version.at <= to)
            && (self.kind.is_none() || self.kind == kind)
    }
}

/// Whether an actor made a version. The actor may have the client's full name, although events have a shorter one.
fn is_by(version: &Version, actor: &PublicActor) -> bool {
    let stored = PublicActor::from(&version.by);
    let shortened = match actor {
        PublicActor::Client { name } => stored == PublicActor::from(&Actor::client(name)),
        _ => false,
    };
    stored == *actor || shortened
}

/// The versions of a payment, divided before the first one that is left out.
pub(crate) enum Rest<'v> {
    /// Nothing is left out.
    All(&'v [Version]),
    /// The versions that are restored, and those that are left out.
    Some(&'v [Version], &'v [Version]),
    /// A version would be left out, but the payment was sent or settled after it. So all versions stay.
    Kept(&'v [Version]),
}

/// Divides the versions of a payment.
pub(crate) fn without<'v>(versions: &'v [Version], excepts: &[Except]) -> Rest<'v> {
    let first = versions.iter().position(|version| excepts.iter().any(|except| except.is(version)));
    let Some((rest, out)) = first.map(|first| versions.split_at(first)) else { return Rest::All(versions) };
    let was_sent = out.iter().any(|version| version.status == Status::Pending || version.status.is_settled());
    if was_sent { Rest::Kept(versions) } else { Rest::Some(rest, out) }
}

#[cfg(test)]
mod tests {
    use payments_model::{Actor, AmendmentId, AmendmentName, Money, PaymentId};

    use super::*;
    use crate::rebuild::known::LoggedAmendment;

    #[test]
    fn an_exception_is_parsed_and_what_is_none_is_not() {
        let except: Except =
            "actor=client:acme,from=2026-11-20T09:00:00Z,to=2026-11-20T10:00:00Z,type=payment.cancelled"
                .parse()
                .unwrap();
        let version = |number, status, at: &str, by: &str| Version {
            number,
            status,
            at: at.parse().unwrap(),
            due: None,
            by: by.parse::<Actor>().unwrap(),
            settlement: None,
            amendment: None,
        };
        for (status, at, client, is_left_out) in [
            (Status::Cancelled, "2026-11-20T09:00:00Z", "c:acme", true),
            (Status::Cancelled, "2026-11-20T10:00:00Z", "c:acme", true),
            (Status::Cancelled, "2026-11-20T08:59:59Z", "c:acme", false),
            (Status::Cancelled, "2026-11-20T10:00:01Z", "c:acme", false),
            (Status::Cancelled, "2026-11-20T09:30:00Z", "c:other", false),
            (Status::Cancelled, "2026-11-20T09:30:00Z", "o:acme", false),
            (Status::Scheduled, "2026-11-20T09:30:00Z", "c:acme", false),
        ] {
            assert_eq!(except.is(&version(2, status, at, client)), is_left_out, "{status} {at} {client}");
        }
        // A client is known by the name that its issuer gives it, and by the shorter one that its events have.
        let name = "the-payments-hub-of-a-bank-with-a-long-name";
        let stored = Actor::client(name);
        let theirs = version(2, Status::Cancelled, "2026-11-20T09:30:00Z", &stored.to_string());
        assert_ne!(stored.name(), name);
        for (name, is_left_out) in [(name, true), (stored.name(), true), ("the-payments-hub-of-a-bank", false)] {
            let except: Except = format!("actor=client:{name}").parse().unwrap();
            assert_eq!(except.is(&theirs), is_left_out, "{name}");
        }
        // An amendment is a kind of its own.
        let payment = PaymentId::derive(&"payer".parse().unwrap(), &"key".parse().unwrap());
        let id = AmendmentId::derive(payment, &"change".parse().unwrap());
        let created = version(1, Status::Scheduled, "2026-11-20T09:30:00Z", "c:acme");
        let amendment = Some(LoggedAmendment {
            name: AmendmentName { version: 2, id },
            changed: Vec::new(),
            payee: "shop".parse().unwrap(),
            money: Money { amount: 1.try_into().unwrap(), currency: "GBP".parse().unwrap() },
            reference: None,
            scheduled_for: "2026-12-01".parse().unwrap(),
        });
        let amended = Version { number: 2, amendment, ..created.clone() };
        for (text, want) in [("payment.scheduled", (true, false)), ("payment.amended", (false, true))] {
            let except: Except = format!("type={text}").parse().unwrap();
            assert_eq!((except.is(&created), except.is(&amended)), want, "{text}");
        }
        // A claim is never left out.
        let all: Except = "from=2026-11-20T00:00:00Z".parse().unwrap();
        assert!(!all.is(&version(2, Status::Pending, "2026-11-20T09:30:00Z", "c:acme")));
        for text in
            ["", "actor=", "actor", "actor=acme", "by=acme", "type=payment.pending", "from=today", "actor=client:a,"]
        {
            assert_eq!(text.parse::<Except>(), Err(ExceptError::Form), "{text}");
        }
        let order = |from, to| format!("from=2026-11-20T{from}:00:00Z,to=2026-11-20T{to}:00:00Z").parse::<Except>();
        assert_eq!(order("10", "09"), Err(ExceptError::Order));
        assert!(order("09", "09").is_ok());
    }
}
