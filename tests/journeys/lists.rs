//! Lists and counts: of an account, of a date, and the payments that they leave out.

mod account;
mod counts;
mod date;
mod unreadable;
