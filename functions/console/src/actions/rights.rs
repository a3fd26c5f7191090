//! The rights of those who act.

use payments_http::{Problem, ProblemKind, Request, Scope};

use crate::function::Console;

impl Console {
    /// Operators who act also see the console's views, and have a token of the client for that.
    /// Machines use the scopes of the API.
    pub(super) fn require_rights(&self, request: &Request<'_>) -> Result<(), Problem> {
        let refused = |detail: &str| Err(Problem::new(ProblemKind::Forbidden, detail));
        // A browser says where a request comes from. On one machine without tokens, another site could send one.
        if request.is_of_another_site() {
            return refused("This comes from another site; act in the console itself.");
        }
        if !request.has(Scope::Inspect) {
            return refused("The token lacks the scope payments/inspect; sign in to act.");
        }
        let Some(sign_in) = &self.config.sign_in else { return Ok(()) };
        match &sign_in.operate_client_id {
            None => refused(
                "This console only shows; deploy with the parameter ConsoleOperateClientId to let operators act.",
            ),
            Some(client) if request.is_of_client(client) => Ok(()),
            Some(_) => refused("The token is not of the client that acts in the console; sign in to act."),
        }
    }
}
