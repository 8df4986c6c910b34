//! One API call: the request, and the type of its response.

use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use noetl_model::Value;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ClientError;

/// An API call whose response body decodes as `T`.
pub struct ApiCall<T> {
    method: Method,
    segments: Vec<String>,
    query: Vec<(&'static str, String)>,
    /// Body and its media type.
    body: Option<(Bytes, &'static str)>,
    also: Option<StatusCode>,
    reads: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for ApiCall<T> {
    // Omits the body, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} /{}", self.method, self.segments.join("/"))
    }
}

impl<T> ApiCall<T> {
    pub(super) fn get<const N: usize>(segments: [&str; N]) -> Self {
        Self::new(Method::GET, segments)
    }

    pub(super) fn delete<const N: usize>(segments: [&str; N]) -> Self {
        Self::new(Method::DELETE, segments)
    }

    pub(super) fn post<const N: usize>(segments: [&str; N], body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).expect("requests have text keys only");
        let content = Some((body.into(), "application/json"));
        Self { body: content, ..Self::new(Method::POST, segments) }
    }

    /// Builds a `PUT` call with a binary body.
    pub(super) fn put<const N: usize>(segments: [&str; N], body: Bytes) -> Self {
        let content = Some((body, "application/octet-stream"));
        Self { body: content, ..Self::new(Method::PUT, segments) }
    }

    fn new<const N: usize>(method: Method, segments: [&str; N]) -> Self {
        Self {
            method,
            segments: segments.into_iter().map(str::to_owned).collect(),
            query: Vec::new(),
            body: None,
            also: None,
            reads: PhantomData,
        }
    }

    /// Adds a query parameter if `value` is `Some`.
    pub(super) fn with(mut self, name: &'static str, value: Option<impl fmt::Display>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Accepts `status` as a response, in addition to success statuses.
    pub(super) fn also(mut self, status: StatusCode) -> Self {
        self.also = Some(status);
        self
    }

    /// Returns the size of the request body in bytes.
    pub(super) fn size(&self) -> usize {
        self.body.as_ref().map_or(0, |(body, _)| body.len())
    }

    pub(super) fn also_answers(&self, status: StatusCode) -> bool {
        self.also == Some(status)
    }

    pub(super) fn request(
        &self,
        http: &reqwest::Client,
        base: &Url,
    ) -> Result<RequestBuilder, ClientError> {
        let mut url = base.clone();
        // Escapes each segment, so a slash in a name doesn't split the path.
        match url.path_segments_mut() {
            Ok(mut path) => path.pop_if_empty().extend(&self.segments),
            Err(()) => return Err(ClientError::Address(base.to_string())),
        };
        let mut request = http.request(self.method.clone(), url);
        if !self.query.is_empty() {
            request = request.query(&self.query);
        }
        Ok(match &self.body {
            Some((body, kind)) => request.header(CONTENT_TYPE, *kind).body(body.clone()),
            None => request,
        })
    }
}

/// Decoded response of the control plane.
#[derive(Debug, Clone)]
pub struct Response<T> {
    /// Response body decoded as `T`.
    pub value: T,
    /// Response body as JSON, including fields that `T` doesn't have.
    pub body: Value,
    /// Value of the HTTP `Date` header.
    pub date: Option<String>,
}

impl<T: DeserializeOwned> Response<T> {
    pub(super) fn read(body: Value, date: Option<String>) -> Result<Self, ClientError> {
        let value = T::deserialize(&body).map_err(|error| ClientError::Shape(error.into()))?;
        Ok(Self { value, body, date })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Client;
    use super::*;

    fn url(base: &str, call: &ApiCall<()>) -> String {
        let client = Client::new(base).expect("an address");
        let request = call.request(&client.http, &client.base).expect("a request");
        request.build().expect("a request").url().to_string()
    }

    #[test]
    fn paths_are_added_to_a_base_with_a_path_of_its_own() {
        let call = ApiCall::get(["api", "health"]);
        for base in ["http://127.0.0.1:8082/noetl/", "http://127.0.0.1:8082/noetl"] {
            assert_eq!(url(base, &call), "http://127.0.0.1:8082/noetl/api/health");
        }
        assert_eq!(url("http://127.0.0.1:8082", &call), "http://127.0.0.1:8082/api/health");
    }

    #[test]
    fn names_and_values_of_others_stay_in_their_place() {
        let call = ApiCall::get(["api", "credentials", "a/b?c=d#e f"]).with("q", Some("x&y=z"));
        let expected = "http://host/api/credentials/a%2Fb%3Fc=d%23e%20f?q=x%26y%3Dz";
        assert_eq!(url("http://host", &call), expected);
        let call = ApiCall::get(["api", "executions"]).with("status", None::<&str>);
        assert_eq!(url("http://host", &call), "http://host/api/executions");
    }
}
