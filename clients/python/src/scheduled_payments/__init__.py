"""A client of the API for scheduled payments: typed, with safe retries and exact numbers."""

from .bank import Amended, Bank, Created, DayCounts, Status
from .errors import BankError, Fault, GatewayError, NoAnswer, ProblemError
from .generated.models import (
    AccountBatchEntry,
    BatchEntry,
    Calendar,
    DuePayment,
    EntryCreated,
    EntryProblem,
    Payment,
    PaymentOrder,
    PaymentVersion,
    TrailEntry,
)
from .generated.types import UNSET, Unset
from .pages import Pages
from .retries import Retries
from .tokens import ClientCredentials

__all__ = [
    "UNSET",
    "AccountBatchEntry",
    "Amended",
    "Bank",
    "BankError",
    "BatchEntry",
    "Calendar",
    "ClientCredentials",
    "Created",
    "DayCounts",
    "DuePayment",
    "EntryCreated",
    "EntryProblem",
    "Fault",
    "GatewayError",
    "NoAnswer",
    "Pages",
    "Payment",
    "PaymentOrder",
    "PaymentVersion",
    "ProblemError",
    "Retries",
    "Status",
    "TrailEntry",
    "Unset",
]
