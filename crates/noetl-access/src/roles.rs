//! Roles of callers, and roles that routes require.

use noetl_secrets::Role;

/// Set of roles, as a bit mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    pub const NONE: Self = Self(0);
    /// Reads everything that is not secret.
    pub const VIEWER: Self = Self(1);
    /// Registers playbooks, stores credentials, and starts playbooks.
    pub const AUTHOR: Self = Self(1 << 1);
    /// Starts, cancels, and repairs executions; manages workers and subscriptions.
    pub const OPERATOR: Self = Self(1 << 2);
    /// Claims commands and reports about them.
    pub const WORKER: Self = Self(1 << 3);
    /// Uses all routes except the internal ones.
    pub const ADMIN: Self = Self(1 << 4);
    /// Uses the internal routes. Only the internal token has this role.
    pub const INTERNAL: Self = Self(1 << 5);

    /// Returns the union of two sets.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set for a token of this role.
    pub const fn for_role(role: Role) -> Self {
        match role {
            Role::Admin => Self::ADMIN,
            Role::Operator => Self::OPERATOR,
            Role::Author => Self::AUTHOR,
            Role::Viewer => Self::VIEWER,
            Role::Worker => Self::WORKER,
        }
    }

    /// Returns the roles of callers in open mode.
    pub const fn everything() -> Self {
        Self::ADMIN
    }

    /// Returns the intersection of two sets.
    pub const fn shared_with(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub const fn holds_any_of(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Iterates over the role names, for messages and the OpenAPI document.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |(role, _)| self.holds_any_of(*role)).map(|(_, name)| name)
    }
}

const NAMES: [(Roles, &str); 6] = [
    (Roles::ADMIN, "admin"),
    (Roles::OPERATOR, "operator"),
    (Roles::AUTHOR, "author"),
    (Roles::VIEWER, "viewer"),
    (Roles::WORKER, "worker"),
    (Roles::INTERNAL, "internal"),
];

/// Roles that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredRole {
    /// No authentication: the route is public.
    Nothing,
    /// Requires one of these roles. An admin has all roles except the internal one.
    One(Roles),
    /// Requires one of these roles in the default tenant: the route concerns resources that all
    /// tenants share.
    Whole(Roles),
}

impl RequiredRole {
    /// Returns the accepted roles, including the admin role where it applies. Empty for routes
    /// without authentication.
    pub fn roles(self) -> Roles {
        match self {
            Self::Nothing => Roles::NONE,
            Self::One(Roles::INTERNAL) => Roles::INTERNAL,
            Self::One(needed) | Self::Whole(needed) => needed.and(Roles::ADMIN),
        }
    }

    /// Returns `true` if a caller with these roles may use the route.
    pub fn allow(self, roles: Roles) -> bool {
        match self {
            Self::Nothing => true,
            Self::One(_) | Self::Whole(_) => roles.holds_any_of(self.roles()),
        }
    }
}
