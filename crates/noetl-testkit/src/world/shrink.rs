//! Makes a world that is wrong as small as it can be while it stays wrong.

use super::fault::Fault;
use super::plan::Wish;

/// The smallest wish found that `is_wrong` still says is wrong: fewer executions, fewer kinds of
/// faults, fewer faults. `faults` is how many there were.
pub fn shrink(wish: &Wish, faults: u64, mut is_wrong: impl FnMut(&Wish) -> Option<u64>) -> Wish {
    let mut least = wish.clone();
    let mut faults = faults;
    for executions in 1..6 {
        let smaller = Wish { executions: Some(executions), ..least.clone() };
        if let Some(left) = is_wrong(&smaller) {
            (least, faults) = (smaller, left);
            break;
        }
    }
    for fault in Fault::ALL {
        let mut smaller = least.clone();
        smaller.without.insert(fault);
        if let Some(left) = is_wrong(&smaller) {
            (least, faults) = (smaller, left);
        }
    }
    // The first so many faults are the same whatever comes after them.
    let (mut too_few, mut enough) = (None, faults);
    while too_few.map_or(0, |few: u64| few + 1) < enough {
        let middle = too_few.map_or(0, |few| few + 1).midpoint(enough - 1);
        let smaller = Wish { faults: Some(middle), ..least.clone() };
        match is_wrong(&smaller) {
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
    fn what_is_not_needed_goes() {
        let mut tries = 0;
        let small = shrink(&Wish::of(7), 40, |wish| {
            tries += 1;
            let has = |fault| !wish.without.contains(&fault);
            let faults = wish.faults.unwrap_or(40);
            let enough = wish.executions.is_none_or(|count| count >= 2) && faults >= 9;
            (enough && has(Fault::CrashAfter)).then_some(faults)
        });
        assert_eq!((small.executions, small.faults), (Some(2), Some(9)));
        assert!(!small.without.contains(&Fault::CrashAfter));
        assert_eq!(small.without.len(), Fault::ALL.len() - 1);
        assert!(tries < 40, "{tries}");
    }
}
