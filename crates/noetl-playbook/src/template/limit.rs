//! What one rendering may cost, counted so that a hostile template stops early and small.

use minijinja::value::ValueKind;

use super::Data;
use super::error::Fault;
use super::json;
use super::object::Namespace;

/// Operations and list items one rendering may touch: a few tens of milliseconds of work, far
/// above what a step's input needs.
pub(super) const FUEL_MAX: u64 = 1_000_000;

/// Bytes one rendering may produce, and the longest text it may build on the way. A larger value
/// belongs into a result that is passed by reference.
pub(super) const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Items of a list that a template builds; the bound of `range`.
pub(super) const ITEMS_MAX: usize = 100_000;

/// How deep values nest: as deep as the log can keep them.
pub(super) const DEPTH_MAX: usize = noetl_model::DEPTH_MAX;

/// Text is cheaper per byte than an operation; this many bytes cost one.
const BYTES_PER_FUEL: usize = 64;

pub(super) struct Fuel(u64);

impl Fuel {
    pub(super) fn full() -> Self {
        Self(FUEL_MAX)
    }

    /// Takes the cost of `operations`.
    pub(super) fn burn(&mut self, operations: usize) -> Result<(), Fault> {
        let cost = u64::try_from(operations).unwrap_or(u64::MAX);
        match self.0.checked_sub(cost) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => {
                self.0 = 0;
                Err(Fault::new(format!("the template exceeds the limit of {FUEL_MAX} operations")))
            }
        }
    }

    /// Takes the cost of reading a value once: its items, or its text.
    pub(super) fn burn_for(&mut self, value: &Data) -> Result<(), Fault> {
        let cost = match value.as_str() {
            Some(text) => text.len() / BYTES_PER_FUEL,
            None => value.len().unwrap_or(0),
        };
        self.burn(cost)
    }

    /// Takes the cost of a value that is read to its end, item by item, or compared so.
    pub(super) fn burn_deep(&mut self, value: &Data) -> Result<(), Fault> {
        self.walk(value, DEPTH_MAX, &mut |_| Ok(()))
    }

    /// Takes the cost of building a text.
    pub(super) fn burn_text(&mut self, bytes: usize) -> Result<(), Fault> {
        self.burn(bytes / BYTES_PER_FUEL + 1)
    }

    /// Walks a value a template built and is about to give a name.
    ///
    /// A list that holds itself twice costs nothing to build and doubles with every repetition
    /// when it is read; paying for the whole tree here keeps such values small and shallow.
    pub(super) fn burn_tree(&mut self, value: &Data) -> Result<(), Fault> {
        let mut top = true;
        self.walk(value, DEPTH_MAX, &mut |part| {
            // It could come to hold itself, and then nothing could read it to its end.
            if part.downcast_object_ref::<Namespace>().is_some() && !top {
                return Err(Fault::new("a namespace() cannot be put into another value"));
            }
            top = false;
            Ok(())
        })
    }

    fn walk(
        &mut self,
        value: &Data,
        depth: usize,
        check: &mut dyn FnMut(&Data) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
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

/// The bytes of output left.
pub(super) struct OutputRoom(usize);

impl OutputRoom {
    pub(super) fn full() -> Self {
        Self(OUTPUT_BYTES_MAX)
    }

    /// Takes room for `bytes`.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Fault> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }

    /// Converts a rendered value, as far as there is room for it.
    pub(super) fn json(&mut self, value: &Data) -> Result<serde_json::Value, Fault> {
        json::convert(value, self, DEPTH_MAX)
    }
}

/// Refuses a text longer than a rendering may produce, before it is built.
pub(super) fn check_text(bytes: Option<usize>) -> Result<usize, Fault> {
    match bytes {
        Some(bytes) if bytes <= OUTPUT_BYTES_MAX => Ok(bytes),
        Some(_) | None => Err(too_large()),
    }
}

/// Refuses a list longer than a template may build, before it is built.
pub(super) fn check_items(items: Option<usize>) -> Result<usize, Fault> {
    match items {
        Some(items) if items <= ITEMS_MAX => Ok(items),
        Some(_) | None => {
            Err(Fault::new(format!("the list exceeds the limit of {ITEMS_MAX} items")))
        }
    }
}

pub(super) fn too_deep() -> Fault {
    Fault::new(format!("the value exceeds the limit of {DEPTH_MAX} nested levels"))
}

fn too_large() -> Fault {
    Fault::new(format!("the template exceeds the limit of {OUTPUT_BYTES_MAX} bytes of output"))
}
