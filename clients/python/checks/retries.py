"""Checks of what is sent again, and when."""

from scheduled_payments import Bank

from .fake import CREATED, GATEWAY_SLOW, Answer, Fake, problem, throttled
from .suite import check, equal
from .world import error_of, order, problem_of


def same(fake: Fake, times: int) -> None:
    """Fails if not the same request, with the same key, came so many times."""
    equal(len(fake.seen), times)
    for seen in fake.seen:
        equal((seen.path, seen.body), (fake.seen[0].path, fake.seen[0].body))
        equal((seen.headers["idempotency-key"], seen.headers["x-request-id"]), ("key-1", "mine"))


def create(fake: Fake) -> str:
    """Returns the id of the payment that is created in the end."""
    payment = fake.bank.create("acc-1", "key-1", order(data={"n": 1}), request_id="mine").payment
    return str(payment.payment_id)


@check("retry-after")
def retry_after() -> None:
    with Fake(throttled(7), CREATED) as fake:
        equal(create(fake), CREATED.body["paymentId"])
        same(fake, 2)
        equal(fake.pauses, [7.0])
    # Without the header, the problem says it.
    with Fake(Answer(503, problem(503, "unavailable", retryAfterSeconds=3)), CREATED) as fake:
        create(fake)
        equal(fake.pauses, [3.0])


@check("pauses-double")
def pauses_double() -> None:
    with Fake(throttled(2), throttled(2), throttled(2), CREATED) as fake:
        create(fake)
        equal(fake.pauses, [2.0, 4.0, 8.0])
    with Fake(throttled(2), throttled(2), CREATED, random=1.0) as fake:
        create(fake)
        equal(fake.pauses, [2.5, 5.0])


@check("gateway-429")
def gateway_429() -> None:
    with Fake(Answer(429, {"message": "Too Many Requests"}), CREATED) as fake:
        create(fake)
        same(fake, 2)
        equal(fake.pauses, [0.5])


@check("gateway-504")
def gateway_504() -> None:
    with Fake(GATEWAY_SLOW, GATEWAY_SLOW, CREATED) as fake:
        create(fake)
        same(fake, 3)


@check("amend-retried")
def amend_retried() -> None:
    amended = Answer(200, CREATED.body, {"Idempotent-Replayed": "true"})
    with Fake(throttled(1), Answer(cut="before"), amended) as fake:
        wanted = order(data={"n": 1})
        payment_id = CREATED.body["paymentId"]
        answer = fake.bank.amend("acc-1", payment_id, "key-1", wanted, version=7, request_id="mine")
        equal((str(answer.payment.payment_id), answer.replayed), (payment_id, True))
        same(fake, 3)
        equal({seen.headers["if-match"] for seen in fake.seen}, {'"7"'})


@check("cut-connection")
def cut_connection() -> None:
    with Fake(Answer(cut="before"), Answer(201, CREATED.body, cut="within"), CREATED) as fake:
        equal(create(fake), CREATED.body["paymentId"])
        same(fake, 3)
    with Fake(Answer(cut="before"), Answer(cut="before"), attempts=2) as fake:
        error = error_of(create, fake)
        equal((type(error).__name__, error.status), ("NoAnswer", None))


@check("silent-server")
def silent_server() -> None:
    with Fake(Answer(cut="never"), Answer(cut="never"), attempts=2, timeout=0.2) as fake:
        error = error_of(create, fake)
        equal((type(error).__name__, error.status, fake.pauses), ("NoAnswer", None, [0.5]))
        same(fake, 2)
        # Not httpx's own of 5 seconds.
        equal(fake.bank.generated.get_httpx_client().timeout.read, 0.2)


@check("refused-connection")
def refused_connection() -> None:
    with Fake(attempts=2) as fake:
        closed = fake.url
    with Fake(attempts=2) as fake, Bank(closed, retries=fake.retries) as bank:
        error = error_of(bank.calendars)
        equal((type(error).__name__, error.status, fake.pauses), ("NoAnswer", None, [0.5]))
        assert closed.removeprefix("http://") in error.detail and "refused" in error.detail, error.detail


@check("internal-once")
def internal_once() -> None:
    internal = Answer(500, problem(500, "internal", requestId="r-1"))
    with Fake(internal, CREATED) as fake:
        create(fake)
        same(fake, 2)
    with Fake(internal, GATEWAY_SLOW, Answer(500, {"message": "Internal Server Error"}), CREATED) as fake:
        equal(error_of(create, fake).status, 500)
        same(fake, 3)


@check("no-retry-of-4xx")
def no_retry_of_4xx() -> None:
    for status in (400, 401, 403, 404, 409, 412, 413, 415, 422, 428):
        with Fake(Answer(status, problem(status, "some")), CREATED) as fake:
            equal(problem_of(create, fake).status, status)
            same(fake, 1)


@check("attempts-bounded")
def attempts_bounded() -> None:
    with Fake(*[throttled(1)] * 4, attempts=3) as fake:
        equal(problem_of(create, fake).kind, "throttled")
        same(fake, 3)
        equal(fake.pauses, [1.0, 2.0])


@check("time-bounded")
def time_bounded() -> None:
    with Fake(*[throttled(10)] * 4, total_seconds=60.0) as fake:
        equal(problem_of(create, fake).retry_after, 10.0)
        same(fake, 3)
        equal(fake.pauses, [10.0, 20.0])


@check("gateway-error")
def gateway_error() -> None:
    for status, body, message in (
        (413, {"message": "Request Entity Too Large"}, "Request Entity Too Large"),
        (502, "<p>", "<p>"),
    ):
        with Fake(Answer(status, body)) as fake:
            error = error_of(create, fake)
            equal((type(error).__name__, error.status, error.detail), ("GatewayError", status, message))
            equal(error.request_id, None)
