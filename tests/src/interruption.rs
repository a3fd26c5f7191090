//! Something that happens in the middle of a run.

use payments_machine::{Call, Fate, Recorder};

/// Returns a recorder: before each call that `when` selects, something happens, and if it fails, so does the call. The
/// test's runtime must have several threads.
pub fn interrupted<Done: Future<Output = anyhow::Result<()>>>(
    when: impl Fn(&Call) -> bool + Send + Sync + 'static,
    happens: impl Fn() -> Done + Send + Sync + 'static,
) -> Recorder {
    let handle = tokio::runtime::Handle::current();
    Recorder::with_fate(move |call| {
        if !when(call) {
            return Fate::Pass;
        }
        match tokio::task::block_in_place(|| handle.block_on(happens())) {
            Ok(()) => Fate::Pass,
            Err(_) => Fate::Refuse(400, "AccessDeniedException"),
        }
    })
}
