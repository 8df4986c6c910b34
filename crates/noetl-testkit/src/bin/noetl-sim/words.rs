//! What the program can be told.

use noetl_testkit::world::{Fault, Planted, Wish};

pub(crate) const USAGE: &str = "\
usage: noetl-sim [--seeds COUNT|FIRST..END] [--jobs COUNT] [--planted NAME]
       noetl-sim one --seed SEED [--faults COUNT] [--executions COUNT] [--without NAME,...]
                     [--planted NAME] [--transcript]

Without `one`: lives through the worlds of all seeds (default: 1000, from 0) and stops at the first
that goes wrong, which is made small and shown; the last line is what all of it came to, as JSON.
With `one`: repeats one.";

/// Reads a setting's value.
pub(crate) fn value<'a>(
    name: &str,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<&'a str, String> {
    rest.next().map(String::as_str).ok_or_else(|| format!("{name} needs a value"))
}

pub(crate) fn number(name: &str, text: &str) -> Result<u64, String> {
    text.replace('_', "").parse().map_err(|_| format!("{name} needs a number, not '{text}'"))
}

/// A wish as settings, so that it can be repeated.
pub(crate) fn settings(wish: &Wish) -> Vec<String> {
    let mut settings = vec!["--seed".to_owned(), wish.seed.to_string()];
    let mut add = |name: &str, value: String| settings.extend([name.to_owned(), value]);
    if let Some(faults) = wish.faults {
        add("--faults", faults.to_string());
    }
    if let Some(executions) = wish.executions {
        add("--executions", executions.to_string());
    }
    if !wish.without.is_empty() {
        let names: Vec<&str> = wish.without.iter().map(|fault| fault.as_str()).collect();
        add("--without", names.join(","));
    }
    if let Some(planted) = wish.planted {
        add("--planted", planted.to_string());
    }
    settings
}

/// The wish that settings stand for, and whether the transcript is wanted.
pub(crate) fn wish(arguments: &[String]) -> Result<(Wish, bool), String> {
    let (mut wish, mut seed, mut shows) = (Wish::default(), None, false);
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        match name.as_str() {
            "--seed" => seed = Some(number(name, value(name, &mut rest)?)?),
            "--faults" => wish.faults = Some(number(name, value(name, &mut rest)?)?),
            "--executions" => {
                let count = number(name, value(name, &mut rest)?)?;
                wish.executions = usize::try_from(count).ok();
            }
            "--without" => {
                let names = value(name, &mut rest)?.split(',');
                wish.without = names.map(str::parse::<Fault>).collect::<Result<_, _>>()?;
            }
            "--planted" => wish.planted = Some(value(name, &mut rest)?.parse::<Planted>()?),
            "--transcript" => shows = true,
            other => return Err(format!("there is no setting '{other}'")),
        }
    }
    wish.seed = seed.ok_or("say which --seed")?;
    Ok((wish, shows))
}
