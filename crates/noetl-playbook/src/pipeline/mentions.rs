//! What a pipeline's templates name of an execution's state.

use std::collections::BTreeSet;

use super::{Action, Jump, Pipeline, Rule};
use crate::template::{Mention, Template};

impl Pipeline {
    /// Names its templates refer to that the pipeline does not bind itself, with the key that
    /// follows each. The item of a loop is among them: a pipeline does not know its loop.
    ///
    /// The label of a task is the pipeline's own only where that task has certainly run: before,
    /// the same name leads to what the state knows by it, as a step's name in the step itself does
    /// to its last result.
    pub fn mentions(&self) -> &BTreeSet<Mention> {
        self.mentions.get_or_init(|| self.mentioned())
    }

    fn mentioned(&self) -> BTreeSet<Mention> {
        let in_order = !self.skips();
        let mut found = BTreeSet::new();
        for (place, task) in self.tasks.iter().enumerate() {
            let before = [&task.tool.config, &task.tool.input];
            let before = before.into_iter().flat_map(|value| value.templates());
            let after = task.set.iter().flat_map(|assignment| assignment.value.templates());
            let after = after.chain(task.rules.iter().flat_map(Rule::templates));
            let mut add = |template: &Template, ran: usize| {
                let bound = |name: &str| {
                    name == "iter" || in_order && self.find(name).is_some_and(|label| label < ran)
                };
                let free = template.mentions().iter().filter(|mention| !bound(&mention.name));
                found.extend(free.cloned());
            };
            before.for_each(|template| add(template, place));
            after.for_each(|template| add(template, place + 1));
        }
        found
    }

    /// Whether a jump can lead past a task that has not run.
    fn skips(&self) -> bool {
        self.tasks.iter().enumerate().any(|(place, task)| {
            task.rules.iter().any(|rule| match &rule.action {
                Action::Jump(Jump::To(label)) => self.find(label).is_some_and(|to| to > place + 1),
                _ => false,
            })
        })
    }
}
