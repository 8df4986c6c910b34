//! Compiled form of a template: a self-contained tree.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::data::Data;
use super::library::{self, Filter};
use super::mention::Mention;
use super::ops::{Comparison, Operator};

pub(super) struct Program {
    pub(super) source: Arc<str>,
    pub(super) body: TemplateBody,
    pub(super) names: BTreeSet<String>,
    pub(super) mentions: BTreeSet<Mention>,
}

/// Body of a template: an expression or text.
pub(super) enum TemplateBody {
    /// Exactly one expression, which keeps its type.
    Sole(Expr),
    /// Any other template, which renders to text.
    Text(Vec<Stmt>),
}

/// A statement of a text template.
pub(super) enum Stmt {
    Raw(Box<str>),
    Emit(Expr),
    If {
        condition: Expr,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    For(Box<For>),
    With {
        assignments: Vec<(AssignTarget, Expr)>,
        body: Vec<Stmt>,
    },
    Set(AssignTarget, Expr),
    /// `{% set x %}…{% endset %}`. The expression reads the text as [`CAPTURED`].
    SetBlock(AssignTarget, Expr, Vec<Stmt>),
    /// `{% filter f %}…{% endfilter %}`. The expression reads the text as [`CAPTURED`].
    FilterBlock(Expr, Vec<Stmt>),
    Do(Expr),
    Continue,
    Break,
}

/// Local name that holds captured text for its filter. Authors cannot write it.
pub(super) const CAPTURED: &str = "";

pub(super) struct For {
    pub(super) target: AssignTarget,
    pub(super) iter: Expr,
    pub(super) filter: Option<Expr>,
    pub(super) body: Vec<Stmt>,
    pub(super) otherwise: Vec<Stmt>,
}

pub(super) enum AssignTarget {
    Name(Arc<str>),
    Unpack(Vec<AssignTarget>),
    /// A field of a `namespace()`.
    Field(Arc<str>, Arc<str>),
}

pub(super) enum Expr {
    Const(Data),
    /// A name and the keys that follow it.
    Path(PathRoot, Vec<PathKey>),
    /// Keys that follow any other expression.
    Get(Box<Expr>, Vec<PathKey>),
    Slice(Box<Slice>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Arithmetic(Box<Arithmetic>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    If(Box<(Expr, Expr, Option<Expr>)>),
    Filter(Box<Application>),
    Test(Box<Application>),
    Call(Box<(Function, Arguments)>),
    Method(Box<Method>),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
}

/// A filter or test and its input.
pub(super) struct Application {
    pub(super) filter: Filter,
    pub(super) input: Expr,
    pub(super) arguments: Arguments,
}

pub(super) struct Method {
    pub(super) target: Expr,
    pub(super) name: Box<str>,
    pub(super) arguments: Arguments,
}

pub(super) struct Slice {
    pub(super) of: Expr,
    pub(super) start: Option<Expr>,
    pub(super) stop: Option<Expr>,
    pub(super) step: Option<Expr>,
}

pub(super) struct Arithmetic {
    pub(super) operator: Operator,
    pub(super) left: Expr,
    pub(super) right: Expr,
    /// Source text of the expression, for messages.
    pub(super) text: Box<str>,
}

/// Function that a call refers to.
pub(super) enum Function {
    Range,
    Now,
    Uuid4,
    Dict,
    Namespace,
    Zip,
    Min,
    Max,
    /// A filter with the name of a function: `len(x)` is `x | length`.
    Filter(Filter),
    /// Unknown function. Calling it is an error; compiling it is not, so that playbooks for other
    /// engines can be registered.
    Unknown(Box<str>),
}

impl Function {
    pub(super) fn named(name: &str) -> Self {
        let filter = match name {
            "range" => return Self::Range,
            "now" => return Self::Now,
            "uuid4" | "uuid" => return Self::Uuid4,
            "dict" => return Self::Dict,
            "namespace" => return Self::Namespace,
            "zip" => return Self::Zip,
            "min" => return Self::Min,
            "max" => return Self::Max,
            "len" => "length",
            "int" => "int",
            "str" => "string",
            "float" => "float",
            "bool" => "bool",
            "json" => "tojson",
            _ => return Self::Unknown(name.into()),
        };
        match library::filter(filter) {
            Some(filter) => Self::Filter(filter),
            None => Self::Unknown(name.into()),
        }
    }

    pub(super) fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }
}

/// Arguments of a call, in source order.
#[derive(Default)]
pub(super) struct Arguments {
    pub(super) positional: Vec<Expr>,
    pub(super) named: Vec<(Box<str>, Expr)>,
}

/// Start of a path: a scope known at compile time, or a name.
pub(super) enum PathRoot {
    Workload,
    Ctx,
    Step,
    Steps,
    Output,
    Event,
    Iter,
    Keychain,
    /// Any other name, or one of the above that the template itself binds.
    Name(Arc<str>),
}

/// A step of a path.
pub(super) enum PathKey {
    Name(Arc<str>),
    Computed(Expr),
}
