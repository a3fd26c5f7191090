//! Panels of views, and tables whose rows are cards on a phone.

use maud::{Markup, PreEscaped, html};

/// A column's class if its heading is only for screen readers.
pub(crate) const ACTIONS: &str = "act skipped";

/// A panel: its heading, a line beside the heading, and the content.
pub(crate) fn panel(heading: &Markup, note: &Markup, content: &Markup) -> Markup {
    html! { section class="panel" { (head(heading, note)) (content) } }
}

/// The head of a panel.
pub(crate) fn head(heading: &Markup, note: &Markup) -> Markup {
    html! { div class="head" { h2 { (heading) } @if !note.0.is_empty() { p class="quiet" { (note) } } } }
}

/// An empty panel's sentence.
pub(crate) fn empty(says: &Markup) -> Markup {
    html! { p class="empty quiet" { (says) } }
}

/// A table whose rows are cards on a phone. Each column has a title and a class. CSS grid takes a table's meaning away, so each
/// part has its role.
pub(crate) fn cards(caption: &str, columns: &[(&str, &str)], rows: &Markup) -> Markup {
    let with_roles = rows.0.replace("<tr", "<tr role=\"row\"").replace("<td", "<td role=\"cell\"");
    let with_roles = with_roles.replace("<th scope=\"row\"", "<th role=\"rowheader\" scope=\"row\"");
    html! {
        table class="cards" role="table" {
            caption class="skip" { (caption) }
            thead role="rowgroup" { tr role="row" { @for (title, class) in columns { (column(title, class)) } } }
            // Texts in the rows are escaped, so each of the tags is a row's or a cell's.
            tbody role="rowgroup" { (PreEscaped(with_roles)) }
        }
    }
}

fn column(title: &str, class: &str) -> Markup {
    let class = (!class.is_empty()).then_some(class);
    html! {
        th role="columnheader" scope="col" class=[class.map(|class| if class == ACTIONS { "act" } else { class })] {
            @if class == Some(ACTIONS) { span class="skip" { (title) } } @else { (title) }
        }
    }
}

/// A button that opens the preview of an action with these fields.
pub(crate) fn opens(action: &str, says: &str, class: &str, fields: &[(&str, &str)]) -> Markup {
    html! {
        form data-action=(action) {
            (hidden("step", "preview"))
            @for (name, value) in fields { (hidden(name, value)) }
            button class=[(!class.is_empty()).then_some(class)] { (says) }
        }
    }
}

/// A field that nobody fills in.
pub(crate) fn hidden(name: &str, value: &str) -> Markup {
    html! { input type="hidden" name=(name) value=(value); }
}

/// A number of bytes in the unit that fits.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        ..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{}.{} KB", bytes / 1_000, bytes % 1_000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_table_has_its_role_and_texts_stay_texts() {
        let rows = html! { tr { th scope="row" { "a" } td title="<td>" { "<td>" } } };
        let table = cards("Queues", &[("Queue", ""), ("Waiting", "num"), ("Act", ACTIONS)], &rows).into_string();
        assert!(table.contains("<th role=\"columnheader\" scope=\"col\" class=\"num\">Waiting</th>"), "{table}");
        assert!(table.contains("class=\"act\"><span class=\"skip\">Act</span></th>"), "{table}");
        let row = "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">a</th>\
                   <td role=\"cell\" title=\"&lt;td&gt;\">&lt;td&gt;</td></tr>";
        assert!(table.contains(row), "{table}");
    }

    #[test]
    fn a_size_has_one_unit() {
        for (bytes, want) in
            [(0, "0 bytes"), (999, "999 bytes"), (1_000, "1.0 KB"), (12_349, "12.3 KB"), (5_050_000, "5.0 MB")]
        {
            assert_eq!(size(bytes), want);
        }
    }
}
