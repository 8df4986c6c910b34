//! Reduces a failing simulation to a small one that still fails.

use super::fault::Fault;
use super::plan::SimConfig;

/// Returns the smallest parameters found that still fail: fewer executions, fewer kinds of faults,
/// fewer faults.
///
/// `faults` is the number of faults of `config`. `failing` runs a simulation and returns the number of
/// its faults if it fails.
pub fn shrink(
    config: &SimConfig,
    faults: u64,
    mut failing: impl FnMut(&SimConfig) -> Option<u64>,
) -> SimConfig {
    let mut least = config.clone();
    let mut faults = faults;
    for executions in 1..6 {
        let smaller = SimConfig { executions: Some(executions), ..least.clone() };
        if let Some(left) = failing(&smaller) {
            (least, faults) = (smaller, left);
            break;
        }
    }
    for fault in Fault::ALL {
        let mut smaller = least.clone();
        smaller.without.insert(fault);
        if let Some(left) = failing(&smaller) {
            (least, faults) = (smaller, left);
        }
    }
    // The first faults stay the same, whatever follows them.
    let (mut too_few, mut enough) = (None, faults);
    while too_few.map_or(0, |few: u64| few + 1) < enough {
        let middle = too_few.map_or(0, |few| few + 1).midpoint(enough - 1);
        let smaller = SimConfig { faults: Some(middle), ..least.clone() };
        match failing(&smaller) {
            Some(_) => {
                enough = middle;
                least = smaller;
            }
            None => too_few = Some(middle),
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinking_removes_irrelevant_parameters() {
        let mut runs = 0;
        let small = shrink(&SimConfig::for_seed(7), 40, |config| {
            runs += 1;
            let has = |fault| !config.without.contains(&fault);
            let faults = config.faults.unwrap_or(40);
            let enough = config.executions.is_none_or(|count| count >= 2) && faults >= 9;
            (enough && has(Fault::CrashAfter)).then_some(faults)
        });
        assert_eq!((small.executions, small.faults), (Some(2), Some(9)));
        assert!(!small.without.contains(&Fault::CrashAfter));
        assert_eq!(small.without.len(), Fault::ALL.len() - 1);
        assert!(runs < 40, "{runs}");
    }
}
