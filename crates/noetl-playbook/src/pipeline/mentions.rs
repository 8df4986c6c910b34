//! Names of an execution's state that a pipeline's templates refer to.

use std::collections::BTreeSet;

use noetl_template::{Mention, Template};

use super::{Action, Jump, Pipeline, PolicyRule};

impl Pipeline {
    /// Returns the names that the templates refer to and the pipeline does not bind, each with the
    /// key that follows it. The item of a loop is among them, because a pipeline does not know its
    /// loop.
    ///
    /// A task's label counts as bound only where that task has certainly run. Before that, the name
    /// refers to the state, as a step's name within the step itself refers to its last result.
    pub fn mentions(&self) -> &BTreeSet<Mention> {
        self.mentions.get_or_init(|| self.mentioned())
    }

    fn mentioned(&self) -> BTreeSet<Mention> {
        let in_order = !self.skips();
        let mut names = BTreeSet::new();
        for (place, task) in self.tasks.iter().enumerate() {
            let before = [&task.tool.config, &task.tool.input];
            let before = before.into_iter().flat_map(|value| value.templates());
            let after = task.set.iter().flat_map(|assignment| assignment.value.templates());
            let after = after.chain(task.rules.iter().flat_map(PolicyRule::templates));
            let mut add = |template: &Template, ran: usize| {
                let bound = |name: &str| {
                    name == "iter" || in_order && self.find(name).is_some_and(|label| label < ran)
                };
                let free = template.mentions().iter().filter(|mention| !bound(&mention.name));
                names.extend(free.cloned());
            };
            before.for_each(|template| add(template, place));
            after.for_each(|template| add(template, place + 1));
        }
        names
    }

    /// Returns `true` if a jump can skip a task that has not run.
    fn skips(&self) -> bool {
        self.tasks.iter().enumerate().any(|(place, task)| {
            task.rules.iter().any(|rule| match &rule.action {
                Action::Jump(Jump::To(label)) => self.find(label).is_some_and(|to| to > place + 1),
                _ => false,
            })
        })
    }
}
