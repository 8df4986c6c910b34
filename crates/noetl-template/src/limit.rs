//! Resource limits of a rendering, which stop a hostile template early.

use minijinja::value::ValueKind;

use super::data::Data;
use super::error::EvalError;
use super::object::Namespace;

/// Maximum number of operations and list items of a rendering. Equivalent to a few tens of
/// milliseconds of work, far more than a step's input needs.
pub(super) const FUEL_MAX: u64 = 1_000_000;

/// Maximum output of a rendering, and maximum length of any text it builds, in bytes. Larger values
/// belong in a result that is passed by reference.
pub(super) const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum number of items in a list that a template builds, including `range`.
pub(super) const ITEMS_MAX: usize = 100_000;

/// Maximum nesting depth of values: the maximum that the event log can store.
pub(super) const DEPTH_MAX: usize = noetl_model::DEPTH_MAX;

/// Bytes of text per unit of fuel. Text is cheaper per byte than an operation.
const BYTES_PER_FUEL: usize = 64;

pub(super) struct Fuel(u64);

impl Fuel {
    pub(super) fn full() -> Self {
        Self(FUEL_MAX)
    }

    /// Charges the cost of `operations`.
    pub(super) fn burn(&mut self, operations: usize) -> Result<(), EvalError> {
        let cost = u64::try_from(operations).unwrap_or(u64::MAX);
        match self.0.checked_sub(cost) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => {
                self.0 = 0;
                Err(EvalError::new(format!(
                    "the template exceeds the limit of {FUEL_MAX} operations"
                )))
            }
        }
    }

    /// Charges the cost of reading a value once: its items, or its text.
    pub(super) fn burn_for(&mut self, value: &Data) -> Result<(), EvalError> {
        let cost = match value.as_str() {
            Some(text) => text.len() / BYTES_PER_FUEL,
            None => value.len().unwrap_or(0),
        };
        self.burn(cost)
    }

    /// Charges the cost of visiting a value completely, as a comparison does.
    pub(super) fn burn_deep(&mut self, value: &Data) -> Result<(), EvalError> {
        self.walk(value, DEPTH_MAX, &mut |_| Ok(()))
    }

    /// Charges the cost of building a text.
    pub(super) fn burn_text(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.burn(bytes / BYTES_PER_FUEL + 1)
    }

    /// Charges for the whole tree of a value that a template built and is about to bind to a name.
    ///
    /// A list that contains itself twice is free to build and doubles with every repetition when
    /// read. Charging for the whole tree keeps such values small and shallow.
    pub(super) fn burn_tree(&mut self, value: &Data) -> Result<(), EvalError> {
        let mut top = true;
        self.walk(value, DEPTH_MAX, &mut |part| {
            // A namespace could come to contain itself, and then no traversal of it would end.
            if part.downcast_object_ref::<Namespace>().is_some() && !top {
                return Err(EvalError::new("a namespace() cannot be put into another value"));
            }
            top = false;
            Ok(())
        })
    }

    fn walk(
        &mut self,
        value: &Data,
        depth: usize,
        check: &mut dyn FnMut(&Data) -> Result<(), EvalError>,
    ) -> Result<(), EvalError> {
        self.burn(1)?;
        check(value)?;
        if let Some(text) = value.as_str() {
            return self.burn(text.len() / BYTES_PER_FUEL);
        }
        let Some(object) = value.as_object() else {
            return Ok(());
        };
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        if value.kind() == ValueKind::Map {
            for (key, item) in object.try_iter_pairs().into_iter().flatten() {
                self.walk(&key, depth, check)?;
                self.walk(&item, depth, check)?;
            }
        } else {
            for item in object.try_iter().into_iter().flatten() {
                self.walk(&item, depth, check)?;
            }
        }
        Ok(())
    }
}

/// Remaining output budget in bytes.
pub(super) struct OutputBudget(usize);

impl OutputBudget {
    pub(super) fn full() -> Self {
        Self(OUTPUT_BYTES_MAX)
    }

    /// Charges `bytes` to the output budget.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }
}

/// Rejects a text longer than a rendering may produce, before it is built.
pub(super) fn check_text(bytes: Option<usize>) -> Result<usize, EvalError> {
    match bytes {
        Some(bytes) if bytes <= OUTPUT_BYTES_MAX => Ok(bytes),
        Some(_) | None => Err(too_large()),
    }
}

/// Rejects a list longer than a template may build, before it is built.
pub(super) fn check_items(items: Option<usize>) -> Result<usize, EvalError> {
    match items {
        Some(items) if items <= ITEMS_MAX => Ok(items),
        Some(_) | None => {
            Err(EvalError::new(format!("the list exceeds the limit of {ITEMS_MAX} items")))
        }
    }
}

pub(super) fn too_deep() -> EvalError {
    EvalError::new(format!("the value exceeds the limit of {DEPTH_MAX} nested levels"))
}

fn too_large() -> EvalError {
    EvalError::new(format!("the template exceeds the limit of {OUTPUT_BYTES_MAX} bytes of output"))
}
