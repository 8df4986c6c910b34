//! Compiles expressions of templates.

use std::sync::Arc;

use minijinja::machinery::{Span, ast};

use super::{Compiler, captured};
use crate::data::Data;
use crate::error::SyntaxError;
use crate::library::{self, Filter};
use crate::mention::{Mention, MentionSuffix};
use crate::ops::{Comparison, Operator};
use crate::program::{
    Application, Arguments, Arithmetic, Expr, Function, Method, PathKey, PathRoot, Slice,
};

impl Compiler<'_> {
    pub(super) fn expr(&mut self, expr: &ast::Expr<'_>) -> Result<Expr, SyntaxError> {
        self.nesting += 1;
        self.check_nesting(expr.span())?;
        let compiled = self.expr_inner(expr);
        self.nesting -= 1;
        compiled
    }

    fn boxed(&mut self, expr: &ast::Expr<'_>) -> Result<Box<Expr>, SyntaxError> {
        self.expr(expr).map(Box::new)
    }

    fn optional(&mut self, expr: Option<&ast::Expr<'_>>) -> Result<Option<Expr>, SyntaxError> {
        expr.map(|expr| self.expr(expr)).transpose()
    }

    // As in the evaluation, each kind of node has its own function, to keep the stack frames of the
    // recursion small.
    fn expr_inner(&mut self, expr: &ast::Expr<'_>) -> Result<Expr, SyntaxError> {
        match expr {
            ast::Expr::Const(node) => Ok(Expr::Const(node.value.clone())),
            ast::Expr::Var(node) => {
                self.mention(node.id, MentionSuffix::Nothing);
                Ok(Expr::Path(self.root(node.id), Vec::new()))
            }
            ast::Expr::GetAttr(node) => self.attribute(node),
            ast::Expr::GetItem(node) => self.item(node),
            ast::Expr::Slice(node) => self.slice(node),
            ast::Expr::UnaryOp(node) => match node.op {
                ast::UnaryOpKind::Not => self.boxed(&node.expr).map(Expr::Not),
                ast::UnaryOpKind::Neg => self.boxed(&node.expr).map(Expr::Negate),
            },
            ast::Expr::BinOp(node) => self.binary(node),
            ast::Expr::Compare(node) => self.comparison(node),
            ast::Expr::IfExpr(node) => self.choice(node),
            ast::Expr::Filter(node) => self.filter(node),
            ast::Expr::Test(node) => self.test(node),
            ast::Expr::Call(node) => self.call(node),
            ast::Expr::List(node) => self.exprs(&node.items).map(Expr::List),
            ast::Expr::Tuple(node) => self.exprs(&node.items).map(Expr::List),
            ast::Expr::Map(node) => self.map(node),
        }
    }

    fn attribute(&mut self, node: &ast::GetAttr<'_>) -> Result<Expr, SyntaxError> {
        let key: Arc<str> = Arc::from(node.name);
        let base = self.base(&node.expr, || MentionSuffix::Key(key.clone()))?;
        Ok(follow(base, PathKey::Name(key)))
    }

    fn item(&mut self, node: &ast::GetItem<'_>) -> Result<Expr, SyntaxError> {
        let key = match self.expr(&node.subscript_expr)? {
            Expr::Const(key) if key.as_str().is_some() => {
                PathKey::Name(Arc::from(key.as_str().unwrap_or_default()))
            }
            key => PathKey::Computed(key),
        };
        let base = self.base(&node.expr, || match &key {
            PathKey::Name(name) => MentionSuffix::Key(name.clone()),
            PathKey::Computed(_) => MentionSuffix::Computed,
        })?;
        Ok(follow(base, key))
    }

    /// Compiles the base of a key. A name is recorded as mentioned together with the key.
    fn base(
        &mut self,
        base: &ast::Expr<'_>,
        next: impl FnOnce() -> MentionSuffix,
    ) -> Result<Expr, SyntaxError> {
        match base {
            ast::Expr::Var(node) => {
                self.mention(node.id, next());
                Ok(Expr::Path(self.root(node.id), Vec::new()))
            }
            other => self.expr(other),
        }
    }

    fn mention(&mut self, name: &str, next: MentionSuffix) {
        if !self.is_bound(name) {
            self.mentions.insert(Mention { name: Arc::from(name), next });
        }
    }

    fn slice(&mut self, node: &ast::Slice<'_>) -> Result<Expr, SyntaxError> {
        Ok(Expr::Slice(Box::new(Slice {
            of: self.expr(&node.expr)?,
            start: self.optional(node.start.as_ref())?,
            stop: self.optional(node.stop.as_ref())?,
            step: self.optional(node.step.as_ref())?,
        })))
    }

    fn choice(&mut self, node: &ast::IfExpr<'_>) -> Result<Expr, SyntaxError> {
        Ok(Expr::If(Box::new((
            self.expr(&node.test_expr)?,
            self.expr(&node.true_expr)?,
            self.optional(node.false_expr.as_ref())?,
        ))))
    }

    fn filter(&mut self, node: &ast::Spanned<ast::Filter<'_>>) -> Result<Expr, SyntaxError> {
        let filter = self.known(library::filter(node.name), "filter", node.name, node.span())?;
        let input = match &node.expr {
            Some(input) => self.expr(input)?,
            None => captured(),
        };
        Ok(Expr::Filter(Box::new(Application {
            filter,
            input,
            arguments: self.arguments(&node.args)?,
        })))
    }

    fn test(&mut self, node: &ast::Spanned<ast::Test<'_>>) -> Result<Expr, SyntaxError> {
        let filter = self.known(library::test(node.name), "test", node.name, node.span())?;
        Ok(Expr::Test(Box::new(Application {
            filter,
            input: self.expr(&node.expr)?,
            arguments: self.arguments(&node.args)?,
        })))
    }

    fn map(&mut self, node: &ast::Map<'_>) -> Result<Expr, SyntaxError> {
        let keys = self.exprs(&node.keys)?;
        let values = self.exprs(&node.values)?;
        Ok(Expr::Map(keys.into_iter().zip(values).collect()))
    }

    fn exprs(&mut self, exprs: &[ast::Expr<'_>]) -> Result<Vec<Expr>, SyntaxError> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn root(&mut self, name: &str) -> PathRoot {
        if self.is_bound(name) {
            return PathRoot::Name(Arc::from(name));
        }
        self.names.insert(name.to_owned());
        match name {
            "workload" => PathRoot::Workload,
            "ctx" => PathRoot::Ctx,
            "step" => PathRoot::Step,
            "steps" => PathRoot::Steps,
            "output" | "outcome" => PathRoot::Output,
            "event" => PathRoot::Event,
            "iter" => PathRoot::Iter,
            "keychain" => PathRoot::Keychain,
            _ => PathRoot::Name(Arc::from(name)),
        }
    }

    fn binary(&mut self, node: &ast::Spanned<ast::BinOp<'_>>) -> Result<Expr, SyntaxError> {
        let left = self.expr(&node.left)?;
        let right = self.expr(&node.right)?;
        let operator = match operation(node.op) {
            Operation::And => return Ok(Expr::And(Box::new(left), Box::new(right))),
            Operation::Or => return Ok(Expr::Or(Box::new(left), Box::new(right))),
            Operation::Compare(comparison) => return Ok(compare(left, vec![(comparison, right)])),
            Operation::Compute(operator) => operator,
        };
        Ok(Expr::Arithmetic(Box::new(Arithmetic {
            operator,
            left,
            right,
            text: self.written(node.span()),
        })))
    }

    fn comparison(&mut self, node: &ast::Compare<'_>) -> Result<Expr, SyntaxError> {
        let first = self.expr(&node.expr)?;
        let mut rest = Vec::with_capacity(node.ops.len());
        for op in &node.ops {
            let comparison = match op.op {
                ast::CompareOpKind::Eq => Comparison::Equal,
                ast::CompareOpKind::Ne => Comparison::NotEqual,
                ast::CompareOpKind::Lt => Comparison::Less,
                ast::CompareOpKind::Lte => Comparison::LessOrEqual,
                ast::CompareOpKind::Gt => Comparison::Greater,
                ast::CompareOpKind::Gte => Comparison::GreaterOrEqual,
                ast::CompareOpKind::In => Comparison::In,
                ast::CompareOpKind::NotIn => Comparison::NotIn,
            };
            rest.push((comparison, self.expr(&op.expr)?));
        }
        Ok(compare(first, rest))
    }

    pub(super) fn call(&mut self, node: &ast::Spanned<ast::Call<'_>>) -> Result<Expr, SyntaxError> {
        match &node.expr {
            ast::Expr::Var(name) if !self.is_bound(name.id) => {
                let function = Function::named(name.id);
                if !function.is_known() {
                    self.names.insert(name.id.to_owned());
                }
                let arguments = self.arguments(&node.args)?;
                Ok(Expr::Call(Box::new((function, arguments))))
            }
            ast::Expr::GetAttr(attr) => Ok(Expr::Method(Box::new(Method {
                target: self.expr(&attr.expr)?,
                name: attr.name.into(),
                arguments: self.arguments(&node.args)?,
            }))),
            _ => Err(self.error(node.span(), "only functions and methods can be called")),
        }
    }

    fn arguments(&mut self, arguments: &[ast::CallArg<'_>]) -> Result<Arguments, SyntaxError> {
        let mut compiled = Arguments::default();
        for argument in arguments {
            match argument {
                ast::CallArg::Pos(expr) => compiled.positional.push(self.expr(expr)?),
                ast::CallArg::Kwarg(name, expr) => {
                    compiled.named.push(((*name).into(), self.expr(expr)?));
                }
                ast::CallArg::PosSplat(expr) | ast::CallArg::KwargSplat(expr) => {
                    return Err(self.error(expr.span(), "arguments cannot be unpacked with `*`"));
                }
            }
        }
        Ok(compiled)
    }

    fn known(
        &self,
        filter: Option<Filter>,
        what: &str,
        name: &str,
        span: Span,
    ) -> Result<Filter, SyntaxError> {
        filter.ok_or_else(|| {
            let message = match library::similar(what, name) {
                Some(similar) => format!("unknown {what} `{name}`; did you mean `{similar}`?"),
                None => format!("unknown {what} `{name}`"),
            };
            self.error(span, message)
        })
    }

    /// Returns the source text of an expression.
    fn written(&self, span: Span) -> Box<str> {
        let place = |offset| self.base + usize::try_from(offset).unwrap_or(usize::MAX - self.base);
        self.source
            .get(place(span.start_offset)..place(span.end_offset))
            .unwrap_or(self.source)
            .into()
    }
}

/// Category of a binary operator.
enum Operation {
    And,
    Or,
    Compute(Operator),
    Compare(Comparison),
}

fn operation(kind: ast::BinOpKind) -> Operation {
    match kind {
        ast::BinOpKind::ScAnd => Operation::And,
        ast::BinOpKind::ScOr => Operation::Or,
        ast::BinOpKind::Add => Operation::Compute(Operator::Add),
        ast::BinOpKind::Sub => Operation::Compute(Operator::Subtract),
        ast::BinOpKind::Mul => Operation::Compute(Operator::Multiply),
        ast::BinOpKind::Div => Operation::Compute(Operator::Divide),
        ast::BinOpKind::FloorDiv => Operation::Compute(Operator::FloorDivide),
        ast::BinOpKind::Rem => Operation::Compute(Operator::Remainder),
        ast::BinOpKind::Pow => Operation::Compute(Operator::Power),
        ast::BinOpKind::Concat => Operation::Compute(Operator::Concat),
        ast::BinOpKind::Eq => Operation::Compare(Comparison::Equal),
        ast::BinOpKind::Ne => Operation::Compare(Comparison::NotEqual),
        ast::BinOpKind::Lt => Operation::Compare(Comparison::Less),
        ast::BinOpKind::Lte => Operation::Compare(Comparison::LessOrEqual),
        ast::BinOpKind::Gt => Operation::Compare(Comparison::Greater),
        ast::BinOpKind::Gte => Operation::Compare(Comparison::GreaterOrEqual),
        ast::BinOpKind::In => Operation::Compare(Comparison::In),
    }
}

/// Appends a key to its base. A chain of keys becomes a single node.
fn follow(base: Expr, key: PathKey) -> Expr {
    match base {
        Expr::Path(root, mut keys) => {
            keys.push(key);
            Expr::Path(root, keys)
        }
        Expr::Get(base, mut keys) => {
            keys.push(key);
            Expr::Get(base, keys)
        }
        base => Expr::Get(Box::new(base), vec![key]),
    }
}

/// Builds a comparison. If it involves `event.name`, converts equivalent event names to one
/// spelling.
fn compare(mut first: Expr, mut rest: Vec<(Comparison, Expr)>) -> Expr {
    if is_event_name(&first) || rest.iter().any(|(_, expr)| is_event_name(expr)) {
        canonical(&mut first);
        for (_, expr) in &mut rest {
            canonical(expr);
        }
    }
    Expr::Compare(Box::new(first), rest)
}

fn is_event_name(expr: &Expr) -> bool {
    match expr {
        Expr::Path(PathRoot::Event, keys) => {
            matches!(keys.as_slice(), [PathKey::Name(name)] if **name == *"name")
        }
        _ => false,
    }
}

/// Replaces event names of other engines with the values of `event.name`.
fn canonical(expr: &mut Expr) {
    match expr {
        Expr::Const(value) => match value.as_str() {
            Some("call.done") => *value = Data::from("step.done"),
            Some("call.error" | "call.failed" | "step.error") => *value = Data::from("step.failed"),
            _ => {}
        },
        Expr::List(items) => items.iter_mut().for_each(canonical),
        _ => {}
    }
}
