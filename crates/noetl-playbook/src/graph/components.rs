//! Strongly connected components, without recursion: a playbook may have 100,000 steps in a row.

/// Buffers of the search, reused for each part of the graph, so that the cost of a part depends
/// only on its size.
pub(super) struct Scratch {
    order: Vec<usize>,
    low: Vec<usize>,
    on_path: Vec<bool>,
}

impl Scratch {
    pub(super) fn new(steps: usize) -> Self {
        Self { order: vec![UNSEEN; steps], low: vec![0; steps], on_path: vec![false; steps] }
    }

    /// Returns the components of `members` that contain a cycle, each with its steps in document
    /// order.
    ///
    /// `arc(from, place)` returns the target of an arc that counts, and `None` for any other arc.
    pub(super) fn cycles(
        &mut self,
        members: &[usize],
        targets: &[Vec<usize>],
        arc: impl Fn(usize, usize) -> Option<usize>,
    ) -> Vec<Vec<usize>> {
        for &step in members {
            self.order[step] = UNSEEN;
        }
        let mut search =
            ComponentSearch { scratch: self, path: Vec::new(), seen: 0, components: Vec::new() };
        for &root in members {
            if search.scratch.order[root] == UNSEEN {
                search.from(root, targets, &arc);
            }
        }
        let mut components = search.components;
        components.retain(|component| {
            component.len() > 1
                || (0..targets[component[0]].len())
                    .any(|place| arc(component[0], place) == Some(component[0]))
        });
        for component in &mut components {
            component.sort_unstable();
        }
        components.sort_unstable();
        components
    }
}

const UNSEEN: usize = usize::MAX;

/// Tarjan's algorithm with an explicit stack.
struct ComponentSearch<'a> {
    scratch: &'a mut Scratch,
    path: Vec<usize>,
    seen: usize,
    components: Vec<Vec<usize>>,
}

impl ComponentSearch<'_> {
    fn from(
        &mut self,
        root: usize,
        targets: &[Vec<usize>],
        arc: &impl Fn(usize, usize) -> Option<usize>,
    ) {
        let mut calls = vec![(root, 0)];
        self.enter(root);
        while let Some((step, place)) = calls.pop() {
            if place == targets[step].len() {
                self.leave(step);
                if let Some(&(caller, _)) = calls.last() {
                    self.scratch.low[caller] = self.scratch.low[caller].min(self.scratch.low[step]);
                }
                continue;
            }
            calls.push((step, place + 1));
            let Some(to) = arc(step, place) else { continue };
            if self.scratch.order[to] == UNSEEN {
                self.enter(to);
                calls.push((to, 0));
            } else if self.scratch.on_path[to] {
                self.scratch.low[step] = self.scratch.low[step].min(self.scratch.order[to]);
            }
        }
    }

    fn enter(&mut self, step: usize) {
        self.scratch.order[step] = self.seen;
        self.scratch.low[step] = self.seen;
        self.seen += 1;
        self.path.push(step);
        self.scratch.on_path[step] = true;
    }

    /// Closes a component if `step` is the first of its steps that was entered.
    fn leave(&mut self, step: usize) {
        if self.scratch.low[step] != self.scratch.order[step] {
            return;
        }
        let start = self.path.iter().rposition(|&member| member == step);
        let component = self.path.split_off(start.expect("a step being left is on the path"));
        for &member in &component {
            self.scratch.on_path[member] = false;
        }
        self.components.push(component);
    }
}
