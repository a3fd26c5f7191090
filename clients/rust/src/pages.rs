//! A list of all pages.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::vec::IntoIter;

use futures::Stream;
use futures::future::BoxFuture;
use serde::Deserialize;

use crate::errors::Error;

/// A page, as the bank sends it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page<T> {
    pub(crate) payments: Vec<T>,
    next_cursor: Option<String>,
    unreadable: Option<Unreadable>,
}

/// The payments of a page that the bank could not read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Unreadable {
    count: u64,
    payment_ids: Vec<String>,
}

type Reading<T> = BoxFuture<'static, Result<Page<T>, Error>>;

/// The payments of a list, read page by page while you take them: a stream, or [`try_next`](Self::try_next).
///
/// After an error, the next call gets the same page.
pub struct Pages<T> {
    read: Box<dyn Fn(Option<String>) -> Reading<T> + Send + Sync>,
    state: State<T>,
    payments: IntoIter<T>,
    unreadable: u64,
    unreadable_ids: Vec<String>,
}

enum State<T> {
    /// The page at this cursor is next; without a cursor, the first.
    At(Option<String>),
    /// The page at this cursor is being read.
    Reading(Option<String>, Reading<T>),
    End,
}

impl<T> Pages<T> {
    pub(crate) fn new(read: impl Fn(Option<String>) -> Reading<T> + Send + Sync + 'static) -> Self {
        let payments = Vec::new().into_iter();
        Self { read: Box::new(read), state: State::At(None), payments, unreadable: 0, unreadable_ids: Vec::new() }
    }

    /// Returns the number of payments of the pages so far that the bank could not read. Report them.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Returns the ids of those payments that the bank could not read, as far as it knows them.
    pub fn unreadable_ids(&self) -> &[String] {
        &self.unreadable_ids
    }

    fn take(&mut self, page: Page<T>) {
        self.payments = page.payments.into_iter();
        self.state = page.next_cursor.map_or(State::End, |cursor| State::At(Some(cursor)));
        if let Some(unreadable) = page.unreadable {
            self.unreadable = self.unreadable.saturating_add(unreadable.count);
            self.unreadable_ids.extend(unreadable.payment_ids);
        }
    }
}

/// Checks that a page does not name itself as the next one: its reader would never end.
pub(crate) fn check_moves(cursor: Option<&str>, following: Option<&str>) -> Result<(), Error> {
    match (cursor, following) {
        (Some(cursor), Some(following)) if cursor == following => {
            Err(Error::contradiction(format!("The page at the cursor {cursor:?} has the same cursor as its next one.")))
        }
        _ => Ok(()),
    }
}

impl<T: Unpin> Pages<T> {
    /// Returns the next payment, or `None` after the last.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub async fn try_next(&mut self) -> Result<Option<T>, Error> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }

    /// Returns all payments that are left.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub async fn all(&mut self) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        while let Some(payment) = self.try_next().await? {
            all.push(payment);
        }
        Ok(all)
    }
}

impl<T: Unpin> Stream for Pages<T> {
    type Item = Result<T, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let pages = self.get_mut();
        loop {
            if let Some(payment) = pages.payments.next() {
                return Poll::Ready(Some(Ok(payment)));
            }
            match &mut pages.state {
                State::End => return Poll::Ready(None),
                State::At(cursor) => {
                    let reading = (pages.read)(cursor.clone());
                    pages.state = State::Reading(cursor.take(), reading);
                }
                State::Reading(cursor, reading) => {
                    let read = ready!(reading.as_mut().poll(context));
                    let read = read.and_then(|page| {
                        check_moves(cursor.as_deref(), page.next_cursor.as_deref())?;
                        Ok(page)
                    });
                    match read {
                        Ok(page) => pages.take(page),
                        Err(error) => {
                            pages.state = State::At(cursor.take());
                            return Poll::Ready(Some(Err(error)));
                        }
                    }
                }
            }
        }
    }
}

impl<T> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unreadable, unreadable_ids, .. } = self;
        let mut shown = f.debug_struct("Pages");
        shown.field("unreadable", unreadable).field("unreadable_ids", unreadable_ids).finish_non_exhaustive()
    }
}
