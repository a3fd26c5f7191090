"""The webhook endpoints of a bank: each operation of the API as a method."""

import builtins
import datetime
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http import HTTPStatus

from .answers import expect
from .arguments import given, segment
from .generated import AuthenticatedClient
from .generated.api.webhooks import (
    delete_webhook_endpoint,
    get_webhook_endpoint,
    get_webhook_secret,
    list_webhook_endpoints,
    put_webhook_endpoint,
    replay_webhook_events,
    rotate_webhook_secret,
    skip_webhook_event,
    test_webhook_endpoint,
)
from .generated.models import (
    DeletedWebhookEndpoint,
    WebhookEndpoint,
    WebhookEndpointOrder,
    WebhookEndpoints,
    WebhookReplay,
    WebhookRotation,
    WebhookSecrets,
    WebhookSkip,
)
from .generated.types import Unset


@dataclass(frozen=True)
class PutEndpoint:
    """An endpoint as it is now. `created` says that the request created it."""

    endpoint: WebhookEndpoint
    created: bool


@dataclass(frozen=True)
class EndpointSecret:
    """A secret that signs messages, until a time if it is not the newest. Give its text to `verify`; never log it."""

    generation: int
    secret: str = field(repr=False)
    until: datetime.datetime | None


class Endpoints:
    """The webhook endpoints of a bank. Writing needs the scope `payments/webhooks`."""

    def __init__(self, client: AuthenticatedClient, answer: Callable[[], AbstractContextManager[None]]) -> None:
        self._client = client
        self._answer = answer

    def list(self, *, request_id: str | None = None) -> builtins.list[WebhookEndpoint]:
        """Returns all endpoints, at most 20, in the order of their ids."""
        with self._answer():
            response = list_webhook_endpoints.sync_detailed(client=self._client, x_request_id=given(request_id))
            return expect(WebhookEndpoints, response).endpoints

    def get(self, endpoint_id: str, *, request_id: str | None = None) -> WebhookEndpoint:
        """Returns an endpoint with its last deliveries."""
        with self._answer():
            response = get_webhook_endpoint.sync_detailed(
                segment(endpoint_id), client=self._client, x_request_id=given(request_id)
            )
            return expect(WebhookEndpoint, response)

    def put(self, endpoint_id: str, order: WebhookEndpointOrder, *, request_id: str | None = None) -> PutEndpoint:
        """Creates an endpoint, or changes it: `cursor` counts for a new one alone. Repeating it is safe."""
        with self._answer():
            response = put_webhook_endpoint.sync_detailed(
                segment(endpoint_id), client=self._client, body=order, x_request_id=given(request_id)
            )
            return PutEndpoint(expect(WebhookEndpoint, response), response.status_code == HTTPStatus.CREATED)

    def delete(self, endpoint_id: str, *, request_id: str | None = None) -> None:
        """Deletes an endpoint. After a lost answer, the error can be `no-such-endpoint`."""
        with self._answer():
            response = delete_webhook_endpoint.sync_detailed(
                segment(endpoint_id), client=self._client, x_request_id=given(request_id)
            )
            # Of an endpoint whose stored items were damaged, nothing but the id is known.
            expect(DeletedWebhookEndpoint, response)

    def secrets(self, endpoint_id: str, *, request_id: str | None = None) -> builtins.list[EndpointSecret]:
        """Returns the secrets that sign an endpoint's messages now, the newest first."""
        with self._answer():
            response = get_webhook_secret.sync_detailed(
                segment(endpoint_id), client=self._client, x_request_id=given(request_id)
            )
            return [
                EndpointSecret(one.generation, one.secret, None if isinstance(one.until, Unset) else one.until)
                for one in expect(WebhookSecrets, response).secrets
            ]

    def test(self, endpoint_id: str, *, request_id: str | None = None) -> WebhookEndpoint:
        """Asks for a message with one event of the type `webhook.test`, within a minute."""
        with self._answer():
            response = test_webhook_endpoint.sync_detailed(
                segment(endpoint_id), client=self._client, x_request_id=given(request_id)
            )
            return expect(WebhookEndpoint, response)

    def replay(self, endpoint_id: str, cursor: str, *, request_id: str | None = None) -> WebhookEndpoint:
        """Moves an endpoint to a cursor of the log: the events after it are delivered again."""
        with self._answer():
            response = replay_webhook_events.sync_detailed(
                segment(endpoint_id), client=self._client, body=WebhookReplay(cursor), x_request_id=given(request_id)
            )
            return expect(WebhookEndpoint, response)

    def skip(self, endpoint_id: str, event_id: str, *, request_id: str | None = None) -> WebhookEndpoint:
        """Skips the event that an endpoint does not accept. Repeating it is safe."""
        with self._answer():
            response = skip_webhook_event.sync_detailed(
                segment(endpoint_id), client=self._client, body=WebhookSkip(event_id), x_request_id=given(request_id)
            )
            return expect(WebhookEndpoint, response)

    def rotate(self, endpoint_id: str, generation: int, *, request_id: str | None = None) -> WebhookEndpoint:
        """Begins a new secret, of the next generation. The one before also signs for a day. Repeating it is safe."""
        with self._answer():
            response = rotate_webhook_secret.sync_detailed(
                segment(endpoint_id),
                client=self._client,
                body=WebhookRotation(generation),
                x_request_id=given(request_id),
            )
            return expect(WebhookEndpoint, response)
