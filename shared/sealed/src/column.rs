//! The columns of a part: the API's fields in its order, in snake case.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

/// The form of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A JSON string's text.
    Text,
    /// JSON as it came or as the API shows it, byte for byte.
    Json,
    /// A whole number of 64 bits.
    Long,
    /// A whole number of 32 bits.
    Int,
    /// A date.
    Date,
    /// An instant in microseconds, in UTC.
    Instant,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name in the file.
    pub name: &'static str,
    /// Its field in the API's JSON.
    pub field: &'static str,
    /// The form of its values.
    pub kind: Kind,
    /// Whether each payment has a value.
    pub is_required: bool,
    /// Whether few values repeat, so that the file has a dictionary of them.
    pub repeats: bool,
    /// Whether the file has the least and the greatest value. Texts that clients write have none, so that no footer shows them.
    pub has_bounds: bool,
}

const fn column(name: &'static str, field: &'static str, kind: Kind) -> Column {
    Column { name, field, kind, is_required: true, repeats: false, has_bounds: true }
}

impl Column {
    const fn optional(self) -> Self {
        Self { is_required: false, ..self }
    }

    const fn repeated(self) -> Self {
        Self { repeats: true, ..self }
    }

    const fn unbounded(self) -> Self {
        Self { has_bounds: false, ..self }
    }
}

/// The columns of payments. New columns are optional, and come last. A release reads a new one before another release writes it: the
/// checksum of a row is of all columns.
pub const COLUMNS: [Column; 24] = [
    column("payment_id", "paymentId", Kind::Text).unbounded(),
    column("account_id", "accountId", Kind::Text).repeated(),
    column("payee_account_id", "payeeAccountId", Kind::Text).repeated().unbounded(),
    column("amount_minor", "amountMinor", Kind::Long),
    column("currency", "currency", Kind::Text).repeated(),
    column("scheduled_for", "scheduledFor", Kind::Text).repeated().unbounded(),
    column("date_rule", "dateRule", Kind::Text).optional().repeated(),
    column("reference", "reference", Kind::Text).optional().unbounded(),
    column("due_at", "dueAt", Kind::Instant).repeated(),
    column("due_date", "dueDate", Kind::Date).repeated(),
    column("move_reason", "moveReason", Kind::Text).optional().repeated(),
    column("calendar_id", "calendarId", Kind::Text).optional().repeated(),
    column("calendar_version", "calendarVersion", Kind::Text).optional().repeated(),
    column("status", "status", Kind::Text).repeated(),
    column("version", "version", Kind::Int).repeated(),
    column("created_at", "createdAt", Kind::Instant),
    column("updated_at", "updatedAt", Kind::Instant),
    column("trail", "trail", Kind::Json).unbounded(),
    column("transaction_id", "transactionId", Kind::Text).optional().unbounded(),
    column("failure_code", "failureCode", Kind::Text).optional().repeated(),
    column("failure_reason", "failureReason", Kind::Text).optional().repeated().unbounded(),
    column("settled_at", "settledAt", Kind::Instant).optional(),
    column("data", "data", Kind::Json).optional().unbounded(),
    column("versions", "versions", Kind::Json).optional().unbounded(),
];

/// The column with the start of each row's SHA-256, by which a changed row is noticed.
pub(crate) const CHECKSUM: Column = column("checksum", "", Kind::Long).unbounded();

impl Kind {
    fn physical(self) -> Physical {
        match self {
            Self::Text | Self::Json => Physical::BYTE_ARRAY,
            Self::Long | Self::Instant => Physical::INT64,
            Self::Int | Self::Date => Physical::INT32,
        }
    }

    fn logical(self) -> Option<LogicalType> {
        match self {
            Self::Text | Self::Json => Some(LogicalType::String),
            Self::Long | Self::Int => None,
            Self::Date => Some(LogicalType::Date),
            Self::Instant => Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
        }
    }
}

/// The columns as they are in the file.
pub(crate) fn written() -> impl Iterator<Item = Column> {
    COLUMNS.into_iter().chain([CHECKSUM])
}

/// The schema of the file.
pub(crate) fn schema() -> Result<TypePtr, ParquetError> {
    let field = |column: Column| {
        let repetition = if column.is_required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let field = Type::primitive_type_builder(column.name, column.kind.physical()).with_repetition(repetition);
        let field = field.with_logical_type(column.kind.logical());
        Ok(Arc::new(field.build()?))
    };
    let fields = written().map(field).collect::<Result<_, ParquetError>>()?;
    Ok(Arc::new(Type::group_type_builder("payment").with_fields(fields).build()?))
}
