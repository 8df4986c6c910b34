//! Accepts server flags before the verb, as other programs of this name do: `noetl --server-url URL
//! status ID`.

use std::ffi::{OsStr, OsString};

/// Flags that may precede the verb. Each has a value.
const FLAGS: [&str; 8] = [
    "--config",
    "--server-url",
    "--host",
    "--port",
    "-p",
    "--context",
    "--token",
    "--session-token",
];

/// Returns the arguments with leading server flags moved behind the verb.
pub(crate) fn reorder_leading_flags(
    arguments: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let mut arguments = arguments.into_iter();
    let mut line: Vec<OsString> = arguments.next().into_iter().collect();
    let mut rest: Vec<OsString> = arguments.collect();
    let mut count = 0;
    while let Some(argument) = rest.get(count) {
        count += match flag(argument) {
            Some(Value::Within) => 1,
            Some(Value::Next) => 2,
            None => break,
        };
    }
    // Without a verb, leave the arguments as they are; the parser reports the missing verb.
    if count >= rest.len() {
        line.extend(rest);
        return line;
    }
    let verb = rest.split_off(count);
    let plain = verb.iter().position(|argument| argument == "--").unwrap_or(verb.len());
    line.extend(verb[..plain].iter().cloned());
    line.extend(rest);
    line.extend(verb[plain..].iter().cloned());
    line
}

/// Position of a flag's value.
enum Value {
    /// In the same argument, after `=`.
    Within,
    /// In the next argument.
    Next,
}

fn flag(argument: &OsStr) -> Option<Value> {
    let text = argument.to_str()?;
    match text.split_once('=') {
        Some((name, _)) => FLAGS.contains(&name).then_some(Value::Within),
        None => FLAGS.contains(&text).then_some(Value::Next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reordered(line: &str) -> String {
        let line = reorder_leading_flags(line.split(' ').map(OsString::from));
        let line: Vec<&str> = line.iter().filter_map(|argument| argument.to_str()).collect();
        line.join(" ")
    }

    #[test]
    fn flags_before_the_verb_are_moved_after_it() {
        assert_eq!(reordered("noetl --server-url u status 1"), "noetl status 1 --server-url u");
        assert_eq!(reordered("noetl --host=h -p 1 list a"), "noetl list a --host=h -p 1");
        assert_eq!(reordered("noetl --token t get x -- -y"), "noetl get x --token t -- -y");
    }

    #[test]
    fn other_arguments_keep_their_order() {
        for line in [
            "noetl",
            "noetl status 1 --token t",
            "noetl --help",
            "noetl --token",
            "noetl --token t",
        ] {
            assert_eq!(reordered(line), line);
        }
    }
}
