//! The views, each a part of the page.

mod account;
mod ahead;
mod attention;
mod audit;
pub(crate) mod bank;
pub(crate) mod dates;
pub(crate) mod day;
pub(crate) mod endpoints;
pub(crate) mod failures;
mod find;
mod guide;
mod list;
mod payment;
pub(crate) mod queues;
mod reports;
mod rows;
mod run;
pub(crate) mod share;
pub(crate) mod switch;
pub(crate) mod waiting;

use std::str::FromStr;

use maud::Markup;
use payments_http::query::invalid_parameter;
use payments_http::{Problem, Request};
use payments_model::UtcSecond;

use crate::function::Console;

/// A view.
pub(crate) struct View {
    /// Its name, in the address.
    pub(crate) name: &'static str,
    /// Its name among the links of the page; empty if another view leads to it.
    pub(crate) title: &'static str,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Day,
    Ahead,
    List,
    Find,
    Payment,
    Account,
    Waiting,
    Endpoints,
    Queues,
    Sample,
    Reports,
    Report,
    Run,
    Undos,
    Bank,
    Audit,
    Attention,
    /// The guide of the view's name.
    Guide,
}

/// Every view.
pub(crate) static VIEWS: [View; 20] = [
    View { name: "day", title: "Day", kind: Kind::Day },
    View { name: "ahead", title: "Dates ahead", kind: Kind::Ahead },
    View { name: "waiting", title: "Waiting", kind: Kind::Waiting },
    View { name: "endpoints", title: "Webhooks", kind: Kind::Endpoints },
    View { name: "queues", title: "Queues", kind: Kind::Queues },
    View { name: "reports", title: "Reports", kind: Kind::Reports },
    View { name: "bank", title: "Bank", kind: Kind::Bank },
    View { name: "audit", title: "Audit", kind: Kind::Audit },
    View { name: "alarms", title: "Alarms", kind: Kind::Guide },
    View { name: "list", title: "", kind: Kind::List },
    View { name: "attention", title: "", kind: Kind::Attention },
    View { name: "find", title: "", kind: Kind::Find },
    View { name: "payment", title: "", kind: Kind::Payment },
    View { name: "account", title: "", kind: Kind::Account },
    View { name: "sample", title: "", kind: Kind::Sample },
    View { name: "report", title: "", kind: Kind::Report },
    View { name: "run", title: "", kind: Kind::Run },
    View { name: "undos", title: "", kind: Kind::Undos },
    View { name: "operations", title: "Operations", kind: Kind::Guide },
    View { name: "restore", title: "Restore", kind: Kind::Guide },
];

/// The view of this name.
pub(crate) fn named(name: &str) -> Option<&'static View> {
    VIEWS.iter().find(|view| view.name == name)
}

/// The place after which a page of a list begins, from the link to the page: an instant and an id. Without one, the reader begins
/// again with `first`.
fn place_in<Id: FromStr>(first: &str, parameter: &'static str, text: &str) -> Result<(UtcSecond, Id), Problem> {
    let parsed = text.split_once('_').and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
    parsed.ok_or_else(|| {
        invalid_parameter(parameter, &format!("it is not a place in this list; begin again with the {first}"))
    })
}

impl Console {
    /// Renders a view.
    pub(crate) async fn view(&self, view: &View, request: &Request<'_>) -> Result<Markup, Problem> {
        match view.kind {
            Kind::Day => self.day(request).await,
            Kind::Ahead => self.ahead(request).await,
            Kind::List => self.list(request).await,
            Kind::Find => self.find(request).await,
            Kind::Payment => self.payment(request).await,
            Kind::Account => self.account(request).await,
            Kind::Waiting => self.waiting(request).await,
            Kind::Endpoints => self.endpoints(request).await,
            Kind::Queues => self.queues(request).await,
            Kind::Sample => self.sample(request).await,
            Kind::Reports => self.reports(request).await,
            Kind::Report => self.report(request).await,
            Kind::Run => self.run(request).await,
            Kind::Undos => self.undos(request).await,
            Kind::Bank => self.bank(request).await,
            Kind::Audit => self.audit(request).await,
            Kind::Attention => self.attention(request).await,
            Kind::Guide => guide::guide(view.name, request),
        }
    }
}
