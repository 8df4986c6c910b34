//! Seeds of random histories.

/// Variable that holds the first seed of every random test; a run without it always uses 0.
const SEED: &str = "NOETL_TEST_SEED";

/// Returns `count` consecutive seeds. They start `first` after the number in `NOETL_TEST_SEED`, or
/// after 0 without it, so a run that names no seed repeats the run before it.
///
/// # Panics
///
/// Panics if the variable is set and is not a number: an ignored seed would not reproduce a run.
pub fn seeds(first: u64, count: u64) -> impl Iterator<Item = u64> {
    #[expect(clippy::disallowed_methods, reason = "only tests call it")]
    let start = std::env::var(SEED).map_or(0, |text| parse(&text));
    (0..count).map(move |number| start.wrapping_add(first).wrapping_add(number))
}

fn parse(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{SEED} is not a number: '{text}'"))
}
