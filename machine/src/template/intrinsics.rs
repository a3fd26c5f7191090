//! CloudFormation's intrinsic functions, as far as functions and queues of the template use them.

use super::yaml::{Content, Node, YamlError};

/// The values in place of parameters, names of resources and conditions.
pub type Given<'g> = &'g dyn Fn(&str) -> Option<String>;

/// The sections of the template to which intrinsic functions refer.
#[derive(Debug)]
pub(crate) struct Intrinsics {
    pub(crate) parameters: Node,
    pub(crate) conditions: Node,
    /// The value of the parameter `Paused`, instead of its default.
    pub(crate) paused: Option<&'static str>,
    /// The logical ids of resources.
    pub(crate) resources: Vec<String>,
}

impl Intrinsics {
    /// Returns a node without intrinsic functions: parameters have their defaults, and resources are their logical ids.
    pub(crate) fn resolved(&self, node: &Node) -> Result<Node, YamlError> {
        self.value(node, &|_| None)
    }

    /// Returns a node as a text, with the given values.
    pub(crate) fn text(&self, node: &Node, given: Given<'_>) -> Result<String, YamlError> {
        let value = self.value(node, given)?;
        match value.content {
            Content::Text(text) => Ok(text),
            Content::Integer(number) => Ok(number.to_string()),
            Content::Bool(value) => Ok(value.to_string()),
            _ => Err(node.error("the value is not a text")),
        }
    }

    /// Returns the value of a node. It is nothing for `AWS::NoValue`, with which its field or element goes.
    fn value(&self, node: &Node, given: Given<'_>) -> Result<Node, YamlError> {
        let is_there = |value: &Result<Node, _>| !matches!(value, Ok(Node { content: Content::Null, .. }));
        let content = match &node.content {
            Content::List(nodes) => {
                let values = nodes.iter().map(|node| self.value(node, given)).filter(is_there);
                Content::List(values.collect::<Result<_, _>>()?)
            }
            Content::Map(fields) => {
                let values = fields.iter().map(|(name, node)| Ok((name.clone(), self.value(node, given)?)));
                let values = values.filter(|field| !matches!(field, Ok((_, Node { content: Content::Null, .. }))));
                Content::Map(values.collect::<Result<_, YamlError>>()?)
            }
            Content::Tagged(tag, of) => match (tag.as_str(), of.text(), of.elements()) {
                ("Ref", Some("AWS::NoValue"), _) => Content::Null,
                ("Ref", Some(name), _) => self.referred(name, node, given)?,
                ("GetAtt", Some(name), _) => {
                    self.referred(name.split('.').next().unwrap_or(name), node, given)?;
                    Content::Text(name.to_owned())
                }
                ("Sub", Some(pattern), _) => Content::Text(self.substituted(pattern, node, given)?),
                ("If", _, [condition, then, otherwise]) => {
                    // Both are read, so that what cannot be read is found whatever is given.
                    let (then, otherwise) = (self.value(then, given)?, self.value(otherwise, given)?);
                    let is_met = self.is_met(condition.text().unwrap_or_default(), node, given)?;
                    return Ok(if is_met { then } else { otherwise });
                }
                ("Join", _, [separator, of]) => {
                    let of = self.value(of, given)?;
                    let parts: Vec<String> =
                        of.elements().iter().map(|part| self.text(part, given)).collect::<Result<_, _>>()?;
                    Content::Text(parts.join(&self.text(separator, given)?))
                }
                ("Equals", _, [left, right]) => Content::Bool(self.text(left, given)? == self.text(right, given)?),
                ("Not", _, [of]) => Content::Bool(!self.is_true(of, given)?),
                ("And", _, all) => {
                    let all: Vec<bool> = all.iter().map(|it| self.is_true(it, given)).collect::<Result<_, _>>()?;
                    Content::Bool(all.into_iter().all(|it| it))
                }
                ("Condition", Some(name), _) => Content::Bool(self.is_met(name, node, given)?),
                _ => return Err(node.error(&format!("one machine does not know this use of !{tag}"))),
            },
            other => other.clone(),
        };
        Ok(Node { line: node.line, content })
    }

    fn is_true(&self, node: &Node, given: Given<'_>) -> Result<bool, YamlError> {
        match self.value(node, given)?.content {
            Content::Bool(value) => Ok(value),
            _ => Err(node.error("this is not a condition")),
        }
    }

    fn is_met(&self, condition: &str, node: &Node, given: Given<'_>) -> Result<bool, YamlError> {
        if let Some(value) = given(condition) {
            return Ok(value == "true");
        }
        let known = self.conditions.get(condition);
        self.is_true(known.ok_or_else(|| node.error(&format!("there is no condition {condition}")))?, given)
    }

    /// Returns the value of a name: the given one, a parameter's default, or a resource's id.
    fn referred(&self, name: &str, node: &Node, given: Given<'_>) -> Result<Content, YamlError> {
        if let Some(value) = given(name) {
            return Ok(Content::Text(value));
        }
        if let Some(paused) = self.paused.filter(|_| name == "Paused") {
            return Ok(Content::Text(paused.to_owned()));
        }
        if let Some(default) = self.parameters.get(name).and_then(|parameter| parameter.get("Default")) {
            return Ok(default.content.clone());
        }
        let is_resource = self.resources.iter().any(|id| id == name);
        let content = is_resource.then(|| Content::Text(name.to_owned()));
        content.ok_or_else(|| node.error(&format!("{name} is neither a parameter with a default nor a resource")))
    }

    fn substituted(&self, pattern: &str, node: &Node, given: Given<'_>) -> Result<String, YamlError> {
        let mut parts = pattern.split("${");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}').ok_or_else(|| node.error("a name of !Sub has no end"))?;
            let content = self.referred(name, node, given)?;
            text += &self.text(&Node { line: node.line, content }, given)?;
            text += rest;
        }
        Ok(text)
    }
}
