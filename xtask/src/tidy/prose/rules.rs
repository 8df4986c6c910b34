//! The rules, each as a function of text.

/// Type names that several files may have.
pub(super) const SHARED_NAMES: [&str; 2] = ["Options", "OpenError"];

const INTERROGATIVES: [&str; 9] =
    ["What", "Who", "Whose", "Whom", "Where", "When", "Why", "How", "Which"];

const DEPENDENT: [&str; 11] = [
    "It",
    "Its",
    "They",
    "Those",
    "These",
    "One",
    "Nothing",
    "Nobody",
    "Somebody",
    "Something",
    "The same",
];

/// Phrases that stand for a term of the glossary.
const BANNED: [&str; 17] = [
    "elsewhere",
    "under way",
    "whoever",
    "come again",
    "comes again",
    "to be had",
    "can be had",
    "cannot be had",
    "could be had",
    "anew",
    "nobody",
    "somebody",
    "now and then",
    "heard of",
    "put aside",
    "goes on",
    "parted by",
];

/// Type names that are participles, adverbs, or prepositions.
const UNCLEAR_TYPES: [&str; 37] = [
    "Again",
    "Away",
    "Beside",
    "Elsewhere",
    "Ended",
    "Found",
    "Given",
    "Handed",
    "Heard",
    "Held",
    "How",
    "Into",
    "Keeping",
    "Kept",
    "Known",
    "Led",
    "Left",
    "Lent",
    "Listed",
    "Look",
    "Lost",
    "Of",
    "Once",
    "Only",
    "Over",
    "Place",
    "Said",
    "Standing",
    "Stretch",
    "Taken",
    "Trouble",
    "Turn",
    "Wanted",
    "Where",
    "Which",
    "Why",
    "Words",
];

/// Function names that are prepositions or adverbs.
const UNCLEAR_FUNCTIONS: [&str; 13] = [
    "of", "at", "to", "by", "below", "beside", "within", "behind", "under", "again", "once",
    "aside", "here",
];

/// Openings of log messages that tell a story.
const STORIES: [&str; 10] =
    ["a", "an", "the", "what", "it", "that", "no", "nobody", "nothing", "another"];

/// Phrases of error texts that don't say what happened.
const VAGUE: [&str; 11] = [
    "did not answer",
    "did not take",
    "could not answer",
    "come again",
    "not taken",
    "be had",
    "there is no",
    "is no",
    "not usable",
    "it",
    "its",
];

/// Returns the lines of a Rust file that break a rule: the line, the rule, and the text.
pub(super) fn in_rust(code: &str) -> Vec<(usize, &'static str, &str)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let number = place + 1;
        if let Some(doc) = opening(&lines, place) {
            let first = doc.split(' ').next().unwrap_or_default();
            if INTERROGATIVES.contains(&first) {
                found.push((number, "interrogative-doc", *line));
            }
            if doc.ends_with('.') && doc.split(' ').count() <= 3 {
                found.push((number, "stub-doc", *line));
            }
            if DEPENDENT.iter().any(|opens| begins(doc, opens)) {
                found.push((number, "dependent-doc", *line));
            }
            if is_on_function(&lines, place) && !opens_with_verb(doc) {
                found.push((number, "verbless-doc", *line));
            }
        }
        if has_banned_word(line) {
            found.push((number, "banned-word", *line));
        }
        if types(line).any(|(_, name)| UNCLEAR_TYPES.contains(&name)) {
            found.push((number, "unclear-type", *line));
        }
        if function(line).is_some_and(|name| UNCLEAR_FUNCTIONS.contains(&name)) {
            found.push((number, "unclear-function", *line));
        }
    }
    let number = |at: usize| code[..at].matches('\n').count() + 1;
    found.extend(
        messages(code)
            .filter(|(_, text)| tells_story(text))
            .map(|(at, text)| (number(at), "log-story", text)),
    );
    found.extend(
        error_texts(code)
            .filter(|(_, text)| is_vague(text))
            .map(|(at, text)| (number(at), "vague-error", text)),
    );
    found
}

/// Returns `true` if a line has a phrase that stands for a term of the glossary.
///
/// A literal that is nothing but the phrase is a value, such as the name of the anonymous caller.
pub(super) fn has_banned_word(line: &str) -> bool {
    let line = line.to_lowercase();
    let is_value = |before: &str, after: &str| before.ends_with('"') && after.starts_with('"');
    BANNED.iter().any(|phrase| occurs(&line, phrase, |before, after| !is_value(before, after)))
}

/// Returns `true` if a phrase occurs as whole words, between texts that `counts` accepts.
fn occurs(text: &str, phrase: &str, counts: impl Fn(&str, &str) -> bool) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + phrase.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part) && counts(before, after)
    })
}

/// Returns the types that a text declares, with their lines.
pub(super) fn types(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().enumerate().filter_map(|(place, line)| {
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        let mut words =
            words.skip_while(|word| !["struct", "enum", "trait", "type"].contains(word));
        // An indented `type` belongs to a trait, which names it.
        let is_own = |word: &&str| *word != "type" || !line.starts_with(' ');
        let is_declared = !line.trim_start().starts_with("//");
        words.next().filter(|_| is_declared).filter(is_own)?;
        let name = words.next()?;
        name.starts_with(|c: char| c.is_ascii_uppercase()).then_some((place + 1, name))
    })
}

/// Returns the first line of a doc comment that begins here.
fn opening<'a>(lines: &[&'a str], place: usize) -> Option<&'a str> {
    let doc = lines[place].trim_start().strip_prefix("/// ")?;
    let before = place.checked_sub(1).map(|before| lines[before].trim_start());
    (!before.is_some_and(|line| line.starts_with("///"))).then_some(doc)
}

/// Returns `true` if the doc comment that begins here is that of a function.
fn is_on_function(lines: &[&str], place: usize) -> bool {
    let rest = lines[place..].iter().map(|line| line.trim_start());
    let mut rest = rest.skip_while(|line| line.starts_with("//") || line.starts_with('#'));
    rest.next().is_some_and(|line| function(line).is_some())
}

fn function(line: &str) -> Option<&str> {
    if line.trim_start().starts_with("//") {
        return None;
    }
    let at = line.find("fn ")?;
    if at > 0 && !line[..at].ends_with(' ') {
        return None;
    }
    let name = line[at + 3..].split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let rest = line[at + 3 + name.len()..].trim_start();
    (!name.is_empty() && (rest.starts_with('(') || rest.starts_with('<'))).then_some(name)
}

fn opens_with_verb(doc: &str) -> bool {
    let first = doc.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_word = first.chars().skip(1).all(|c| c.is_ascii_lowercase());
    doc.starts_with("Like [") || (is_word && first.len() > 2 && first.ends_with('s'))
}

fn begins(text: &str, word: &str) -> bool {
    let rest = text.strip_prefix(word);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Returns the messages of log lines, with where they are.
fn messages(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let macros = ["trace!(", "debug!(", "info!(", "warn!(", "error!("];
    let calls = macros.into_iter().flat_map(|name| code.match_indices(name));
    calls.filter_map(|(at, _)| {
        let end = at + code[at..].find(");")?;
        let call = &code[at..end];
        let last = call.rfind('"')?;
        let first = call[..last].rfind('"')?;
        Some((at + first, &call[first + 1..last]))
    })
}

/// Returns the texts of errors, with where they are.
fn error_texts(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices("#[error(").filter_map(|(at, open)| {
        // Other attributes, such as `transparent`, have no text.
        let rest = code[at + open.len()..].trim_start().strip_prefix('"')?;
        let first = code.len() - rest.len();
        Some((first - 1, &rest[..rest.find('"')?]))
    })
}

fn tells_story(message: &str) -> bool {
    STORIES.iter().any(|word| begins(message, word))
        || message.ends_with(" yet")
        || message.contains("; trying again")
}

fn is_vague(text: &str) -> bool {
    VAGUE.iter().any(|phrase| occurs(text, phrase, |_, _| true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(code: &str) -> Vec<(usize, &'static str)> {
        in_rust(code).into_iter().map(|(line, rule, _)| (line, rule)).collect()
    }

    #[test]
    fn doc_comments_are_judged_by_their_first_line() {
        assert_eq!(rules("/// Why\n/// it ended.\nstruct End;\n"), [(1, "interrogative-doc")]);
        assert_eq!(rules("/// Latest end.\nstruct End;\n"), [(1, "stub-doc")]);
        assert_eq!(rules("/// The same as before, later.\nstruct End;\n"), [(1, "dependent-doc")]);
        assert_eq!(rules("/// Latest end of the leases.\nstruct End;\n"), []);
        assert_eq!(rules("/// Items of a page, in order.\nstruct End;\n"), []);
    }

    #[test]
    fn the_doc_of_a_function_opens_with_a_verb() {
        assert_eq!(
            rules("/// The end of the lease.\n#[must_use]\npub fn end(&self) {}\n"),
            [(1, "verbless-doc")]
        );
        assert_eq!(
            rules("/// Returns the end of the lease.\npub(crate) async fn end<T>() {}\n"),
            []
        );
        assert_eq!(rules("/// Like [`end`], but sooner than that.\nfn soon() {}\n"), []);
        assert_eq!(rules("/// Callback that ends a lease.\nend: fn(),\n"), []);
    }

    #[test]
    fn names_that_need_their_path_are_found() {
        assert_eq!(rules("pub(crate) struct Held<'a> {\n"), [(1, "unclear-type")]);
        assert_eq!(rules("    pub fn of(text: &str) {\n"), [(1, "unclear-function")]);
        assert_eq!(rules("pub struct HeldCommand;\nfn offer() {}\n"), []);
        assert_eq!(
            types("type A = B;\n// struct C\nenum D {}\n").collect::<Vec<_>>(),
            [(1, "A"), (3, "D")]
        );
    }

    #[test]
    fn log_messages_and_errors_state_the_event() {
        assert_eq!(rules("warn!(%error, \"a command is not announced\");\n"), [(1, "log-story")]);
        assert_eq!(rules("info!(\n    commands,\n    \"what waits\"\n);\n"), [(3, "log-story")]);
        assert_eq!(rules("warn!(%error, \"orphan scan failed, retrying\");\n"), []);
        assert_eq!(rules("#[error(\"the store did not answer\")]\n"), [(1, "vague-error")]);
        assert_eq!(rules("#[error(\"failed to commit\")]\n"), []);
        assert_eq!(rules("#[error(\n    \"cannot parse it\"\n)]\n"), [(2, "vague-error")]);
        assert_eq!(rules("#[error(\"write digits with 'x'\")]\n"), []);
        assert_eq!(rules("#[error(transparent)]\nconst A: &str = \"is it\";\n"), []);
    }

    #[test]
    fn banned_words_are_whole_words() {
        assert!(has_banned_word("// It goes on elsewhere."));
        assert!(has_banned_word("Whoever asks"));
        assert!(!has_banned_word("a nobody_knows name, and janewhatevers"));
        assert!(!has_banned_word("Self::known_as(\"nobody\", Roles::NONE)"));
        assert!(has_banned_word("\"nobody waits\""));
    }
}
