//! The first page of an account's payments, and only its queries.
//!
//! The range is in the future, so all payments are in the hot table. Its index of moved payments is asked first, and then the table.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use payments_machine::client::Request;
use payments_model::{AccountId, BusinessDate, Head};
use payments_store::{AccountFilter, AccountQuery, ListOrder};

use crate::calls::{AT_ONCE, Work, send_groups};
use crate::fixture::{ACCOUNTS, FUTURE, Fixture};

/// The payments of a page, which are a list's default.
const PAGE: u16 = 100;

/// The payments of an account on average: more than a page.
const PER_ACCOUNT: u64 = 200;

/// Creates payments of several accounts.
pub(crate) async fn begin(fixture: &Fixture) -> Result<()> {
    let orders = fixture.orders(u64::from(ACCOUNTS) * PER_ACCOUNT);
    let heads = orders.iter().map(|order| Ok(Head::scheduled(&fixture.details(order)?)));
    fixture.put(&heads.collect::<Result<Vec<_>>>()?).await
}

/// Returns an account for each page: those of the first payments, over and over.
fn accounts(fixture: &Fixture, size: u64) -> Result<Vec<AccountId>> {
    let all: BTreeSet<String> = fixture.first_orders(ACCOUNTS.into()).map(|order| order.account).collect();
    let size = usize::try_from(size)?;
    all.iter().cycle().take(size).map(|account| Ok(account.parse()?)).collect()
}

pub(crate) fn by_handler(fixture: &Fixture, size: u64) -> Result<Work<'_>> {
    let path = |account| format!("/accounts/{account}/payments?from={FUTURE}&limit={PAGE}");
    let requests = accounts(fixture, size)?.iter().map(|account| Ok(Request::get(&path(account)))).collect();
    fixture.answer(requests, AT_ONCE, 200)
}

pub(crate) async fn bare_calls(fixture: &Fixture, size: u64) -> Result<Work<'_>> {
    let from: BusinessDate = FUTURE.parse()?;
    let (from, to) = (fixture.zone.start_of(from), fixture.zone.end_of(BusinessDate::MAX));
    let (filter, order) = (&AccountFilter::default(), ListOrder::default());
    let mut pages = Vec::new();
    for account in &accounts(fixture, size)? {
        let query = AccountQuery { account, from, to, after: None, filter, order, limit: PAGE, with_history: false };
        pages.push(fixture.collector.calls::<2, _>(async |store| store.account_page(&query).await).await?);
    }
    ensure!(!pages.is_empty(), "no pages to read");
    Ok(Box::pin(send_groups(&fixture.client, pages, AT_ONCE)))
}
