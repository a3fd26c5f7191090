//! Rules of the repository: the template deploys the tested code, and the tree keeps its shape.

mod access;
mod alarms;
mod bounds;
mod circles;
mod contract;
mod costs;
mod documents;
mod expectations;
mod graph;
mod habits;
mod iam;
mod model;
mod sam_local;
mod stages;
mod template;
mod tree;
mod triggers;
mod variables;
mod words;
