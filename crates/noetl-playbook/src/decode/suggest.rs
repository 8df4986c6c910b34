//! Finds the candidate that is closest to a misspelled word.

/// Returns the candidate closest to a misspelled word, if one is close enough. The candidate that
/// sorts first wins a tie, so that the result does not depend on the order of a hash table.
pub(super) fn closest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = word.chars().count();
    let allowed = (length / 3).clamp(1, 3);
    let lower = word.to_lowercase();
    let near = candidates.into_iter().filter_map(|candidate| {
        if candidate.len().abs_diff(word.len()) > 2 * allowed + 2 {
            return None;
        }
        let distance = strsim::osa_distance(&lower, &candidate.to_lowercase());
        (distance <= allowed && candidate != word).then_some((distance, candidate))
    });
    near.min().map(|(_, candidate)| candidate)
}

/// Returns `did you mean 'python'? ` as a prefix for further help, or `None` if no candidate is
/// close.
pub(super) fn among(word: &str, candidates: &[&str]) -> Option<String> {
    closest(word, candidates.iter().copied())
        .map(|candidate| format!("did you mean '{candidate}'? "))
}

/// Formats words as `one, two or three`.
pub(super) fn list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}
