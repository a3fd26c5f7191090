//! YAML as a tree whose nodes know their lines and tags, and from it any type that serde reads.

use std::fmt;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// A node of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The node's line, from 1 on: that of its name, if it has one.
    pub line: usize,
    /// The node's content.
    pub content: Content,
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the document.
    Map(Vec<(String, Node)>),
    /// A node with a tag of its own, such as `!Ref`.
    Tagged(String, Box<Node>),
}

/// An error in a document, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    line: Option<usize>,
    message: String,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for YamlError {}

impl YamlError {
    /// Returns the error with a line, if it has none yet.
    fn within(self, node: &Node) -> Self {
        Self { line: self.line.or(Some(node.line)), ..self }
    }
}

impl de::Error for YamlError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { line: None, message: message.to_string() }
    }
}

impl From<ScanError> for YamlError {
    fn from(error: ScanError) -> Self {
        Self { line: Some(error.marker().line()), message: error.info().to_owned() }
    }
}

/// Reads a document. An object of JSON has `{"!Ref": "Name"}` for `!Ref Name`.
///
/// # Errors
/// If the text is not YAML, has a name twice or an alias, or is of another type.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    T::deserialize(&Node::parse(text)?)
}

impl Node {
    /// Parses the first document of a text.
    ///
    /// # Errors
    /// If the text is not YAML, or has a name twice or an alias.
    pub fn parse(text: &str) -> Result<Self, YamlError> {
        let mut events = Parser::new_from_str(text);
        loop {
            let (event, span) = next(&mut events)?;
            if !matches!(event, Event::StreamStart | Event::DocumentStart(_)) {
                return Self::build(event, span, &mut events);
            }
        }
    }

    /// Builds the node that an event begins.
    fn build<'t>(event: Event<'t>, span: Span, events: &mut Parser<'t, StrInput<'t>>) -> Result<Self, YamlError> {
        let line = span.start.line();
        let (content, tag) = match event {
            Event::Scalar(text, style, _, tag) if style != ScalarStyle::Plain => {
                (Content::Text(text.into_owned()), tag)
            }
            Event::Scalar(text, _, _, tag) => (plain(&text), tag),
            Event::SequenceStart(_, tag) => {
                let mut nodes = Vec::new();
                loop {
                    match next(events)? {
                        (Event::SequenceEnd, _) => break,
                        (event, span) => nodes.push(Self::build(event, span, events)?),
                    }
                }
                (Content::List(nodes), tag)
            }
            Event::MappingStart(_, tag) => {
                let mut fields: Vec<(String, Self)> = Vec::new();
                loop {
                    match next(events)? {
                        (Event::MappingEnd, _) => break,
                        (Event::Scalar(name, ..), of_name) if fields.iter().all(|(known, _)| *known != name) => {
                            let (event, span) = next(events)?;
                            let value = Self::build(event, span, events)?;
                            fields.push((name.into_owned(), Self { line: of_name.start.line(), ..value }));
                        }
                        (_, span) => return Err(at(span.start.line(), "a name must be a text, and be there once")),
                    }
                }
                (Content::Map(fields), tag)
            }
            other => return Err(at(line, &format!("{other:?} is not supported"))),
        };
        let node = Self { line, content };
        Ok(match tag.as_deref() {
            Some(Tag { handle, suffix }) if handle == "!" => {
                Self { line, content: Content::Tagged(suffix.clone(), Box::new(node)) }
            }
            _ => node,
        })
    }

    /// Returns the fields of a mapping. Other nodes have no fields.
    pub fn fields(&self) -> &[(String, Self)] {
        match &self.content {
            Content::Map(fields) => fields,
            _ => &[],
        }
    }

    /// Returns a field of a mapping.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.fields().iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns a field that a mapping has to have.
    ///
    /// # Errors
    /// If it has none.
    pub fn field(&self, name: &str) -> Result<&Self, YamlError> {
        self.get(name).ok_or_else(|| self.error(&format!("{name} is missing")))
    }

    /// Returns a node without the fields of some names, in mappings of mappings, too.
    pub fn without(&self, names: &[&str]) -> Self {
        let Content::Map(fields) = &self.content else { return self.clone() };
        let kept = fields.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        let fields = kept.map(|(name, node)| (name.clone(), node.without(names))).collect();
        Self { line: self.line, content: Content::Map(fields) }
    }

    /// Takes a field that a mapping has to have out of it.
    ///
    /// # Errors
    /// If it has none.
    pub fn take(&mut self, name: &str) -> Result<Self, YamlError> {
        let taken = self.field(name)?.clone();
        if let Content::Map(fields) = &mut self.content {
            fields.retain(|(known, _)| known != name);
        }
        Ok(taken)
    }

    /// Returns the elements of a list. Other nodes have no elements.
    pub fn elements(&self) -> &[Self] {
        match &self.content {
            Content::List(nodes) => nodes,
            _ => &[],
        }
    }

    /// Returns a text.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns an error of this node.
    pub fn error(&self, message: &str) -> YamlError {
        at(self.line, message)
    }
}

fn at(line: usize, message: &str) -> YamlError {
    YamlError { line: Some(line), message: message.to_owned() }
}

fn next<'t>(events: &mut Parser<'t, StrInput<'t>>) -> Result<(Event<'t>, Span), YamlError> {
    events
        .next_event()
        .ok_or(YamlError { line: None, message: "the document ends".to_owned() })?
        .map_err(YamlError::from)
}

/// Returns the content of a plain scalar. A number that begins with zeros is a text.
fn plain(text: &str) -> Content {
    let digits = text.trim_start_matches(['-', '+']);
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit())
        && !(digits.starts_with('0') && digits[1..].starts_with(|second: char| second.is_ascii_digit()));
    let number = || text.parse().map(Content::Integer).or_else(|_| text.parse().map(Content::Number)).ok();
    match text {
        "" | "~" | "null" => Content::Null,
        "true" => Content::Bool(true),
        "false" => Content::Bool(false),
        _ => is_number.then(number).flatten().unwrap_or_else(|| Content::Text(text.to_owned())),
    }
}

impl<'n> IntoDeserializer<'n, YamlError> for &'n Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// An error has the line of the innermost node that it is about.
impl<'de> de::Deserializer<'de> for &'de Node {
    type Error = YamlError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        let read = match &self.content {
            Content::Null => visitor.visit_unit(),
            Content::Bool(value) => visitor.visit_bool(*value),
            Content::Integer(value) => match u64::try_from(*value) {
                Ok(value) => visitor.visit_u64(value),
                Err(_) => visitor.visit_i64(*value),
            },
            Content::Number(value) => visitor.visit_f64(*value),
            Content::Text(text) => visitor.visit_borrowed_str(text),
            Content::List(nodes) => visitor.visit_seq(SeqDeserializer::new(nodes.iter())),
            Content::Map(fields) => visitor.visit_map(Fields { rest: fields.iter(), value: self }),
            Content::Tagged(tag, node) => {
                visitor.visit_map(MapDeserializer::new([(format!("!{tag}"), &**node)].into_iter()))
            }
        };
        read.map_err(|error| error.within(self))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        if self.content == Content::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, YamlError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        let name: StrDeserializer<'_, YamlError> = self.text().unwrap_or_default().into_deserializer();
        visitor.visit_enum(name).map_err(|error| error.within(self))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// The fields of a mapping that are not read yet, and the value of the field whose name was read last.
struct Fields<'n> {
    rest: std::slice::Iter<'n, (String, Node)>,
    value: &'n Node,
}

impl<'n> de::MapAccess<'n> for Fields<'n> {
    type Error = YamlError;

    fn next_key_seed<K: DeserializeSeed<'n>>(&mut self, seed: K) -> Result<Option<K::Value>, YamlError> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        self.value = value;
        let name: StrDeserializer<'_, YamlError> = name.as_str().into_deserializer();
        seed.deserialize(name).map(Some).map_err(|error| error.within(value))
    }

    fn next_value_seed<V: DeserializeSeed<'n>>(&mut self, seed: V) -> Result<V::Value, YamlError> {
        seed.deserialize(self.value).map_err(|error| error.within(self.value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_document_is_what_it_is_in_json() {
        let text = "a: 1\nb: [x, \"2\", 2.5, -3, true, null, 007, 2012-10-17]\nc: !If\n  - !Ref D\n  - {e: ~}\n200: |\n  two\n  lines\n";
        assert_eq!(
            from_str::<Value>(text).unwrap(),
            json!({
                "a": 1,
                "b": ["x", "2", 2.5, -3, true, null, "007", "2012-10-17"],
                "c": { "!If": [{ "!Ref": "D" }, { "e": null }] },
                "200": "two\nlines\n",
            })
        );
    }

    #[test]
    fn an_error_has_its_line() {
        for (text, error) in [
            ("a: 1\nb: x\n", "line 2: invalid type: string \"x\", expected u32"),
            ("a: 1\nb: 2\na: 3\n", "line 3: a name must be a text, and be there once"),
            ("a: &it 1\nb: *it\n", "line 2: Alias(1) is not supported"),
            ("a: 1\nb: -1\n", "line 2: invalid value: integer `-1`, expected u32"),
        ] {
            assert_eq!(from_str::<BTreeMap<String, u32>>(text).unwrap_err().to_string(), error);
        }
        assert!(from_str::<Value>("a: [1\nb: 2\n").unwrap_err().to_string().starts_with("line "));
    }
}
