//! The selection of payments that are to be cancelled: the boxes of a page, or all that match.

use maud::{Markup, html};
use payments_http::query::invalid_parameter;
use payments_http::{Problem, Query};

/// The most payments that are selected at once: one action cancels as many.
const MOST: u16 = 100;

/// Whether a list shows and selects all that match, up to [`MOST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Selects {
    pub(crate) is_all: bool,
}

impl Selects {
    /// Reads the parameter `select`.
    pub(crate) fn read(query: &Query<'_>) -> Result<Self, Problem> {
        match query.text("select")? {
            None | Some("") => Ok(Self { is_all: false }),
            Some("all") => Ok(Self { is_all: true }),
            Some(_) => Err(invalid_parameter("select", &"it has to be all")),
        }
    }

    /// The payments of a page that usually has so many.
    pub(crate) fn most(self, page: u16) -> u16 {
        if self.is_all { MOST } else { page }
    }

    /// The bar with the number and the sums of the selected payments. If more follow the page, it has a link that selects all of them.
    pub(crate) fn bar(self, more: bool, all: &str) -> Markup {
        html! {
            div class="pick" role="group" aria-label="Selection" {
                p {
                    b data-selected {} " " span class="quiet n" data-sums {} " "
                    @if self.is_all && more { span class="quiet" { "More match: one cancel takes " (MOST) } }
                    @else if more { a href=(all) { "Select all that match, up to " (MOST) } }
                }
                div class="row" { button type="button" data-clear { "Clear" } button class="danger" { "Cancel selected…" } }
            }
        }
    }
}
