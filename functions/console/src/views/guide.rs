//! A guide of operators: alarms, tasks, losses.

use maud::{Markup, PreEscaped, html};
use payments_http::{Problem, Request};

use crate::function::no_such_page;
use crate::guides::{GUIDES, Section};
use crate::html::heading;

/// The view of a guide: its first page, or a section with its subsections. It reads nothing.
pub(crate) fn guide(name: &str, request: &Request<'_>) -> Result<Markup, Problem> {
    let query = request.query(&["at"])?;
    let at = query.text("at")?;
    let guide = GUIDES.iter().find(|guide| guide.name == name).ok_or_else(no_such_page)?;
    let [title, ..] = guide.sections else { return Err(no_such_page()) };
    let place = at.map_or(Some(0), |at| guide.sections.iter().position(|section| section.at == at));
    let [first, rest @ ..] = &guide.sections[place.ok_or_else(no_such_page)?..] else { return Err(no_such_page()) };
    let below = rest.iter().take_while(|section| section.level > first.level);
    let most = if at.is_some() { rest.len() } else { guide.first - 1 };
    Ok(html! {
        div class="top" {
            (heading(first.title))
            p class="row quiet" {
                @if at.is_some() { a href={ "#" (name) } { (title.title) } }
                "From docs/" (name) ".md of this release"
            }
        }
        section class="panel guide" {
            (PreEscaped(first.body))
            @for section in below.take(most) { (subsection(section, section.level - first.level)) }
        }
    })
}

fn subsection(section: &Section, depth: usize) -> Markup {
    html! {
        @if depth == 1 { h2 { (section.title) } } @else { h3 { (section.title) } }
        (PreEscaped(section.body))
    }
}
