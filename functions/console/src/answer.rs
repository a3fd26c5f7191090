//! The answer to a request: the page, an asset, a view or an action.

use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use payments_http::{Answer, Problem, ProblemKind, Request, Route, serve};

use crate::function::{Console, no_such_page};
use crate::{shell, views};

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
            Route::PostConsoleApproval => self.decide(&request).await,
            _ => Err(Problem::wrong_function()),
        }
    }
}
