//! Finds the known name that is most similar to a misspelled one.

/// Returns the known name that is most similar to a misspelled one, if any is similar enough.
pub(crate) fn nearest<'a>(
    wrong: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Longer names are compared only by their beginning: a longer one is no misspelling.
    let wrong: String = wrong.chars().take(100).flat_map(char::to_lowercase).collect();
    let distance = |name: &str| strsim::damerau_levenshtein(&wrong, &name.to_lowercase());
    let nearest = known.into_iter().map(|name| (distance(name), name)).min();
    nearest.filter(|(distance, name)| *distance <= (name.len() / 4).max(1)).map(|(_, name)| name)
}
