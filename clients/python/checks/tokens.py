"""Checks of access tokens."""

from scheduled_payments import Bank, ClientCredentials, Retries

from .fake import CREATED, GATEWAY_SLOW, PAYMENT, Answer, Fake
from .suite import check, equal
from .world import TODAY, TOKEN_URL, URL, error_of, order, problem_of


def token(text: str, seconds: int) -> Answer:
    """Returns an issuer's answer."""
    return Answer(body={"access_token": text, "expires_in": seconds, "token_type": "Bearer"})


@check("token-required")
def token_required() -> None:
    with Bank(URL) as bank:
        error = error_of(bank.get, "acc-1", PAYMENT["paymentId"])
        equal(error.status, 401)


@check("forbidden")
def forbidden() -> None:
    with Bank(URL, ClientCredentials("id", "secret", TOKEN_URL, "payments/read")) as bank:
        equal(list(bank.list("py-none")), [])
        error = problem_of(bank.counts, TODAY, TODAY)
        equal((error.status, error.kind), (403, "forbidden"))
        assert "payments/inspect" in error.detail


@check("credentials")
def credentials() -> None:
    with Bank(URL, ClientCredentials("id", "secret", TOKEN_URL)) as bank:
        equal(len(bank.counts(TODAY, TODAY)), 1)


@check("token-callback")
def token_callback() -> None:
    texts = iter(["one", "two"])
    with Fake(GATEWAY_SLOW, CREATED, token=lambda: next(texts)) as fake:
        fake.bank.create("acc-1", "key-1", order())
        equal([seen.headers["authorization"] for seen in fake.seen], ["Bearer one", "Bearer two"])


@check("token-renewed")
def token_renewed() -> None:
    with Fake(GATEWAY_SLOW, token("one", 3600), CREATED, CREATED, token("two", 3600), CREATED) as fake:
        issuer = ClientCredentials("id", "pass:word", f"{fake.url}/token", "payments/read a", clock=lambda: fake.now)
        plan = Retries(wait=fake.pauses.append, random=lambda: 0.0)
        with Bank(fake.url, issuer, retries=plan) as bank:
            for fake.now in (0.0, 3539.0, 3540.0):
                bank.create("acc-1", "key-1", order())
        used = [seen.headers["authorization"] for seen in fake.seen if seen.path != "/token"]
        equal(used, ["Bearer one", "Bearer one", "Bearer two"])
        asked = [seen for seen in fake.seen if seen.path == "/token"]
        equal(asked[0].body, "grant_type=client_credentials&scope=payments%2Fread+a")
        equal((len(asked), asked[0].headers["authorization"]), (3, "Basic aWQ6cGFzczp3b3Jk"))
        assert "pass" not in repr(issuer)
