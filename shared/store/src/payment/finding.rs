//! Findings: results that contradict their payments. A finding stays for good; its mark, until an operator closes it.
//!
//! | item | pk | sk |
//! |---|---|---|
//! | finding | `FINDINGS#<paymentId>` | `FINDING#<hash of the result>` |
//! | mark of an open finding | `FINDINGS#OPEN` | `<paymentId>#<hash of the result>` |
//!
//! Both are in the long-term table. One transaction puts both if there is no such finding, so a repeated result, or one that is
//! delivered twice at once, changes nothing, and a closed finding stays closed. One transaction closes the finding and deletes
//! the mark. The mark has the finding's attributes, so one query reads all open findings.

use aws_sdk_dynamodb::types::{AttributeValue, Delete, Put, TransactWriteItem, Update};
use payments_model::{
    Failure, Finding, FindingClosed, HeadKey, PaymentId, ResultHash, Settlement, Slot, State, Status, Told,
};
use serde::{Deserialize, Serialize};

use crate::error::{StoreError, failed};
use crate::item::{Fault, Item, item_key, key_of, parse_money, text_of, to_item};
use crate::key::finding::{finding_sort, open_finding_sort, parse_finding_sort, parse_open_finding_sort};
use crate::key::findings_partition;
use crate::store::Store;

/// The end of the partition key of the marks of open findings.
pub(crate) const OPEN: &str = "OPEN";

/// The most findings of one payment that a read returns. Each needs another contradicting result; 100 of them are 100 KB.
const MAX_OF_A_PAYMENT: i32 = 100;

/// The name of a finding: its payment, and the hash of its result.
pub type FindingName = (PaymentId, ResultHash);

/// Some open findings.
#[derive(Debug)]
pub struct OpenFindings {
    /// The findings, by payment. An unreadable one is an error in its place.
    pub findings: Vec<Result<Finding, StoreError>>,
    /// The last one, if there are more.
    pub next: Option<FindingName>,
}

/// The result of closing a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClosedFinding {
    /// The finding is closed, by this call.
    Done,
    /// The finding was closed before, and stays as it was closed.
    Before(FindingClosed),
    /// The payment has no such finding.
    Missing,
}

/// The attributes of a finding, and of its mark, beside the key.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FindingItem {
    account_id: String,
    slot_at: String,
    amount_minor: i64,
    currency: String,
    payee_account_id: String,
    stands: StateItem,
    told: ToldItem,
    found_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    closed: Option<ClosedItem>,
}

/// A status with its data. It is a map, because an index has items by their `transactionId`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StateItem {
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transaction_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure_reason: Option<String>,
}

/// The content of a result.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToldItem {
    #[serde(flatten)]
    state: StateItem,
    amount_minor: i64,
    currency: String,
    payee_account_id: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct ClosedItem {
    at: String,
    by: String,
    reason: String,
}

impl Store {
    /// Puts an open finding and its mark, unless there is such a finding, open or closed: 4 write units. Returns whether this call
    /// put it.
    pub async fn put_finding(&self, finding: &Finding) -> Result<bool, StoreError> {
        let (payment_id, hash) = (finding.key.slot.payment_id, finding.told.hash());
        let attributes = to_item(&FindingItem::new(finding))?;
        let mut item = finding_key(payment_id, &hash);
        item.extend(attributes.clone());
        let mut mark = mark_key(payment_id, &hash);
        mark.extend(attributes);
        let put = Put::builder()
            .table_name(&self.tables.history)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(pk)")
            .build();
        let mark = Put::builder().table_name(&self.tables.history).set_item(Some(mark)).build();
        let action = |put| TransactWriteItem::builder().put(put).build();
        let actions = [put, mark].into_iter().map(|put| put.map(action)).collect();
        Ok(self.transact(actions).await?.is_ok())
    }

    /// Returns the open findings after one, at most `most`, strongly consistent: 1 read unit for each 4 KB, about 8 findings.
    pub async fn open_findings(&self, after: Option<&FindingName>, most: u16) -> Result<OpenFindings, StoreError> {
        // No other key is between a key and the same with a space.
        let from = after.map_or_else(|| "-".to_owned(), |(id, hash)| open_finding_sort(*id, hash) + " ");
        let (items, last) = self.finding_items(findings_partition(OPEN), (&from, "~"), i32::from(most)).await?;
        let next = last.map(|key| parse_open_finding_sort(text_of(&key, "sk")));
        let next = next.transpose().map_err(|fault| StoreError::unreadable(&self.tables.history, OPEN, fault))?;
        Ok(OpenFindings { findings: items.into_iter().map(|item| self.parse_finding(item)).collect(), next })
    }

    /// Returns a payment's findings, open and closed, at most 100, strongly consistent: 1 read unit for each 4 KB.
    pub async fn findings_of(&self, payment_id: PaymentId) -> Result<Vec<Result<Finding, StoreError>>, StoreError> {
        let (items, _) =
            self.finding_items(findings_partition(payment_id), ("FINDING#", "FINDING#~"), MAX_OF_A_PAYMENT).await?;
        Ok(items.into_iter().map(|item| self.parse_finding(item)).collect())
    }

    /// Returns a finding, strongly consistent: 1 read unit.
    pub async fn finding(&self, payment_id: PaymentId, hash: &ResultHash) -> Result<Option<Finding>, StoreError> {
        let item = self.get(&self.tables.history, finding_key(payment_id, hash)).await?;
        item.map(|item| self.parse_finding(item)).transpose()
    }

    /// Closes a finding and deletes its mark, unless it is closed: 4 write units.
    pub async fn close_finding(
        &self,
        payment_id: PaymentId,
        hash: &ResultHash,
        closed: &FindingClosed,
    ) -> Result<ClosedFinding, StoreError> {
        let value = serde_dynamo::to_attribute_value(ClosedItem::new(closed));
        let value: AttributeValue =
            value.map_err(|error| StoreError::unreadable(&self.tables.history, "(new)", error))?;
        // CLOSED could become one of DynamoDB's reserved words.
        let update = Update::builder()
            .table_name(&self.tables.history)
            .set_key(Some(finding_key(payment_id, hash)))
            .condition_expression("attribute_exists(pk) AND attribute_not_exists(#closed)")
            .update_expression("SET #closed = :closed")
            .expression_attribute_names("#closed", "closed")
            .expression_attribute_values(":closed", value)
            .build();
        let delete =
            Delete::builder().table_name(&self.tables.history).set_key(Some(mark_key(payment_id, hash))).build();
        let actions = update.and_then(|update| {
            let action = TransactWriteItem::builder;
            Ok(vec![action().update(update).build(), action().delete(delete?).build()])
        });
        if self.transact(actions).await?.is_ok() {
            return Ok(ClosedFinding::Done);
        }
        // A call whose reply was lost has closed it.
        Ok(match self.finding(payment_id, hash).await?.map(|finding| finding.closed) {
            Some(Some(known)) if known == *closed => ClosedFinding::Done,
            Some(Some(known)) => ClosedFinding::Before(known),
            Some(None) | None => ClosedFinding::Missing,
        })
    }

    /// Copies a finding, or its closing, from the long-term table of another store, if this one lacks it: 3 reads of 1 unit, and 4
    /// write units. One that is closed here stays as it is. Returns whether something was to copy, which is copied only if `is_apply`.
    pub async fn copy_finding(&self, from: &Self, name: &FindingName, is_apply: bool) -> Result<bool, StoreError> {
        let (key, mark_key) = (finding_key(name.0, &name.1), mark_key(name.0, &name.1));
        let Some(there) = from.get(&from.tables.history, key.clone()).await? else { return Ok(false) };
        from.parse_finding(there.clone())?;
        let here = self.get(&self.tables.history, key).await?;
        let is_closed_here = here.as_ref().is_some_and(|here| here.contains_key("closed"));
        let stays = is_closed_here || here.as_ref() == Some(&there);
        let is_open = !is_closed_here && !there.contains_key("closed");
        // A restored table may have one of the two alone.
        let is_marked = self.get(&self.tables.history, mark_key.clone()).await?.is_some();
        let is_done = stays && is_marked == is_open;
        if is_done || !is_apply {
            return Ok(!is_done);
        }
        let (history, action) = (&self.tables.history, TransactWriteItem::builder);
        let mut actions = Vec::new();
        if is_open {
            let mut mark = there.clone();
            mark.extend(mark_key);
            let put = Put::builder().table_name(history).set_item(Some(mark)).build();
            actions.push(put.map(|put| action().put(put).build()));
        } else {
            let delete = Delete::builder().table_name(history).set_key(Some(mark_key)).build();
            actions.push(delete.map(|delete| action().delete(delete).build()));
        }
        if !stays {
            let put = Put::builder().table_name(history).set_item(Some(there));
            let put = put.condition_expression("attribute_not_exists(#closed)");
            let put = put.expression_attribute_names("#closed", "closed").build();
            actions.push(put.map(|put| action().put(put).build()));
        }
        // The condition is false only if somebody has just closed it here.
        self.transact(actions.into_iter().collect()).await.map(|_| true)
    }

    /// Returns the first items of a partition whose sort keys are between two texts, and the key of the last one if there are more.
    async fn finding_items(
        &self,
        partition: String,
        (from, to): (&str, &str),
        most: i32,
    ) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.tables.history)
            .consistent_read(true)
            .limit(most)
            .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
            .expression_attribute_values(":pk", AttributeValue::S(partition))
            .expression_attribute_values(":from", AttributeValue::S(from.to_owned()))
            .expression_attribute_values(":to", AttributeValue::S(to.to_owned()));
        let answer = query.send().await.map_err(failed("Query"))?;
        Ok((answer.items.unwrap_or_default(), answer.last_evaluated_key))
    }

    fn parse_finding(&self, item: Item) -> Result<Finding, StoreError> {
        let key = key_of(&item);
        parse(item).map_err(|fault| StoreError::unreadable(&self.tables.history, key, fault))
    }
}

impl FindingItem {
    fn new(finding: &Finding) -> Self {
        let Finding { key, money, payee, stands, told, found_at, closed } = finding;
        Self {
            account_id: key.account.to_string(),
            slot_at: key.slot.at.to_string(),
            amount_minor: money.amount.get(),
            currency: money.currency.to_string(),
            payee_account_id: payee.to_string(),
            stands: StateItem::new(stands),
            told: ToldItem {
                state: StateItem::new(&told.settlement.clone().into()),
                amount_minor: told.money.amount.get(),
                currency: told.money.currency.to_string(),
                payee_account_id: told.payee.to_string(),
            },
            found_at: found_at.to_string(),
            closed: closed.as_ref().map(ClosedItem::new),
        }
    }
}

impl StateItem {
    fn new(state: &State) -> Self {
        let (transaction_id, failure) = match state {
            State::Processed(id) => (Some(id.to_string()), None),
            State::Failed(failure) => (None, Some(failure)),
            State::Scheduled | State::Pending | State::Cancelled => (None, None),
        };
        Self {
            status: state.status().to_string(),
            transaction_id,
            failure_code: failure.map(|failure| failure.code().to_string()),
            failure_reason: failure.map(|failure| failure.reason().to_owned()),
        }
    }

    fn parse(self) -> Result<State, Fault> {
        let Self { status, transaction_id, failure_code, failure_reason } = self;
        Ok(match (status.parse()?, transaction_id, failure_code, failure_reason) {
            (Status::Processed, Some(id), None, None) => State::Processed(id.parse()?),
            (Status::Failed, None, Some(code), Some(reason)) => State::Failed(Failure::from_stored(&code, &reason)?),
            (Status::Cancelled, None, None, None) => State::Cancelled,
            _ => return Err("status, transactionId, failureCode and failureReason disagree".into()),
        })
    }
}

impl ClosedItem {
    fn new(FindingClosed { at, by, reason }: &FindingClosed) -> Self {
        Self { at: at.to_string(), by: by.to_string(), reason: reason.clone() }
    }
}

fn parse(item: Item) -> Result<Finding, Fault> {
    let [partition, sort] = ["pk", "sk"].map(|name| text_of(&item, name));
    let (payment_id, hash) = if partition == findings_partition(OPEN) {
        parse_open_finding_sort(sort)?
    } else {
        let payment_id = partition.split_once('#').ok_or("a finding is of a payment")?.1;
        (payment_id.parse()?, parse_finding_sort(sort)?)
    };
    let item: FindingItem = serde_dynamo::from_item(item)?;
    let settlement = match item.told.state.parse()? {
        State::Processed(id) => Settlement::Processed(id),
        State::Failed(failure) => Settlement::Failed(failure),
        _ => return Err("a result is PROCESSED or FAILED".into()),
    };
    let told = Told {
        settlement,
        money: parse_money(item.told.amount_minor, &item.told.currency)?,
        payee: item.told.payee_account_id.parse()?,
    };
    if told.hash() != hash {
        return Err("the hash is another result's".into());
    }
    let closed = item.closed.map(|ClosedItem { at, by, reason }| -> Result<_, Fault> {
        Ok(FindingClosed { at: at.parse()?, by: by.parse()?, reason })
    });
    Ok(Finding {
        key: HeadKey { account: item.account_id.parse()?, slot: Slot { at: item.slot_at.parse()?, payment_id } },
        money: parse_money(item.amount_minor, &item.currency)?,
        payee: item.payee_account_id.parse()?,
        stands: item.stands.parse()?,
        told,
        found_at: item.found_at.parse()?,
        closed: closed.transpose()?,
    })
}

fn finding_key(payment_id: PaymentId, hash: &ResultHash) -> Item {
    item_key(findings_partition(payment_id), finding_sort(hash))
}

fn mark_key(payment_id: PaymentId, hash: &ResultHash) -> Item {
    item_key(findings_partition(OPEN), open_finding_sort(payment_id, hash))
}
