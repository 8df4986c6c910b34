//! Command line of the program.

use noetl_test_world::{Fault, Planted, SimConfig};

pub(crate) const USAGE: &str = "\
usage: noetl-sim [--seeds COUNT|FIRST..END] [--jobs COUNT] [--planted NAME]
       noetl-sim one --seed SEED [--faults COUNT] [--executions COUNT] [--without NAME,...]
                     [--planted NAME] [--transcript]

Without `one`: runs the simulations of all seeds (default: 1000, from 0) and stops at the first that
fails, which it reduces and shows; the last line is a summary as JSON.
With `one`: repeats one simulation.";

/// Returns the value of an option.
pub(crate) fn value<'a>(
    name: &str,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<&'a str, String> {
    rest.next().map(String::as_str).ok_or_else(|| format!("{name} needs a value"))
}

pub(crate) fn number(name: &str, text: &str) -> Result<u64, String> {
    text.replace('_', "").parse().map_err(|_| format!("{name} needs a number, not '{text}'"))
}

/// Returns the options that repeat a simulation.
pub(crate) fn options(config: &SimConfig) -> Vec<String> {
    let mut options = vec!["--seed".to_owned(), config.seed.to_string()];
    let mut add = |name: &str, value: String| options.extend([name.to_owned(), value]);
    if let Some(faults) = config.faults {
        add("--faults", faults.to_string());
    }
    if let Some(executions) = config.executions {
        add("--executions", executions.to_string());
    }
    if !config.without.is_empty() {
        let names: Vec<&str> = config.without.iter().map(|fault| fault.as_str()).collect();
        add("--without", names.join(","));
    }
    if let Some(planted) = config.planted {
        add("--planted", planted.to_string());
    }
    options
}

/// Parses the options of one simulation, and whether to print its transcript.
pub(crate) fn config(arguments: &[String]) -> Result<(SimConfig, bool), String> {
    let (mut config, mut seed, mut shows) = (SimConfig::default(), None, false);
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        match name.as_str() {
            "--seed" => seed = Some(number(name, value(name, &mut rest)?)?),
            "--faults" => config.faults = Some(number(name, value(name, &mut rest)?)?),
            "--executions" => {
                let count = number(name, value(name, &mut rest)?)?;
                config.executions = usize::try_from(count).ok();
            }
            "--without" => {
                let names = value(name, &mut rest)?.split(',');
                config.without = names.map(str::parse::<Fault>).collect::<Result<_, _>>()?;
            }
            "--planted" => config.planted = Some(value(name, &mut rest)?.parse::<Planted>()?),
            "--transcript" => shows = true,
            other => return Err(format!("unknown option '{other}'")),
        }
    }
    config.seed = seed.ok_or("--seed is required")?;
    Ok((config, shows))
}
