//! Ids of a file, which an operator has put beside the plans: more than an invocation takes.

use std::borrow::Cow;

use object_store::{Error, ObjectStoreExt as _};
use payments_files::ids_path;
use payments_model::PaymentId;
use payments_model::undo::{MAX_FILE_IDS, Selector};

use crate::error::UndoError;
use crate::function::Undo;

/// The most bytes of a file that is read: an id with the end of its line has at most 38.
const MAX_BYTES: u64 = 38 * MAX_FILE_IDS as u64;

impl Undo {
    /// The selection, with the ids of its file in the file's place.
    pub(crate) async fn with_ids<'s>(&self, select: &'s Selector) -> Result<Cow<'s, Selector>, UndoError> {
        let Selector::File(name) = select else { return Ok(Cow::Borrowed(select)) };
        let path = ids_path(name);
        let file = match self.files.get(&path).await {
            Ok(file) => file,
            Err(Error::NotFound { .. }) => return Err(UndoError::NoIds(path.to_string())),
            Err(error) => return Err(error.into()),
        };
        if file.meta.size > MAX_BYTES {
            return Err(UndoError::TooManyIds(path.to_string()));
        }
        let ids = parse(&file.bytes().await?).map_err(|line| UndoError::NotId(path.to_string(), line))?;
        if ids.len() > MAX_FILE_IDS {
            return Err(UndoError::TooManyIds(path.to_string()));
        }
        Ok(Cow::Owned(Selector::Ids(ids)))
    }
}

/// The ids, one a line; or the number of the first line that is not one. Empty lines are skipped.
fn parse(bytes: &[u8]) -> Result<Vec<PaymentId>, usize> {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).enumerate();
    let ids = lines
        .filter(|(_, line)| !line.is_empty())
        .map(|(place, line)| std::str::from_utf8(line).ok().and_then(|line| line.parse().ok()).ok_or(place + 1));
    ids.collect::<Result<Vec<_>, _>>().and_then(|ids| if ids.is_empty() { Err(1) } else { Ok(ids) })
}
