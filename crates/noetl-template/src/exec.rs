//! Execution of the statements of a text template.

use std::sync::Arc;

use super::data::Data;
use super::error::EvalError;
use super::eval::Evaluation;
use super::json::{show, text};
use super::limit::check_items;
use super::listed;
use super::object::{LoopState, Namespace};
use super::program::{AssignTarget, CAPTURED, Expr, For, Stmt};

/// Control flow after a block.
#[derive(PartialEq, Eq)]
enum BlockExit {
    Next,
    Continue,
    Break,
}

impl Evaluation<'_> {
    pub(super) fn text(&mut self, statements: &[Stmt]) -> Result<String, EvalError> {
        let mut out = String::new();
        self.in_frame(|run| run.block(statements, &mut out))?;
        Ok(out)
    }

    fn block(&mut self, statements: &[Stmt], out: &mut String) -> Result<BlockExit, EvalError> {
        for statement in statements {
            match self.statement(statement, out)? {
                BlockExit::Next => {}
                interrupted => return Ok(interrupted),
            }
        }
        Ok(BlockExit::Next)
    }

    fn statement(&mut self, statement: &Stmt, out: &mut String) -> Result<BlockExit, EvalError> {
        self.fuel.burn(1)?;
        match statement {
            Stmt::Raw(raw) => self.emit(raw, out)?,
            Stmt::Emit(expr) => {
                let value = self.eval(expr)?;
                let text = text(&value)?;
                self.fuel.burn_text(text.len())?;
                self.emit(&text, out)?;
            }
            Stmt::If { condition, then, otherwise } => {
                let chosen = if self.eval(condition)?.is_true() { then } else { otherwise };
                return self.block(chosen, out);
            }
            Stmt::For(node) => return self.repeat(node, out),
            Stmt::With { assignments, body } => {
                let mut values = Vec::with_capacity(assignments.len());
                for (target, expr) in assignments {
                    values.push((target, self.eval_to_bind(expr)?));
                }
                return self.in_frame(|run| {
                    for (target, value) in values {
                        run.bind(target, value)?;
                    }
                    run.block(body, out)
                });
            }
            Stmt::Set(target, expr) => {
                let value = self.eval_to_bind(expr)?;
                self.bind(target, value)?;
            }
            Stmt::SetBlock(target, expr, body) => {
                let value = self.capture(body, expr)?;
                self.bind(target, value)?;
            }
            Stmt::FilterBlock(expr, body) => {
                let value = self.capture(body, expr)?;
                self.emit(&text(&value)?, out)?;
            }
            Stmt::Do(expr) => {
                self.eval(expr)?;
            }
            Stmt::Continue => return Ok(BlockExit::Continue),
            Stmt::Break => return Ok(BlockExit::Break),
        }
        Ok(BlockExit::Next)
    }

    fn emit(&mut self, text: &str, out: &mut String) -> Result<(), EvalError> {
        self.output.take(text.len())?;
        out.push_str(text);
        Ok(())
    }

    fn repeat(&mut self, node: &For, out: &mut String) -> Result<BlockExit, EvalError> {
        let items = self.items(node)?;
        if items.is_empty() {
            return self.block(&node.otherwise, out);
        }
        self.loops += 1;
        for index in 0..items.len() {
            self.fuel.burn(1)?;
            let flow = self.in_frame(|run| {
                let state = LoopState { index, items: Arc::clone(&items), depth: run.loops - 1 };
                run.locals.push((Arc::from("loop"), Data::from_object(state)));
                run.bind(&node.target, items[index].clone())?;
                run.block(&node.body, out)
            })?;
            if flow == BlockExit::Break {
                break;
            }
        }
        self.loops -= 1;
        Ok(BlockExit::Next)
    }

    /// Returns the items of a loop: those of a list, the keys of a map, or none for an undefined
    /// value.
    fn items(&mut self, node: &For) -> Result<Arc<[Data]>, EvalError> {
        let value = self.eval_to_bind(&node.iter)?;
        let value = listed::items(&value).unwrap_or(value);
        check_items(Some(value.len().unwrap_or(0)))?;
        let iter = value
            .try_iter()
            .map_err(|_| EvalError::new(format!("cannot loop over {}", show(&value))))?;
        let mut items = Vec::new();
        for item in iter.checked() {
            let item = item?;
            let wanted = match &node.filter {
                Some(filter) => self.in_frame(|run| {
                    run.bind(&node.target, item.clone())?;
                    Ok(run.eval(filter)?.is_true())
                })?,
                None => true,
            };
            if wanted {
                items.push(item);
            }
        }
        Ok(Arc::from(items))
    }

    /// Renders a block to a separate buffer and evaluates an expression on its text.
    fn capture(&mut self, body: &[Stmt], expr: &Expr) -> Result<Data, EvalError> {
        let mut captured = String::new();
        self.in_frame(|run| {
            run.block(body, &mut captured)?;
            run.locals.push((Arc::from(CAPTURED), Data::from(captured)));
            run.eval(expr)
        })
    }

    /// Runs `body` in a new frame of local names, which are removed afterwards.
    fn in_frame<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        let outer = std::mem::replace(&mut self.frame, self.locals.len());
        let done = body(self);
        self.locals.truncate(self.frame);
        self.frame = outer;
        done
    }

    /// Evaluates a value to be bound to a name; see [`super::limit::Fuel::burn_tree`].
    fn eval_to_bind(&mut self, expr: &Expr) -> Result<Data, EvalError> {
        let value = self.eval(expr)?;
        if !matches!(expr, Expr::Path(..) | Expr::Const(_)) {
            self.fuel.burn_tree(&value)?;
        }
        Ok(value)
    }

    fn bind(&mut self, target: &AssignTarget, value: Data) -> Result<(), EvalError> {
        match target {
            AssignTarget::Name(name) => {
                let own = &mut self.locals[self.frame..];
                match own.iter_mut().find(|(bound, _)| bound == name) {
                    Some((_, bound)) => *bound = value,
                    None => self.locals.push((Arc::clone(name), value)),
                }
                Ok(())
            }
            AssignTarget::Unpack(targets) => self.unpack(targets, &value),
            AssignTarget::Field(name, field) => {
                if value.downcast_object_ref::<Namespace>().is_some() {
                    return Err(EvalError::new("a namespace() cannot be put into another value"));
                }
                let namespace = self.local(name);
                match namespace.as_ref().and_then(Data::downcast_object_ref::<Namespace>) {
                    Some(namespace) => {
                        namespace.set(field, value);
                        Ok(())
                    }
                    None => Err(EvalError::new(format!(
                        "cannot set {name}.{field}: only a namespace() can be changed"
                    ))),
                }
            }
        }
    }

    fn unpack(&mut self, targets: &[AssignTarget], value: &Data) -> Result<(), EvalError> {
        let items: Vec<Data> = match value.as_object() {
            Some(_) => value.try_iter()?.take(targets.len() + 1).collect(),
            None => Vec::new(),
        };
        if items.len() != targets.len() {
            return Err(EvalError::new(format!(
                "cannot unpack {} into {} names",
                show(value),
                targets.len()
            )));
        }
        for (target, item) in targets.iter().zip(items) {
            self.bind(target, item)?;
        }
        Ok(())
    }
}
