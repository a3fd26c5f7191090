"""A client of the API for scheduled payments: typed, with safe retries and exact numbers."""

from .bank import Amended, Bank, Created, DayCounts, Status
from .endpoints import EndpointSecret, PutEndpoint
from .errors import BankError, Fault, GatewayError, NoAnswer, ProblemError
from .generated.models import (
    AccountBatchEntry,
    Actor,
    BatchEntry,
    Calendar,
    DuePayment,
    EntryCreated,
    EntryProblem,
    Event,
    EventPage,
    Payment,
    PaymentOrder,
    PaymentVersion,
    PreviousFields,
    TrailEntry,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookEndpointOrder,
)
from .generated.types import UNSET, Unset
from .pages import Pages
from .retries import Retries
from .shown import show_models
from .tokens import ClientCredentials
from .webhooks import WebhookError, WebhookErrorKind, verify

show_models()

__all__ = [
    "UNSET",
    "AccountBatchEntry",
    "Actor",
    "Amended",
    "Bank",
    "BankError",
    "BatchEntry",
    "Calendar",
    "ClientCredentials",
    "Created",
    "DayCounts",
    "DuePayment",
    "EndpointSecret",
    "EntryCreated",
    "EntryProblem",
    "Event",
    "EventPage",
    "Fault",
    "GatewayError",
    "NoAnswer",
    "Pages",
    "Payment",
    "PaymentOrder",
    "PaymentVersion",
    "PreviousFields",
    "ProblemError",
    "PutEndpoint",
    "Retries",
    "Status",
    "TrailEntry",
    "Unset",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookEndpointOrder",
    "WebhookError",
    "WebhookErrorKind",
    "verify",
]
