//! Routes that are described when somebody asks.
//!
//! What stands at the handlers makes the OpenAPI document. As objects it takes far more memory than as
//! text, and to make it touches much of the program: a start need not wait for that, nor an idle
//! server hold it.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::MethodRouter;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::app::App;

/// The handlers of one path.
pub(crate) struct Described {
    pub(crate) path: String,
    pub(crate) serve: MethodRouter<App>,
    pub(crate) describe: fn() -> UtoipaMethodRouter<App>,
}

/// The handlers of one path as [`Described`], which are of one path as their attributes say.
macro_rules! routes {
    ($first:path $(, $more:path)* $(,)?) => {{
        let path = utoipa_axum::paste! { utoipa_axum::routes!(@path [path()] of $first) };
        let serve = $crate::router::described::routes!(@on $first, axum::routing::MethodRouter::new());
        $(let serve = $crate::router::described::routes!(@on $more, serve);)*
        $crate::router::described::Described {
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

/// Routes, in the order they are shown.
#[derive(Default)]
pub(crate) struct Routes(Vec<Described>);

impl Routes {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn routes(mut self, described: Described) -> Self {
        self.0.push(described);
        self
    }

    pub(crate) fn merge(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// The same, for bodies of this size.
    pub(crate) fn layer(mut self, limit: DefaultBodyLimit) -> Self {
        for described in &mut self.0 {
            described.serve = std::mem::take(&mut described.serve).layer(limit);
        }
        self
    }

    /// To be served.
    pub(crate) fn serve(self) -> Router<App> {
        self.0
            .into_iter()
            .fold(Router::new(), |router, described| router.route(&described.path, described.serve))
    }

    /// The document of them, as far as it is not in this one.
    pub(crate) fn describe(&self, into: OpenApi) -> OpenApi {
        let described =
            self.0.iter().fold(OpenApiRouter::with_openapi(into), |router, described| {
                router.routes((described.describe)())
            });
        described.into_openapi()
    }
}
