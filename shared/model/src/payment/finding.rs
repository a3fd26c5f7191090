//! Findings: settlement results that contradict their payments, kept until an operator closes each.

use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::account::AccountId;
use crate::actor::Actor;
use crate::calendar::instant::UtcSecond;
use crate::money::Money;
use crate::payment::settlement::Settlement;
use crate::payment::slot::HeadKey;
use crate::payment::transition::State;

/// The bytes of a hash that a result's hash has. Two results of one payment have the same one with a probability of 2^-64.
const HASH_BYTES: usize = 8;

/// The hash of all that a settlement result says. A repeated result has the same hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResultHash(String);

as_text!(ResultHash);

/// A text that is not the hash of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the hash of a result has 16 hexadecimal digits in lower case")]
pub struct ResultHashError;

/// The content of a settlement result, without its payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The outcome.
    pub settlement: Settlement,
    /// The amount that moved, or was to move.
    pub money: Money,
    /// The payee.
    pub payee: AccountId,
}

/// The end of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingClosed {
    /// The time.
    pub at: UtcSecond,
    /// The operator.
    pub by: Actor,
    /// The operator's reason.
    pub reason: String,
}

/// A settlement result that contradicts its payment, which stayed as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The key of the payment's head.
    pub key: HeadKey,
    /// The payment's amount.
    pub money: Money,
    /// The payment's payee.
    pub payee: AccountId,
    /// The payment's state, which stands: settled, or cancelled.
    pub stands: State,
    /// The content of the result.
    pub told: Told,
    /// The time at which the first such result was found.
    pub found_at: UtcSecond,
    /// The end; `None` while an operator has to act.
    pub closed: Option<FindingClosed>,
}

impl Told {
    /// The hash of the content. Failures that say the same have the same hash.
    #[must_use]
    pub fn hash(&self) -> ResultHash {
        let Self { settlement, money, payee } = self;
        let (status, why) = match settlement {
            Settlement::Processed(id) => ("PROCESSED", id.to_string()),
            Settlement::Failed(failure) => ("FAILED", failure.in_words().reason().to_owned()),
        };
        // Only the last part can have a line break.
        let text = format!("{status}\n{}\n{}\n{payee}\n{why}", money.amount.get(), money.currency);
        ResultHash(Sha256::digest(text).iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }
}

impl FromStr for ResultHash {
    type Err = ResultHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        let is_hash = text.len() == 2 * HASH_BYTES && text.bytes().all(is_digit);
        if is_hash { Ok(Self(text.to_owned())) } else { Err(ResultHashError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payment::settlement::Failure;

    fn told(settlement: Settlement) -> Told {
        let money = Money { amount: "1250".parse().unwrap(), currency: "GBP".parse().unwrap() };
        Told { settlement, money, payee: "landlord-7".parse().unwrap() }
    }

    #[test]
    fn results_that_say_the_same_have_one_hash() {
        let processed = |id: &str| told(Settlement::Processed(id.parse().unwrap()));
        let failed = |code, reason: &str| told(Settlement::Failed(Failure::new(code, reason)));
        let first = processed("TX-1");
        assert_eq!(first.hash().to_string().parse(), Ok(first.hash()));
        let listed = told(Settlement::Failed(Failure::from_stored("XY99", "no").unwrap()));
        assert_eq!(failed(Some("XY99"), "no").hash(), listed.hash());
        let other = Money { amount: "1251".parse().unwrap(), ..first.money };
        let others = [
            processed("TX-2"),
            failed(None, "TX-1"),
            failed(Some("AM04"), "no funds"),
            Told { money: other, ..first.clone() },
            Told { payee: "landlord-8".parse().unwrap(), ..first.clone() },
        ];
        let hashes: std::collections::BTreeSet<_> = [first].iter().chain(&others).map(Told::hash).collect();
        assert_eq!(hashes.len(), 6);
        for text in ["", "0123456789abcde", "0123456789ABCDEF", "0123456789abcdefg", "0123456789abcd#f"] {
            assert_eq!(text.parse::<ResultHash>(), Err(ResultHashError), "{text}");
        }
    }
}
