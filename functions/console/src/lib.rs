//! `console`: shows the bank to its operators, in a browser.
//!
//! The page, its script and its style are public and show nothing of the bank. Each view is a part of the page, which the script
//! gets with the operator's token. Views only read, and a sample of a queue counts as a receive there. Actions are confirmed and kept in an audit trail.
//!
//! | module | holds |
//! |---|---|
//! | `actions` | what operators do: preview, confirmation, audit trail |
//! | `shell` | the page, its headers, script and style |
//! | `html` | what several views show: amounts, times, links |
//! | `operations` | what operators reach besides the tables: functions, queues, reports |
//! | `views` | one module for each view |

mod actions;
mod config;
mod function;
mod html;
mod operations;
mod resources;
mod shell;
mod views;

use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use payments_http::{Answer, Problem, ProblemKind, Request, Route, serve};

pub use config::{Config, Paused, SignIn};
pub use function::Console;
use function::no_such_page;
#[cfg(feature = "aws")]
pub use operations::AwsOperations;
pub use operations::{
    BankQueue, LastMove, MoveBack, OperationError, Operations, QueueState, REPORTS, ReportFile, SampledMessage,
    Startable,
};
pub use resources::Resources;

impl Console {
    /// Answers one request.
    pub async fn handle(&self, event: ApiGatewayV2httpRequest) -> ApiGatewayV2httpResponse {
        let mut response = serve(&event, &self.config.access, |request| self.answer(request)).await;
        // Also on a problem: a browser shows it in no frame and runs nothing in it.
        response.headers.extend(shell::headers(self.config.sign_in.as_ref()));
        response
    }

    async fn answer(&self, request: Request<'_>) -> Result<Answer, Problem> {
        match request.route() {
            _ if !self.config.is_on => {
                let detail = "The console is off; deploy with the parameter ConsoleClientId to switch it on.";
                Err(Problem::new(ProblemKind::NoSuchRoute, detail))
            }
            Route::GetConsole => Ok(Answer::html(200, shell::page(self.config.sign_in.as_ref()).into_string())),
            Route::GetConsoleAsset => {
                request.query(&[])?;
                shell::asset(request.console_name()).ok_or_else(no_such_page)
            }
            Route::GetConsoleView => {
                let view = views::named(request.console_name()).ok_or_else(no_such_page)?;
                Ok(Answer::html(200, self.view(view, &request).await?.into_string()))
            }
            Route::PostConsoleAction => self.act(&request).await,
            _ => Err(Problem::wrong_function()),
        }
    }
}
