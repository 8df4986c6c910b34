//! Compiler from text to a [`Program`]. minijinja parses; this module owns the result and rejects
//! constructs that it cannot run.
//!
//! Names are resolved as far as the text allows: filters and tests to their implementations, names
//! to their scopes. Errors carry their position in the author's text.

mod expr;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use minijinja::machinery::{Span, Token, ast, parse, parse_expr, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::error::SyntaxError;
use super::mention::Mention;
use super::program::{AssignTarget, CAPTURED, Expr, For, PathRoot, Program, Stmt, TemplateBody};

/// Maximum number of tokens in an expression or tag. The parser recurses per operator, so this
/// bounds its stack.
const TOKENS_PER_TAG_MAX: usize = 1500;

/// Maximum number of `elif` branches in a template. Each nests parsing and evaluation one level
/// deeper.
const ELIF_MAX: usize = 100;

/// Maximum nesting depth of expressions and blocks, which bounds the stack of an evaluation.
const NESTING_MAX: usize = 120;

/// Syntax settings: text stays as written, including a trailing newline.
static SYNTAX: LazyLock<SyntaxConfig> = LazyLock::new(|| {
    SyntaxConfig::builder().keep_trailing_newline(true).build().unwrap_or_default()
});

/// Returns `true` if a string contains template delimiters.
pub(super) fn has_delimiters(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

pub(super) fn template(source: &str) -> Result<Program, SyntaxError> {
    let mut compiler = Compiler::new(source, 0);
    compiler.check_tokens(source, false)?;
    let body = compiler.body(source)?;
    Ok(compiler.finish(body))
}

/// Compiles a condition: a template, or an expression without braces.
pub(super) fn condition(source: &str) -> Result<Program, SyntaxError> {
    let trimmed = source.trim();
    let mut compiler = Compiler::new(source, source.len() - source.trim_start().len());
    let bare = !has_delimiters(trimmed);
    compiler.check_tokens(trimmed, bare)?;
    let body = if bare {
        let expr = parse_expr(trimmed).map_err(|error| compiler.parse_error(&error))?;
        TemplateBody::Sole(compiler.expr(&expr)?)
    } else {
        compiler.body(trimmed)?
    };
    Ok(compiler.finish(body))
}

struct Compiler<'a> {
    /// Complete text, as the author wrote it.
    source: &'a str,
    /// Offset of the parsed part in the source.
    base: usize,
    names: BTreeSet<String>,
    mentions: BTreeSet<Mention>,
    /// Names bound by the template, innermost block last.
    bound: Vec<Vec<Arc<str>>>,
    nesting: usize,
    loops: usize,
}

impl<'a> Compiler<'a> {
    fn new(source: &'a str, base: usize) -> Self {
        Self {
            source,
            base,
            names: BTreeSet::new(),
            mentions: BTreeSet::new(),
            bound: vec![Vec::new()],
            nesting: 0,
            loops: 0,
        }
    }

    fn finish(self, body: TemplateBody) -> Program {
        let (names, mentions) = (self.names, self.mentions);
        Program { source: Arc::from(self.source), body, names, mentions }
    }

    fn body(&mut self, text: &str) -> Result<TemplateBody, SyntaxError> {
        let parsed = parse(text, "<template>", SYNTAX.clone());
        let parsed = parsed.map_err(|error| self.parse_error(&error))?;
        let ast::Stmt::Template(template) = &parsed else {
            return Err(self.error(Span::default(), "this is not a template"));
        };
        match template.children.as_slice() {
            [ast::Stmt::EmitExpr(sole)] => return self.expr(&sole.expr).map(TemplateBody::Sole),
            [ast::Stmt::EmitExpr(sole), ast::Stmt::EmitRaw(end)] if is_newline(end.raw) => {
                return self.expr(&sole.expr).map(TemplateBody::Sole);
            }
            _ => {}
        }
        self.block(&template.children).map(TemplateBody::Text)
    }

    /// Checks limits that bound the parser's recursion, before it runs.
    fn check_tokens(&self, text: &str, bare: bool) -> Result<(), SyntaxError> {
        let (mut tokens, mut elifs, mut starts_tag) = (0, 0, false);
        for token in tokenize(text, bare, SYNTAX.clone()) {
            // The parser reports tokenizer errors with better messages.
            let Ok((token, span)) = token else {
                return Ok(());
            };
            match token {
                Token::VariableStart | Token::BlockStart | Token::TemplateData(_) => tokens = 0,
                Token::Ident("elif") if starts_tag => elifs += 1,
                _ => tokens += 1,
            }
            starts_tag = matches!(token, Token::BlockStart);
            if tokens > TOKENS_PER_TAG_MAX {
                let message = format!("an expression has at most {TOKENS_PER_TAG_MAX} parts");
                return Err(self.error(span, message));
            }
            if elifs > ELIF_MAX {
                let message = format!("a template has at most {ELIF_MAX} `elif` branches");
                return Err(self.error(span, message));
            }
        }
        Ok(())
    }

    fn block(&mut self, statements: &[ast::Stmt<'_>]) -> Result<Vec<Stmt>, SyntaxError> {
        statements.iter().map(|statement| self.statement(statement)).collect()
    }

    fn statement(&mut self, statement: &ast::Stmt<'_>) -> Result<Stmt, SyntaxError> {
        self.nesting += 1;
        let compiled = self.statement_inner(statement);
        self.nesting -= 1;
        compiled
    }

    fn statement_inner(&mut self, statement: &ast::Stmt<'_>) -> Result<Stmt, SyntaxError> {
        match statement {
            ast::Stmt::EmitRaw(node) => Ok(Stmt::Raw(node.raw.into())),
            ast::Stmt::EmitExpr(node) => self.expr(&node.expr).map(Stmt::Emit),
            ast::Stmt::IfCond(node) => {
                self.check_nesting(node.span())?;
                Ok(Stmt::If {
                    condition: self.expr(&node.expr)?,
                    then: self.block(&node.true_body)?,
                    otherwise: self.block(&node.false_body)?,
                })
            }
            ast::Stmt::ForLoop(node) => self.for_loop(node),
            ast::Stmt::WithBlock(node) => self.with_block(node),
            ast::Stmt::Set(node) => {
                let value = self.expr(&node.expr)?;
                Ok(Stmt::Set(self.target(&node.target)?, value))
            }
            ast::Stmt::SetBlock(node) => {
                let body = self.inner_block(&node.body)?;
                let value = match &node.filter {
                    Some(filter) => self.expr(filter)?,
                    None => captured(),
                };
                Ok(Stmt::SetBlock(self.target(&node.target)?, value, body))
            }
            ast::Stmt::FilterBlock(node) => {
                let body = self.inner_block(&node.body)?;
                Ok(Stmt::FilterBlock(self.expr(&node.filter)?, body))
            }
            ast::Stmt::Do(node) => self.call(&node.call).map(Stmt::Do),
            ast::Stmt::Continue(node) => self.in_loop(node.span(), Stmt::Continue),
            ast::Stmt::Break(node) => self.in_loop(node.span(), Stmt::Break),
            other => Err(self.unsupported(other)),
        }
    }

    fn for_loop(&mut self, node: &ast::Spanned<ast::ForLoop<'_>>) -> Result<Stmt, SyntaxError> {
        self.check_nesting(node.span())?;
        if node.recursive {
            return Err(self.error(node.span(), "recursive loops are not supported"));
        }
        let iter = self.expr(&node.iter)?;
        self.bound.push(vec![Arc::from("loop")]);
        let target = self.target(&node.target)?;
        let filter = match &node.filter_expr {
            Some(filter) => Some(self.expr(filter)?),
            None => None,
        };
        self.loops += 1;
        let body = self.block(&node.body)?;
        self.loops -= 1;
        self.bound.pop();
        Ok(Stmt::For(Box::new(For {
            target,
            iter,
            filter,
            body,
            otherwise: self.block(&node.else_body)?,
        })))
    }

    fn with_block(&mut self, node: &ast::Spanned<ast::WithBlock<'_>>) -> Result<Stmt, SyntaxError> {
        self.check_nesting(node.span())?;
        let mut values = Vec::with_capacity(node.assignments.len());
        for (_, value) in &node.assignments {
            values.push(self.expr(value)?);
        }
        self.bound.push(Vec::new());
        let mut assignments = Vec::with_capacity(values.len());
        for ((target, _), value) in node.assignments.iter().zip(values) {
            assignments.push((self.target(target)?, value));
        }
        let body = self.block(&node.body)?;
        self.bound.pop();
        Ok(Stmt::With { assignments, body })
    }

    fn inner_block(&mut self, statements: &[ast::Stmt<'_>]) -> Result<Vec<Stmt>, SyntaxError> {
        self.bound.push(Vec::new());
        let body = self.block(statements)?;
        self.bound.pop();
        Ok(body)
    }

    fn in_loop(&self, span: Span, statement: Stmt) -> Result<Stmt, SyntaxError> {
        if self.loops == 0 {
            return Err(self.error(span, "there is no loop here to leave or continue"));
        }
        Ok(statement)
    }

    /// Compiles the target of an assignment. Its names are bound from here on.
    fn target(&mut self, target: &ast::Expr<'_>) -> Result<AssignTarget, SyntaxError> {
        match target {
            ast::Expr::Var(name) => {
                let name: Arc<str> = Arc::from(name.id);
                if let Some(block) = self.bound.last_mut() {
                    block.push(Arc::clone(&name));
                }
                Ok(AssignTarget::Name(name))
            }
            ast::Expr::List(list) => self.targets(&list.items),
            ast::Expr::Tuple(tuple) => self.targets(&tuple.items),
            ast::Expr::GetAttr(attr) => match &attr.expr {
                ast::Expr::Var(name) => {
                    Ok(AssignTarget::Field(Arc::from(name.id), Arc::from(attr.name)))
                }
                _ => Err(self.error(attr.span(), "only a field of a namespace() can be set")),
            },
            other => Err(self.error(other.span(), "this cannot be assigned to")),
        }
    }

    fn targets(&mut self, targets: &[ast::Expr<'_>]) -> Result<AssignTarget, SyntaxError> {
        targets
            .iter()
            .map(|target| self.target(target))
            .collect::<Result<_, _>>()
            .map(AssignTarget::Unpack)
    }

    fn is_bound(&self, name: &str) -> bool {
        self.bound.iter().flatten().any(|bound| **bound == *name)
    }

    fn check_nesting(&self, span: Span) -> Result<(), SyntaxError> {
        if self.nesting > NESTING_MAX {
            let message = format!("expressions and blocks nest at most {NESTING_MAX} levels");
            return Err(self.error(span, message));
        }
        Ok(())
    }

    fn unsupported(&self, statement: &ast::Stmt<'_>) -> SyntaxError {
        let (span, what) = match statement {
            ast::Stmt::Macro(node) => (node.span(), "macros are"),
            ast::Stmt::CallBlock(node) => (node.span(), "call blocks are"),
            ast::Stmt::AutoEscape(node) => (node.span(), "automatic escaping is"),
            ast::Stmt::Block(node) => (node.span(), "inheritance is"),
            ast::Stmt::Extends(node) => (node.span(), "inheritance is"),
            ast::Stmt::Include(node) => (node.span(), "including other templates is"),
            ast::Stmt::Import(node) => (node.span(), "importing other templates is"),
            ast::Stmt::FromImport(node) => (node.span(), "importing other templates is"),
            _ => (Span::default(), "this statement is"),
        };
        self.error(span, format!("{what} not supported; a template stands for itself"))
    }

    fn error(&self, span: Span, message: impl Into<String>) -> SyntaxError {
        let offset = usize::try_from(span.start_offset).unwrap_or(usize::MAX);
        SyntaxError::at_offset(self.source, self.base.saturating_add(offset), message)
    }

    fn parse_error(&self, error: &minijinja::Error) -> SyntaxError {
        let message = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        let offset = error.range().map_or(0, |range| range.start);
        SyntaxError::at_offset(self.source, self.base + offset, message)
    }
}

fn is_newline(text: &str) -> bool {
    matches!(text, "\n" | "\r\n")
}

/// Returns an expression for the captured text of the block that a filter is applied to.
fn captured() -> Expr {
    Expr::Path(PathRoot::Name(Arc::from(CAPTURED)), Vec::new())
}
