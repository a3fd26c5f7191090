//! What the repository promises about itself: the template deploys what was tested, and the tree
//! keeps its shape.

mod access;
mod alarms;
mod template;
mod tree;
mod triggers;
