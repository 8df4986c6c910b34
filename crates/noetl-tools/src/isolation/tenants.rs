//! Per-tenant settings: users, directories, and kinds of tools.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use noetl_model::Tenant;

use super::User;
use crate::own::AllowedDirectory;

/// List for all tenants, with separate lists for some of them: `a,b; acme: c`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantRules<T> {
    everybody: Option<Vec<T>>,
    named: BTreeMap<String, Vec<T>>,
}

impl<T> Default for TenantRules<T> {
    fn default() -> Self {
        Self { everybody: None, named: BTreeMap::new() }
    }
}

impl<T> TenantRules<T> {
    /// Returns a tenant's list, or `None` if there is neither a list for it nor a general one.
    pub fn list_of(&self, tenant: &Tenant) -> Option<&[T]> {
        let named = self.named.get(tenant.as_str()).or(self.everybody.as_ref());
        named.map(Vec::as_slice)
    }

    /// Parses `a,b; acme: c`, with `read` for each entry.
    fn parse(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Self, String> {
        let mut rules = Self::default();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (tenant, list) = match part.split_once(": ") {
                Some((tenant, list)) => (Some(tenant.trim()), list),
                None => match part.strip_suffix(':') {
                    Some(tenant) => (Some(tenant.trim()), ""),
                    None => (None, part),
                },
            };
            let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
            let entries = entries.map(&read).collect::<Result<Vec<T>, _>>()?;
            match tenant {
                Some("") => return Err(format!("'{part}' names no tenant")),
                Some(tenant) => drop(rules.named.insert(tenant.to_owned(), entries)),
                None => rules.everybody = Some(entries),
            }
        }
        Ok(rules)
    }
}

/// Kinds of tools: `shell,python; acme: http`.
impl FromStr for TenantRules<String> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, |entry| Ok(entry.to_owned()))
    }
}

/// Directories: `/srv/data,/srv/shared=ro; acme: /srv/acme`.
impl FromStr for TenantRules<AllowedDirectory> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, |entry| {
            let (path, writable) = match entry.strip_suffix("=ro") {
                Some(path) => (path, false),
                None => (entry, true),
            };
            let path = PathBuf::from(path);
            if !path.is_absolute() {
                return Err(format!("'{entry}' is no absolute path"));
            }
            Ok(AllowedDirectory { path, writable })
        })
    }
}

/// Range of user IDs, one per tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserRange {
    /// Lowest user ID of the range. Never 0.
    pub first: u32,
    /// Number of user IDs, which limits the number of tenants the worker can serve.
    pub count: u32,
}

impl FromStr for UserRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("a range of users is 'FIRST-LAST', as 200000-265535, not '{text}'");
        let (first, last) = text.trim().split_once('-').ok_or_else(refused)?;
        let read = |number: &str| number.trim().parse::<u32>().map_err(|_| refused());
        let (first, last) = (read(first)?, read(last)?);
        // The highest number is reserved for "no user".
        if first == 0 || last < first || last == u32::MAX {
            return Err(refused());
        }
        Ok(Self { first, count: last - first + 1 })
    }
}

/// Tenants by the user ID that this process assigned to them.
#[derive(Debug, Default)]
pub(crate) struct TenantUsers(Mutex<HashMap<u32, Tenant>>);

impl TenantUsers {
    /// Returns the tenant's user, or `None` if other tenants use the whole range.
    ///
    /// The user ID is derived from a hash of the tenant's name, so it is the same after a restart
    /// unless two names collide. The tenant that comes later then gets the next free ID.
    pub(crate) fn user(&self, range: UserRange, tenant: &Tenant) -> Option<User> {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(tenant.as_str());
        let start = u32::try_from(hash % u64::from(range.count)).unwrap_or_default();
        let offsets = (0..range.count)
            .map(|step| (u64::from(start) + u64::from(step)) % u64::from(range.count));
        for offset in offsets {
            let uid = range.first + u32::try_from(offset).unwrap_or_default();
            let owner = users.entry(uid).or_insert_with(|| tenant.clone());
            if owner == tenant {
                return Some(User { uid, gid: uid });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tenants_never_have_the_same_user() {
        let range: UserRange = "200000-200003".parse().expect("a range");
        let users = TenantUsers::default();
        let mut uids = std::collections::BTreeSet::new();
        for name in ["a", "b", "c", "d"] {
            let user = users.user(range, &Tenant::new(name)).expect("a user");
            assert_eq!(users.user(range, &Tenant::new(name)), Some(user));
            assert!((200_000..=200_003).contains(&user.uid));
            assert!(uids.insert(user.uid), "{name} has the user of another");
        }
        assert_eq!(users.user(range, &Tenant::new("e")), None);
    }

    #[test]
    fn a_tenant_has_its_own_list_or_the_default_one() {
        let rules: TenantRules<String> = "shell, http; acme: http; none:".parse().expect("rules");
        let of = |name: &str| rules.list_of(&Tenant::new(name)).map(<[String]>::to_vec);
        assert_eq!(of("other"), Some(vec!["shell".to_owned(), "http".to_owned()]));
        assert_eq!(of("acme"), Some(vec!["http".to_owned()]));
        assert_eq!(of("none"), Some(Vec::new()));
        assert_eq!(TenantRules::<String>::default().list_of(&Tenant::default()), None);
        let roots: TenantRules<AllowedDirectory> =
            "/srv=ro; acme: /a,/b=ro".parse().expect("rules");
        assert_eq!(roots.list_of(&Tenant::default()).map(<[AllowedDirectory]>::len), Some(1));
        assert!("relative".parse::<TenantRules<AllowedDirectory>>().is_err());
        for wrong in ["", "5", "0-5", "9-5", "a-b", "5-4294967295"] {
            assert!(wrong.parse::<UserRange>().is_err(), "{wrong}");
        }
    }
}
