//! Tests by theme.
