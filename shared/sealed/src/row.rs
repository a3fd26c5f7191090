//! A row: a payment as the API shows it, with the versions that had content of their own.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::column::{COLUMNS, Column, Kind};
use crate::error::SealedError;

/// The form of the API's instants.
const INSTANT: &str = "%Y-%m-%dT%H:%M:%SZ";

/// The field of a row that is not a field of the payment: the JSON of its versions.
const VERSIONS: &str = "versions";

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Text(String),
    Long(i64),
    Int(i32),
}

/// A payment of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRow {
    /// The values, in the order of [`COLUMNS`].
    pub(crate) cells: Vec<Option<Cell>>,
}

impl SealedRow {
    /// Creates the row of a payment from the API's JSON of it, with its data. A payment that was amended also has the JSON of its
    /// versions, with their data.
    ///
    /// # Errors
    /// [`SealedError::Field`] if the JSON has a field without a column, lacks one, or has one of another form.
    pub fn new(payment: &str, versions: Option<&str>) -> Result<Self, SealedError> {
        let fault = |field: &str, why| SealedError::Field { field: field.to_owned(), why };
        let parse = |text: &str| serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(text);
        let mut fields = parse(payment).map_err(|_| fault("", "the payment is not a JSON object"))?;
        if let Some(versions) = versions {
            let versions = RawValue::from_string(versions.to_owned());
            fields.insert(VERSIONS.to_owned(), versions.map_err(|_| fault(VERSIONS, "it is not JSON"))?);
        }
        let mut cells = Vec::with_capacity(COLUMNS.len());
        for column in COLUMNS {
            let cell = match fields.remove(column.field) {
                Some(json) => Some(column.cell(json.get()).ok_or_else(|| fault(column.field, "it has another form"))?),
                None if column.is_required => return Err(fault(column.field, "it is missing")),
                None => None,
            };
            cells.push(cell);
        }
        match fields.pop_first() {
            Some((field, _)) => Err(fault(&field, "it has no column")),
            None => Ok(Self { cells }),
        }
    }

    /// The payment's JSON, as the API shows it.
    #[must_use]
    pub fn payment(&self) -> String {
        let fields = COLUMNS.iter().zip(&self.cells).filter(|(column, _)| column.field != VERSIONS);
        let fields = fields.filter_map(|(column, cell)| Some((column, cell.as_ref()?)));
        let fields = fields.map(|(column, cell)| format!("\"{}\":{}", column.field, column.json(cell)));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }

    /// The JSON of the versions, as the API shows them with data. `None` if the payment was never amended.
    #[must_use]
    pub fn versions(&self) -> Option<&str> {
        self.text(VERSIONS)
    }

    /// The text of a field, such as `paymentId` or `data`.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        let place = COLUMNS.iter().position(|column| column.field == field)?;
        if let Some(Cell::Text(text)) = self.cells.get(place)?.as_ref() { Some(text) } else { None }
    }

    /// The number of bytes before compression.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let bytes = |cell: &Option<Cell>| {
            cell.as_ref().map_or(0, |cell| if let Cell::Text(text) = cell { text.len() } else { 8 })
        };
        self.cells.iter().map(bytes).sum()
    }

    /// The start of the SHA-256 of all that the row shows.
    pub(crate) fn checksum(&self) -> i64 {
        let hash = Sha256::new().chain_update(self.payment()).chain_update(b"\n");
        let hash = hash.chain_update(self.versions().unwrap_or_default()).finalize();
        let mut start = [0; 8];
        start.iter_mut().zip(hash).for_each(|(byte, of_hash)| *byte = of_hash);
        i64::from_be_bytes(start)
    }
}

impl Column {
    /// Reads a value of the API's JSON. `None` if the value has another form, or would come back in another one.
    fn cell(&self, json: &str) -> Option<Cell> {
        let text = || serde_json::from_str::<String>(json).ok();
        let cell = match self.kind {
            Kind::Text => Cell::Text(text()?),
            Kind::Json => Cell::Text(json.to_owned()),
            Kind::Long => Cell::Long(json.parse().ok()?),
            Kind::Int => Cell::Int(json.parse().ok()?),
            Kind::Date => {
                let days = text()?.parse::<NaiveDate>().ok()?.signed_duration_since(NaiveDate::default()).num_days();
                Cell::Int(days.try_into().ok()?)
            }
            Kind::Instant => Cell::Long(DateTime::parse_from_rfc3339(&text()?).ok()?.timestamp_micros()),
        };
        (self.json(&cell) == json).then_some(cell)
    }

    /// Writes a value as the API does. A value out of range becomes `null`, which no required field is.
    fn json(&self, cell: &Cell) -> String {
        let quoted = |text: String| serde_json::Value::String(text).to_string();
        let shown = match (self.kind, cell) {
            (Kind::Text, Cell::Text(text)) => Some(quoted(text.clone())),
            (Kind::Json, Cell::Text(text)) => Some(text.clone()),
            (Kind::Long, Cell::Long(number)) => Some(number.to_string()),
            (Kind::Int, Cell::Int(number)) => Some(number.to_string()),
            (Kind::Date, Cell::Int(days)) => {
                let date = NaiveDate::default().checked_add_signed(chrono::TimeDelta::days((*days).into()));
                date.map(|date| quoted(date.to_string()))
            }
            // The API shows whole seconds.
            (Kind::Instant, Cell::Long(micros)) if micros % 1_000_000 == 0 => {
                DateTime::from_timestamp_micros(*micros).map(|at| quoted(at.format(INSTANT).to_string()))
            }
            _ => None,
        };
        shown.unwrap_or_else(|| "null".to_owned())
    }
}
