//! The heads and details of some payments, as the tables have them.

use std::collections::HashMap;

use anyhow::{Context as _, Result};
use payments_model::{Details, DetailsKey, HeadKey};
use payments_store::{StoreError, StoredHead};

use super::decide::{Decision, Rules, Seen, decide};
use super::known::Known;
use super::outcome::Finding;
use super::redates::Contents;

pub(super) type Heads = HashMap<HeadKey, Result<StoredHead, StoreError>>;
pub(super) type Amended = HashMap<DetailsKey, Result<Details, StoreError>>;

/// The heads and details of some payments.
pub(super) struct Found {
    pub(super) hot: Heads,
    pub(super) history: Heads,
    pub(super) details: HashMap<DetailsKey, Result<Details, StoreError>>,
    pub(super) amended: Amended,
    pub(super) contents: Contents,
}

impl Found {
    pub(super) fn decide(&self, known: &Known, rules: &Rules) -> Result<Decision> {
        let seen = self.seen(known);
        match seen {
            Ok(seen) => decide(seen, rules).with_context(|| known.payment.payment_id.to_string()),
            Err(error) => {
                Ok(Decision { findings: vec![(Finding::Unreadable, error.to_string())], ..Decision::default() })
            }
        }
    }

    fn seen<'s>(&'s self, known: &'s Known) -> Result<Seen<'s>, &'s StoreError> {
        let first = DetailsKey { payment_id: known.payment.payment_id, amendment: None };
        let details = self.details.get(&first).map(Result::as_ref).transpose()?;
        let key = details.map_or_else(|| known.key.clone(), Details::key);
        Ok(Seen {
            known,
            hot: self.hot.get(&key).map(Result::as_ref).transpose()?,
            history: self.history.get(&key).map(Result::as_ref).transpose()?,
            details,
            amended: &self.amended,
            contents: &self.contents,
        })
    }
}
