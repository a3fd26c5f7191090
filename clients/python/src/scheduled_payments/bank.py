"""The bank: each operation of the API as a method."""

import builtins
import datetime
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, TypeAlias, cast
from uuid import UUID

import httpx

from .answers import MALFORMED, expect
from .arguments import as_date, checked, given, given_date, key_header, segment
from .batches import Result, send_batch
from .endpoints import Endpoints
from .errors import GatewayError
from .generated import AuthenticatedClient
from .generated.api.accounts import (
    amend_payment,
    cancel_payment,
    create_account_payment_batch,
    create_payment,
    get_payment,
    list_account_payments,
    list_payment_versions,
)
from .generated.api.bank import create_payment_batch, get_counts, list_due_payments, list_events
from .generated.api.calendars import get_calendar, list_calendars
from .generated.models import (
    AccountBatchEntry,
    AccountBatchOrder,
    BatchEntry,
    BatchOrder,
    BatchResult,
    Calendar,
    CalendarList,
    CountsOfDates,
    DuePage,
    DuePayment,
    EventPage,
    Payment,
    PaymentOrder,
    PaymentPage,
    PaymentVersion,
    PaymentVersions,
)
from .generated.models import DayCounts as GeneratedDayCounts
from .generated.types import UNSET, Response, Unset
from .pages import Pages, check_moves
from .retries import Retries
from .tokens import Token
from .transport import Transport

# SCHEDULED, PENDING, PROCESSED, FAILED or CANCELLED, or another one that a later release adds.
Status: TypeAlias = str

# API Gateway waits 30 seconds for an answer. After these, the connection is taken for lost.
TIMEOUT_SECONDS = 35.0


@dataclass(frozen=True)
class Created:
    """A payment. `replayed` says that an earlier request created it."""

    payment: Payment
    replayed: bool


@dataclass(frozen=True)
class Amended:
    """A payment as it is now. `replayed` says that an earlier request amended it."""

    payment: Payment
    replayed: bool


@dataclass(frozen=True)
class DayCounts:
    """The numbers of payments of a date, and the exact sums of their amounts by currency, in minor units."""

    date: datetime.date
    by_status: dict[Status, int]
    total: int
    archived: int
    unparsed: int
    sums: dict[str, dict[Status, int]]


class Bank:
    """A bank's API. It can be shared by threads. Close it, or use it in a `with` statement."""

    def __init__(
        self,
        base_url: str,
        token: Token = None,
        *,
        retries: Retries | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self._retries = retries or Retries()
        self._transport = Transport(token, self._retries, timeout)
        # For requests that this class has no method for, synchronous ones only: others would have no token.
        self.generated = AuthenticatedClient(base_url, "").set_httpx_client(
            httpx.Client(base_url=base_url, transport=self._transport, timeout=timeout)
        )
        self.webhook_endpoints = Endpoints(self.generated, self._answer)

    def create(self, account: str, key: str, order: PaymentOrder, *, request_id: str | None = None) -> Created:
        """Creates a payment. Use a new key for each payment; the same key and order return the same payment."""
        with self._answer():
            response = create_payment.sync_detailed(
                segment(account),
                client=self.generated,
                body=checked(order),
                idempotency_key=key_header(key),
                x_request_id=given(request_id),
            )
            return Created(expect(Payment, response), is_replayed(response))

    def create_batch(self, entries: Sequence[BatchEntry], *, request_id: str | None = None) -> list[Result]:
        """Creates up to 100 payments of any accounts. Each entry has its own result, in the same place."""

        def send(some: list[BatchEntry]) -> list[Result]:
            order = BatchOrder(payments=[checked(entry) for entry in some])
            with self._answer():
                response = create_payment_batch.sync_detailed(
                    client=self.generated, body=order, x_request_id=given(request_id)
                )
                return expect(BatchResult, response).results

        return send_batch(send, entries, self._retries)

    def create_account_batch(
        self, account: str, entries: Sequence[AccountBatchEntry], *, request_id: str | None = None
    ) -> list[Result]:
        """Creates up to 100 payments of one account. Each entry has its own result, in the same place."""

        def send(some: list[AccountBatchEntry]) -> list[Result]:
            order = AccountBatchOrder(payments=[checked(entry) for entry in some])
            with self._answer():
                response = create_account_payment_batch.sync_detailed(
                    segment(account), client=self.generated, body=order, x_request_id=given(request_id)
                )
                return expect(BatchResult, response).results

        return send_batch(send, entries, self._retries, account)

    def get(self, account: str, payment_id: str | UUID, *, request_id: str | None = None) -> Payment:
        """Returns a payment with its data."""
        with self._answer():
            response = get_payment.sync_detailed(
                segment(account), cast(UUID, segment(payment_id)), client=self.generated, x_request_id=given(request_id)
            )
            return expect(Payment, response)

    def amend(
        self,
        account: str,
        payment_id: str | UUID,
        key: str,
        order: PaymentOrder,
        *,
        version: int,
        request_id: str | None = None,
    ) -> Amended:
        """Makes a scheduled payment what the order says, if it has this version: that of the payment as you read it.

        Use a new key for each amendment; the same key and order return the payment, whatever version it has by now.
        """
        with self._answer():
            response = amend_payment.sync_detailed(
                segment(account),
                cast(UUID, segment(payment_id)),
                client=self.generated,
                body=checked(order),
                idempotency_key=key_header(key),
                if_match=f'"{version}"',
                x_request_id=given(request_id),
            )
            return Amended(expect(Payment, response), is_replayed(response))

    def versions(
        self, account: str, payment_id: str | UUID, *, with_data: bool = False, request_id: str | None = None
    ) -> builtins.list[PaymentVersion]:
        """Returns what a payment said when it was created, and after each amendment."""
        with self._answer():
            response = list_payment_versions.sync_detailed(
                segment(account),
                cast(UUID, segment(payment_id)),
                client=self.generated,
                include="data" if with_data else UNSET,
                x_request_id=given(request_id),
            )
            return expect(PaymentVersions, response).versions

    def cancel(self, account: str, payment_id: str | UUID, *, request_id: str | None = None) -> Payment:
        """Cancels a scheduled payment. Repeating it is safe."""
        with self._answer():
            response = cancel_payment.sync_detailed(
                segment(account), cast(UUID, segment(payment_id)), client=self.generated, x_request_id=given(request_id)
            )
            return expect(Payment, response)

    def list(
        self,
        account: str,
        *,
        from_: datetime.date | str | None = None,
        to: datetime.date | str | None = None,
        status: Sequence[Status] = (),
        payee: str | None = None,
        reference: str | None = None,
        order: Literal["asc", "desc"] = "asc",
        with_data: bool = False,
        page_size: int = 100,
        request_id: str | None = None,
    ) -> Pages[Payment]:
        """Lists an account's payments by due time: by default all that are coming."""
        first, last = given_date(from_), given_date(to)

        def read(cursor: str | Unset) -> PaymentPage:
            with self._answer():
                response = list_account_payments.sync_detailed(
                    segment(account),
                    client=self.generated,
                    from_=first,
                    to=last,
                    status=list(status) or UNSET,
                    payee_account_id=given(payee),
                    reference=given(reference),
                    order=order,
                    include="data" if with_data else UNSET,
                    limit=page_size,
                    cursor=cursor,
                    x_request_id=given(request_id),
                )
                return expect(PaymentPage, response)

        return Pages(read)

    def find_by_key(
        self, account: str, key: str, *, with_data: bool = False, request_id: str | None = None
    ) -> Payment | None:
        """Returns the payment that was created with this key, or None."""
        with self._answer():
            response = list_account_payments.sync_detailed(
                segment(account),
                client=self.generated,
                idempotency_key=key,
                include="data" if with_data else UNSET,
                order=UNSET,
                limit=UNSET,
                x_request_id=given(request_id),
            )
            return next(iter(expect(PaymentPage, response).payments), None)

    def due(
        self,
        date: datetime.date | str,
        *,
        status: Sequence[Status] = (),
        shard: int | None = None,
        page_size: int = 100,
        request_id: str | None = None,
    ) -> Pages[DuePayment]:
        """Lists the payments of a date, of all accounts."""
        due_date = as_date(date)

        def read(cursor: str | Unset) -> DuePage:
            with self._answer():
                response = list_due_payments.sync_detailed(
                    client=self.generated,
                    due_date=due_date,
                    status=list(status) or UNSET,
                    shard=given(shard),
                    limit=page_size,
                    cursor=cursor,
                    x_request_id=given(request_id),
                )
                return expect(DuePage, response)

        return Pages(read)

    def find_by_transaction(self, transaction_id: str, *, request_id: str | None = None) -> builtins.list[Payment]:
        """Returns the payment with this transaction id; several, if the transaction service used it several times."""
        with self._answer():
            response = list_due_payments.sync_detailed(
                client=self.generated, transaction_id=transaction_id, limit=UNSET, x_request_id=given(request_id)
            )
            return expect(PaymentPage, response).payments

    def counts(
        self,
        from_: datetime.date | str | None = None,
        to: datetime.date | str | None = None,
        *,
        request_id: str | None = None,
    ) -> builtins.list[DayCounts]:
        """Returns the numbers and sums of each date of a range."""
        with self._answer():
            response = get_counts.sync_detailed(
                client=self.generated, from_=given_date(from_), to=given_date(to), x_request_id=given(request_id)
            )
            return [day_counts(day) for day in expect(CountsOfDates, response).counts]

    def events(
        self, cursor: str | None = None, *, limit: int | None = None, request_id: str | None = None
    ) -> EventPage:
        """Returns what happened after a cursor: from the oldest event on, without one, or from now on, if it is `now`.

        Call it again with the page's `next_cursor`.
        """
        with self._answer():
            response = list_events.sync_detailed(
                client=self.generated, cursor=given(cursor), limit=given(limit), x_request_id=given(request_id)
            )
            page = expect(EventPage, response)
        if page.has_more:
            check_moves(cursor, page.next_cursor)
        return page

    def calendars(self, *, request_id: str | None = None) -> builtins.list[Calendar]:
        """Returns the calendars that the bank uses, without their closed dates."""
        with self._answer():
            response = list_calendars.sync_detailed(client=self.generated, x_request_id=given(request_id))
            return expect(CalendarList, response).calendars

    def calendar(self, calendar_id: str, *, request_id: str | None = None) -> Calendar:
        """Returns a calendar with its closed dates."""
        with self._answer():
            response = get_calendar.sync_detailed(
                segment(calendar_id), client=self.generated, x_request_id=given(request_id)
            )
            return expect(Calendar, response)

    @contextmanager
    def _answer(self) -> Iterator[None]:
        """Turns what reading a success raises into a GatewayError."""
        self._transport.forget()
        try:
            yield
        except MALFORMED as error:
            answer = self._transport.last_success()
            if answer is None:
                # Nothing was sent: an argument has another type than it should have.
                raise
            detail = f"Not the answer that openapi.yaml describes: {error!r}: {answer.content!r:.200}"
            raise GatewayError(detail, answer.status_code, answer.headers) from error

    def close(self) -> None:
        """Closes the connections."""
        self.generated.get_httpx_client().close()

    def __enter__(self) -> "Bank":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def day_counts(day: GeneratedDayCounts) -> DayCounts:
    """Returns the counts of a date with its sums as integers."""
    sums = {
        currency: {status: integer(text) for status, text in sums.to_dict().items()}
        for currency, sums in day.sums.additional_properties.items()
    }
    by_status: dict[Status, int] = day.by_status.to_dict()
    return DayCounts(day.date, by_status, day.total, day.archived, day.unparsed, sums)


def integer(text: str) -> int:
    """Returns the integer of a sum."""
    if re.fullmatch(r"-?[0-9]{1,38}", text) is None:
        raise ValueError(f"{text!r} is not a sum")
    return int(text)


def is_replayed(response: Response[Any]) -> bool:
    """Returns whether an earlier request did what this one asks for."""
    return response.headers.get("Idempotent-Replayed") == "true"
