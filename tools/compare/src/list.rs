//! The first page of an account's payments, and its query alone. What is asked for lies ahead, so that it
//! is all in the hot table, and one query.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use payments_http::HttpFunction;
use payments_model::{AccountId, BusinessDate, Head};
use payments_store::AccountQuery;

use crate::bank::{ACCOUNTS, Bank, FUTURE};
use crate::calls::send_groups;
use crate::{AT_ONCE, Work};

/// How many payments a page has, as a list has it where nobody says otherwise.
const PAGE: u16 = 100;

/// How many payments an account has on the average: more than a page.
const PER_ACCOUNT: u64 = 200;

/// How many days after its first a list reaches where nobody says otherwise.
const DAYS: u32 = 90;

/// Puts in payments for several accounts.
pub(crate) async fn begin(bank: &Bank) -> Result<()> {
    let orders = bank.orders(u64::from(ACCOUNTS) * PER_ACCOUNT);
    let heads: Vec<Head> =
        orders.iter().map(|order| Ok(Head::scheduled(&bank.details(order)?))).collect::<Result<_>>()?;
    bank.put(&heads).await
}

/// An account for each page; those of the first payments there are, over and over.
fn accounts(bank: &Bank, size: u64) -> Result<Vec<AccountId>> {
    let all: BTreeSet<String> = bank.planned(ACCOUNTS.into()).into_iter().map(|order| order.account).collect();
    let size = usize::try_from(size)?;
    all.iter().cycle().take(size).map(|account| Ok(account.parse()?)).collect()
}

pub(crate) fn by_handler(bank: &Bank, size: u64) -> Result<Work<'_>> {
    let uri = |account| format!("/accounts/{account}/payments?from={FUTURE}&limit={PAGE}");
    let events = accounts(bank, size)?.into_iter().map(|account| bank.event("GET", &uri(account), "", ""));
    let events = events.collect::<Result<_>>()?;
    Ok(Box::pin(bank.ask(HttpFunction::QueryAccount, events, AT_ONCE, 200)))
}

pub(crate) async fn barely(bank: &Bank, size: u64) -> Result<Work<'_>> {
    let from: BusinessDate = FUTURE.parse()?;
    let (from, to) = (bank.zone.start_of(from), bank.zone.end_of(from.plus_days(DAYS)));
    let mut pages = Vec::new();
    for account in &accounts(bank, size)? {
        let query = AccountQuery { account, from, to, after: None, status: None, limit: PAGE, with_history: false };
        pages.push([bank.recorder.call(async |store| store.account_page(&query).await).await?]);
    }
    ensure!(!pages.is_empty(), "nothing to read");
    Ok(Box::pin(send_groups(&bank.client, pages, AT_ONCE)))
}
