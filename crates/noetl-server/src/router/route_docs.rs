//! Routes whose OpenAPI description is built on demand.
//!
//! The OpenAPI document is generated from the handlers' attributes. As objects it uses far more
//! memory than as text, and building it touches much of the program. The server therefore neither
//! waits for it at startup nor stores it while idle.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::MethodRouter;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::app::App;

pub(crate) struct DocumentedRoute {
    pub(crate) path: String,
    pub(crate) serve: MethodRouter<App>,
    pub(crate) describe: fn() -> UtoipaMethodRouter<App>,
}

/// Creates a [`DocumentedRoute`] from the handlers of one path. Their attributes must all name that path.
macro_rules! routes {
    ($first:path $(, $more:path)* $(,)?) => {{
        let path = utoipa_axum::paste! { utoipa_axum::routes!(@path [path()] of $first) };
        let serve = $crate::router::route_docs::routes!(@on $first, axum::routing::MethodRouter::new());
        $(let serve = $crate::router::route_docs::routes!(@on $more, serve);)*
        $crate::router::route_docs::DocumentedRoute {
            path,
            serve,
            describe: || utoipa_axum::routes!($first $(, $more)*),
        }
    }};
    (@on $handler:path, $serve:expr) => {{
        use utoipa_axum::PathItemExt as _;
        let methods = utoipa_axum::paste! { utoipa_axum::routes!(@path [methods()] of $handler) };
        methods
            .iter()
            .fold($serve, |serve, method| serve.on(method.to_method_filter(), $handler))
    }};
}
pub(crate) use routes;

/// Routes, in the order of the OpenAPI document.
#[derive(Default)]
pub(crate) struct Routes(Vec<DocumentedRoute>);

impl Routes {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn routes(mut self, described: DocumentedRoute) -> Self {
        self.0.push(described);
        self
    }

    pub(crate) fn merge(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Sets the body limit of all routes.
    pub(crate) fn layer(mut self, limit: DefaultBodyLimit) -> Self {
        for described in &mut self.0 {
            described.serve = std::mem::take(&mut described.serve).layer(limit);
        }
        self
    }

    /// Builds a router that serves all routes.
    pub(crate) fn serve(self) -> Router<App> {
        self.0
            .into_iter()
            .fold(Router::new(), |router, described| router.route(&described.path, described.serve))
    }

    /// Adds the descriptions of the routes to an OpenAPI document.
    pub(crate) fn describe(&self, into: OpenApi) -> OpenApi {
        let described =
            self.0.iter().fold(OpenApiRouter::with_openapi(into), |router, described| {
                router.routes((described.describe)())
            });
        described.into_openapi()
    }
}
