//! Rules of the repository: the template deploys what was tested, and the tree keeps its shape.

mod access;
mod alarms;
mod api_names;
mod bounds;
mod circles;
mod costs;
mod domain;
mod generators;
mod graph;
mod iam;
mod joining;
mod links;
mod model;
mod openapi;
mod runbook;
mod sam_local;
mod stages;
mod template;
mod tree;
mod triggers;
mod variables;
mod words;
