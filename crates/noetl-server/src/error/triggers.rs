//! Failures of subscriptions, their listeners, and schedules.

use axum::http::StatusCode;
use noetl_journal::SubscriptionError;
use noetl_triggers::{ListenerError, ScheduleError};

use super::ApiError;

impl From<SubscriptionError> for ApiError {
    fn from(failure: SubscriptionError) -> Self {
        let message = failure.to_string();
        match failure {
            SubscriptionError::NoDocument(_) | SubscriptionError::Unregistered(_) => {
                Self::not_found("subscription_not_found", message)
            }
            SubscriptionError::WrongKind { .. } => Self::invalid("not_a_subscription", message),
            SubscriptionError::Illegal { .. } => Self::invalid("illegal_transition", message),
            SubscriptionError::Replaced { .. } => Self::conflict("subscription_replaced", message),
            SubscriptionError::Contended(_) => Self::unavailable("busy", message),
            SubscriptionError::Store(failure) => failure.into(),
        }
    }
}

impl From<ScheduleError> for ApiError {
    fn from(failure: ScheduleError) -> Self {
        let message = failure.to_string();
        match failure {
            ScheduleError::NotFound(_) => Self::not_found("schedule_not_found", message),
            ScheduleError::Invalid(found) => {
                Self::document(StatusCode::UNPROCESSABLE_ENTITY, &found)
            }
            ScheduleError::TooDeep => Self::invalid("too_deep", message),
            ScheduleError::OfDocument { .. } => Self::conflict("schedule_of_document", message),
            ScheduleError::Start(failure) => failure.into(),
            ScheduleError::Store(failure) => failure.into(),
        }
    }
}

impl From<ListenerError> for ApiError {
    fn from(failure: ListenerError) -> Self {
        let message = failure.to_string();
        match failure {
            ListenerError::Unknown(_) => Self::not_found("listener_not_found", message),
            ListenerError::Incomplete { .. } | ListenerError::Invalid { .. } => {
                Self::invalid("incomplete_subscription", message)
            }
            ListenerError::NoSecret(_) => Self::invalid("no_secret", message),
            ListenerError::Credential(failure) => failure.into(),
            ListenerError::Subscription(failure) => failure.into(),
            ListenerError::Store(failure) => failure.into(),
        }
    }
}
