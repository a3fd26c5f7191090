//! A guide as the console serves it: its Markdown as HTML, cut at its headings, with links that stay in the console.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

/// The guide whose headings of this level are the names of alarms.
const ALARMS: (&str, usize) = ("alarms", 3);

/// The beginning of a line for simulated operators.
const ACTIONS: &str = "*Actions: ";

/// A document.
pub(crate) struct Guide {
    /// The name of its file and of its view.
    pub(crate) name: String,
    text: String,
    /// All headings, in order. The first has the title.
    pub(crate) headings: Vec<Heading>,
}

/// A heading.
pub(crate) struct Heading {
    pub(crate) anchor: String,
    /// 1 for the title.
    pub(crate) level: usize,
    /// The words, without markup.
    pub(crate) title: String,
}

impl Guide {
    /// Finds the headings of a document.
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let text: Vec<&str> = text.lines().filter(|line| !line.starts_with(ACTIONS)).collect();
        let text = text.join("\n");
        let (mut headings, mut is_heading) = (Vec::<Heading>::new(), false);
        for event in parse(&text) {
            match event {
                Event::Start(Tag::Heading { level, .. }) => {
                    is_heading = true;
                    headings.push(Heading { anchor: String::new(), level: level as usize, title: String::new() });
                }
                Event::End(TagEnd::Heading(_)) => is_heading = false,
                Event::Text(words) | Event::Code(words) if is_heading => {
                    if let Some(heading) = headings.last_mut() {
                        heading.title.push_str(&words);
                        heading.anchor = anchor(&heading.title);
                    }
                }
                _ => {}
            }
        }
        Self { name: name.to_owned(), text, headings }
    }

    /// Renders the text below each heading, up to the next one. `all` has the guides to which links can lead.
    pub(crate) fn bodies<'g>(&'g self, all: &'g [Self]) -> Result<Vec<String>, String> {
        let mut page = Page {
            guide: self,
            all,
            begun: 0,
            bodies: Vec::new(),
            events: Vec::new(),
            within: Within::Text,
            table: Table::default(),
        };
        for event in parse(&self.text) {
            page.take(event)?;
        }
        page.end_section();
        Ok(page.bodies)
    }
}

/// The alarms of the table of priorities, the most urgent first, each with the time within which somebody acts.
pub(crate) fn priorities(text: &str) -> Vec<(String, String)> {
    let (mut found, mut last) = (Vec::new(), String::new());
    for row in text.lines().filter(|line| line.starts_with("| [")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [alarms, _, within, ..] = &cells[..] else { continue };
        if *within != "the same" {
            last = within.replace('*', "");
        }
        let names = alarms.split('[').skip(1).filter_map(|part| part.split_once("](#"));
        found.extend(names.map(|(name, _)| (name.to_owned(), last.clone())));
    }
    found
}

/// A text as the value of an attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

/// The anchor that GitHub gives to a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn parse(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

/// The element that decides about a text.
enum Within {
    Text,
    Heading,
    Code,
    /// A link into a guide.
    Link,
    /// A link to a file that the console does not serve.
    File(String),
}

/// A guide that is being rendered.
struct Page<'g> {
    guide: &'g Guide,
    all: &'g [Guide],
    /// The number of headings that have begun.
    begun: usize,
    bodies: Vec<String>,
    /// The events of the section.
    events: Vec<Event<'g>>,
    within: Within,
    table: Table,
}

/// The table that has begun.
#[derive(Default)]
struct Table {
    is_head: bool,
    /// The titles of its columns.
    titles: Vec<String>,
    /// The number of the row's cells that have begun.
    cells: usize,
}

impl<'g> Page<'g> {
    fn take(&mut self, event: Event<'g>) -> Result<(), String> {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                self.end_section();
                self.begun += 1;
                self.within = Within::Heading;
            }
            Event::End(TagEnd::Heading(_)) => {
                self.events.clear();
                self.within = Within::Text;
            }
            // Raw HTML is text. The console does not serve pictures.
            Event::Html(text) | Event::InlineHtml(text) => self.events.push(Event::Text(text)),
            Event::Start(Tag::Image { dest_url, .. }) => return Err(format!("{}.md: {dest_url}", self.guide.name)),
            Event::Start(Tag::Link { dest_url, .. }) => self.begin_link(&dest_url)?,
            Event::End(TagEnd::Link) => match std::mem::replace(&mut self.within, Within::Text) {
                Within::File(name) => {
                    self.events.extend([Event::Text(" (".into()), Event::Code(name.into()), Event::Text(")".into())]);
                }
                _ => self.markup("</a>"),
            },
            Event::Start(Tag::Table(_) | Tag::TableHead | Tag::TableRow | Tag::TableCell)
            | Event::End(TagEnd::Table | TagEnd::TableHead | TagEnd::TableRow | TagEnd::TableCell) => {
                self.table_part(&event);
            }
            Event::Start(Tag::CodeBlock(_)) => {
                self.within = Within::Code;
                self.markup("<pre tabindex=\"0\"><code>");
            }
            Event::End(TagEnd::CodeBlock) => {
                self.within = Within::Text;
                self.markup("</code></pre>");
            }
            Event::Text(text) if matches!(self.within, Within::Text) => self.text(&text),
            other => self.events.push(other),
        }
        Ok(())
    }

    /// Renders a part of a table, whose rows are cards on a phone: each cell has its column's title, and each part its role.
    fn table_part(&mut self, part: &Event<'_>) {
        match part {
            Event::Start(Tag::Table(_)) => {
                self.table = Table::default();
                self.markup("<table class=\"cards\" role=\"table\">");
            }
            Event::End(TagEnd::Table) => self.markup("</tbody></table>\n"),
            Event::Start(Tag::TableHead) => {
                self.table.is_head = true;
                self.markup("<thead role=\"rowgroup\"><tr role=\"row\">");
            }
            Event::End(TagEnd::TableHead) => {
                self.table.is_head = false;
                self.markup("</tr></thead><tbody role=\"rowgroup\">\n");
            }
            Event::Start(Tag::TableRow) => {
                self.table.cells = 0;
                self.markup("<tr role=\"row\">");
            }
            Event::End(TagEnd::TableRow) => self.markup("</tr>\n"),
            Event::Start(_) if self.table.is_head => {
                self.table.titles.push(String::new());
                self.markup("<th role=\"columnheader\" scope=\"col\">");
            }
            Event::End(_) if self.table.is_head => self.markup("</th>"),
            Event::Start(_) => {
                let place = self.table.cells;
                self.table.cells += 1;
                // A card begins with the first cell, which needs no title.
                let title = self.table.titles.get(place).filter(|title| place > 0 && !title.is_empty());
                let title = title.map(|title| format!(" data-l=\"{}\"", escaped(title))).unwrap_or_default();
                self.markup(format!("<td role=\"cell\" class=\"all\"{title}><span>"));
            }
            _ => self.markup("</span></td>"),
        }
    }

    fn markup(&mut self, markup: impl Into<String>) {
        self.events.push(Event::Html(markup.into().into()));
    }

    /// Ends the section that has begun.
    fn end_section(&mut self) {
        let events = std::mem::take(&mut self.events);
        if self.begun > 0 {
            let mut body = String::new();
            html::push_html(&mut body, events.into_iter());
            self.bodies.push(body);
        }
    }

    fn begin_link(&mut self, target: &str) -> Result<(), String> {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let name = if file.is_empty() { Some(self.guide.name.as_str()) } else { file.strip_suffix(".md") };
        let Some(guide) = self.all.iter().find(|guide| name == Some(&guide.name)) else {
            self.within = Within::File(format!("docs/{file}"));
            return Ok(());
        };
        if !anchor.is_empty() && !guide.headings.iter().any(|heading| heading.anchor == anchor) {
            return Err(format!("{}.md: {target} leads nowhere", self.guide.name));
        }
        self.within = Within::Link;
        let place = if anchor.is_empty() { String::new() } else { format!("?at={anchor}") };
        self.markup(format!("<a href=\"#{}{place}\">", guide.name));
        Ok(())
    }

    /// Adds a text. Names of other alarms in it lead to their entries.
    fn text(&mut self, text: &str) {
        if self.table.is_head
            && let Some(title) = self.table.titles.last_mut()
        {
            title.push_str(text);
        }
        let own = self.guide.headings[..self.begun].last().map(|heading| heading.title.as_str());
        let alarms = self.all.iter().filter(|guide| guide.name == ALARMS.0).flat_map(|guide| &guide.headings);
        let alarms: Vec<_> = alarms.filter(|it| it.level == ALARMS.1 && Some(it.title.as_str()) != own).collect();
        for part in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
            let word = part.trim_end_matches(|c: char| !c.is_alphanumeric());
            if let Some(alarm) = alarms.iter().find(|alarm| alarm.title == word) {
                self.markup(format!("<a href=\"#{}?at={}\">{word}</a>", ALARMS.0, alarm.anchor));
                self.events.push(Event::Text(part[word.len()..].to_owned().into()));
            } else {
                self.events.push(Event::Text(part.to_owned().into()));
            }
        }
    }
}
