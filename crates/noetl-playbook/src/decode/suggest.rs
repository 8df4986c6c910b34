//! What an author probably meant.

/// The candidate closest to a misspelt word, if one is close enough. Ties go to the one that sorts
/// first, so that the answer does not depend on the order of a hash table.
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

/// `did you mean 'python'? ` for use in front of further help; none when nothing is close.
pub(super) fn among(word: &str, candidates: &[&str]) -> Option<String> {
    closest(word, candidates.iter().copied())
        .map(|candidate| format!("did you mean '{candidate}'? "))
}

/// `one, two or three`.
pub(super) fn list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}
