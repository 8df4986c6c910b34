//! Tenants that a caller may access.

use noetl_model::Tenant;

/// Tenant whose commands a caller may access; all tenants if `None`.
pub type TenantScope = Option<Tenant>;
