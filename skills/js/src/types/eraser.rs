//! The walk over a program that marks its types.

use oxc_ast::ast::*;
use oxc_ast_visit::Visit;
use oxc_ast_visit::walk;
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use super::Failure;
use super::text::Text;

/// Words before the name of a member that only types know.
const MODIFIERS: [&str; 6] = ["abstract", "declare", "override", "private", "protected", "public"];

pub struct Eraser<'s> {
    text: Text<'s>,
    failure: Option<Failure>,
}

fn start(span: Span) -> usize {
    span.start as usize
}

fn end(span: Span) -> usize {
    span.end as usize
}

/// Whether a namespace has nothing but types.
fn is_types(body: &TSNamespaceDeclarationBody<'_>) -> bool {
    match body {
        TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => inner.declare || is_types(&inner.body),
        TSNamespaceDeclarationBody::TSModuleBlock(block) => block.body.iter().all(|statement| match statement {
            Statement::TSInterfaceDeclaration(_) | Statement::TSTypeAliasDeclaration(_) => true,
            Statement::TSNamespaceDeclaration(inner) => inner.declare || is_types(&inner.body),
            Statement::ExportDeclaration(export) => match &export.declaration {
                Declaration::TSInterfaceDeclaration(_) | Declaration::TSTypeAliasDeclaration(_) => true,
                Declaration::TSNamespaceDeclaration(inner) => inner.declare || is_types(&inner.body),
                _ => false,
            },
            _ => false,
        }),
    }
}

/// Whether a declaration is there for types alone.
fn is_type(declaration: &Declaration<'_>) -> bool {
    match declaration {
        Declaration::VariableDeclaration(variables) => variables.declare,
        Declaration::FunctionDeclaration(function) => function.declare || function.body.is_none(),
        Declaration::ClassDeclaration(class) => class.declare,
        Declaration::TSTypeAliasDeclaration(_)
        | Declaration::TSInterfaceDeclaration(_)
        | Declaration::TSExternalModuleDeclaration(_)
        | Declaration::TSGlobalDeclaration(_) => true,
        Declaration::TSEnumDeclaration(declared) => declared.declare,
        Declaration::TSNamespaceDeclaration(space) => space.declare || is_types(&space.body),
        Declaration::TSImportEqualsDeclaration(import) => import.import_kind == ImportOrExportKind::Type,
    }
}

impl<'s> Eraser<'s> {
    pub fn new(text: Text<'s>) -> Self {
        Self { text, failure: None }
    }

    pub fn finish(self) -> Result<String, Failure> {
        self.failure.map_or_else(|| Ok(self.text.finish()), Err)
    }

    fn refuse(&mut self, what: &str, span: Span) {
        let message = match what.contains('`') {
            true => what.to_owned(),
            false => format!("TypeScript {what} is not supported in strip-only mode"),
        };
        let code = "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX";
        self.failure.get_or_insert(Failure { code, message, at: start(span) });
    }

    fn blank(&mut self, span: Span) {
        self.text.blank(start(span), end(span));
    }

    /// Erases what stands where a statement or a member may stand: what is around it must not run together.
    fn drop_whole(&mut self, span: Span) {
        self.text.put(start(span), b';');
        self.blank(span);
    }

    /// Erases a mark such as `?` that follows a name, and what is between them.
    fn drop_mark(&mut self, after: usize, mark: &str) {
        let at = self.text.skip(after);
        if self.text.starts_with(at, mark) {
            self.text.blank(at, at + mark.len());
        }
    }

    /// Erases an entry of a list, with the comma behind it.
    fn drop_entry(&mut self, span: Span) {
        let comma = self.text.skip(end(span));
        let to = if self.text.starts_with(comma, ",") { comma + 1 } else { end(span) };
        self.text.blank(start(span), to);
    }

    /// A statement that is ended by its line needs an end of its own where its last part was a type: the next line may begin with a
    /// bracket.
    fn close(&mut self, span: Span) {
        let last = self.text.last_before(end(span));
        if self.text.is_blank(last) {
            self.text.put(last, b';');
        }
    }

    /// Erases the words of types before a member's name.
    fn drop_modifiers(&mut self, from: usize, name: usize, may_be_readonly: bool) {
        let mut at = self.text.skip(from);
        let mut is_first = true;
        while at < name {
            let word_end = self.text.word_end(at);
            if word_end == at {
                return;
            }
            let word = self.text.part(at, word_end);
            if MODIFIERS.contains(&word) || (may_be_readonly && word == "readonly") {
                if is_first {
                    self.text.put(at, b';');
                }
                self.text.blank(at, word_end);
            }
            is_first = false;
            at = self.text.skip(word_end);
        }
    }

    fn after_decorators(decorators: &[Decorator<'_>], span: Span) -> usize {
        decorators.last().map_or(start(span), |decorator| end(decorator.span))
    }

    /// The end of a member's name, with its bracket.
    fn name_end(&self, key: &PropertyKey<'_>, is_computed: bool) -> usize {
        let after = end(key.span());
        if !is_computed {
            return after;
        }
        let bracket = self.text.skip(after);
        if self.text.starts_with(bracket, "]") { bracket + 1 } else { after }
    }
}

impl<'a> Visit<'a> for Eraser<'_> {
    fn visit_statement(&mut self, statement: &Statement<'a>) {
        match statement {
            Statement::ImportDeclaration(import) if import.import_kind == ImportOrExportKind::Type => {
                return self.drop_whole(import.span);
            }
            Statement::ExportDeclaration(export) if is_type(&export.declaration) => {
                return self.drop_whole(export.span);
            }
            Statement::ExportNamedDeclaration(export) if export.export_kind == ImportOrExportKind::Type => {
                return self.drop_whole(export.span);
            }
            Statement::ExportFromDeclaration(export) if export.export_kind == ImportOrExportKind::Type => {
                return self.drop_whole(export.span);
            }
            Statement::ExportAllDeclaration(export) if export.export_kind == ImportOrExportKind::Type => {
                return self.drop_whole(export.span);
            }
            Statement::ExportDefaultDeclaration(export) => match &export.declaration {
                ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => return self.drop_whole(export.span),
                ExportDefaultDeclarationKind::FunctionDeclaration(function) if function.body.is_none() => {
                    return self.drop_whole(export.span);
                }
                _ => {}
            },
            Statement::TSNamespaceExportDeclaration(export) => return self.drop_whole(export.span),
            Statement::TSExportAssignment(export) => return self.refuse("export assignment", export.span),
            _ => {
                if let Some(declaration) = statement.as_declaration().filter(|declaration| is_type(declaration)) {
                    return self.drop_whole(declaration.span());
                }
            }
        }
        walk::walk_statement(self, statement);
        self.close(statement.span());
    }

    fn visit_ts_enum_declaration(&mut self, declared: &TSEnumDeclaration<'a>) {
        self.refuse("enum", declared.span);
    }

    fn visit_ts_namespace_declaration(&mut self, declared: &TSNamespaceDeclaration<'a>) {
        self.refuse("namespace declaration", declared.span);
    }

    fn visit_ts_import_equals_declaration(&mut self, declared: &TSImportEqualsDeclaration<'a>) {
        self.refuse("import equals declaration", declared.span);
    }

    fn visit_ts_type_assertion(&mut self, assertion: &TSTypeAssertion<'a>) {
        let words = "The angle-bracket syntax for type assertions, `<T>expr`, is not supported in type strip mode. \
            Instead, use the 'as' syntax: `expr as T`.";
        self.refuse(words, assertion.span);
    }

    fn visit_import_specifier(&mut self, specifier: &ImportSpecifier<'a>) {
        if specifier.import_kind == ImportOrExportKind::Type {
            self.drop_entry(specifier.span);
        }
    }

    fn visit_export_specifier(&mut self, specifier: &ExportSpecifier<'a>) {
        if specifier.export_kind == ImportOrExportKind::Type {
            self.drop_entry(specifier.span);
        }
    }

    fn visit_ts_type_annotation(&mut self, annotation: &TSTypeAnnotation<'a>) {
        self.blank(annotation.span);
    }

    fn visit_ts_type_parameter_declaration(&mut self, parameters: &TSTypeParameterDeclaration<'a>) {
        self.blank(parameters.span);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, arguments: &TSTypeParameterInstantiation<'a>) {
        self.blank(arguments.span);
    }

    fn visit_ts_this_parameter(&mut self, parameter: &TSThisParameter<'a>) {
        self.drop_entry(parameter.span);
    }

    fn visit_ts_as_expression(&mut self, expression: &TSAsExpression<'a>) {
        self.text.blank(end(expression.expression.span()), end(expression.span));
        self.visit_expression(&expression.expression);
    }

    fn visit_ts_satisfies_expression(&mut self, expression: &TSSatisfiesExpression<'a>) {
        self.text.blank(end(expression.expression.span()), end(expression.span));
        self.visit_expression(&expression.expression);
    }

    fn visit_ts_non_null_expression(&mut self, expression: &TSNonNullExpression<'a>) {
        self.text.blank(end(expression.span) - 1, end(expression.span));
        self.visit_expression(&expression.expression);
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if declarator.definite {
            self.drop_mark(end(declarator.id.span()), "!");
        }
        walk::walk_variable_declarator(self, declarator);
    }

    fn visit_formal_parameter(&mut self, parameter: &FormalParameter<'a>) {
        if parameter.accessibility.is_some() || parameter.readonly || parameter.r#override {
            return self.refuse("parameter property", parameter.span);
        }
        if parameter.optional {
            self.drop_mark(end(parameter.pattern.span()), "?");
        }
        walk::walk_formal_parameter(self, parameter);
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        let parameters = arrow.params.span;
        // No line may end before the list of parameters, where a word such as `return` or `async` stands before it.
        if let Some(types) = &arrow.type_parameters
            && self.text.has_break(start(types.span), start(parameters))
        {
            self.text.put(start(types.span), b'(');
            self.text.blank(start(parameters), start(parameters) + 1);
        }
        // And none before `=>`.
        if let Some(returned) = &arrow.return_type
            && self.text.has_break(end(parameters), end(returned.span))
        {
            let last = self.text.last_before(end(returned.span));
            self.text.put(last, b')');
            self.text.blank(end(parameters) - 1, end(parameters));
        }
        walk::walk_arrow_function_expression(self, arrow);
    }

    fn visit_class(&mut self, class: &Class<'a>) {
        let from = Self::after_decorators(&class.decorators, class.span);
        let mut at = self.text.skip(from);
        while !self.text.starts_with(at, "class") && self.text.word_end(at) > at {
            let word_end = self.text.word_end(at);
            if self.text.part(at, word_end) == "abstract" {
                self.text.blank(at, word_end);
            }
            at = self.text.skip(word_end);
        }
        if let Some(last) = class.implements.last() {
            let name = class.id.as_ref().map(|id| end(id.span));
            let types = class.type_parameters.as_ref().map(|types| end(types.span));
            let heritage = class.heritage.as_ref().map(|heritage| {
                let types = heritage.type_arguments.as_ref().map(|types| end(types.span));
                types.unwrap_or_else(|| end(heritage.expression.span()))
            });
            let before = heritage.or(types).or(name).unwrap_or(at + "class".len());
            let word = self.text.skip(before);
            self.text.blank(word, end(last.span));
        }
        self.visit_decorators(&class.decorators);
        if let Some(types) = &class.type_parameters {
            self.visit_ts_type_parameter_declaration(types);
        }
        if let Some(heritage) = &class.heritage {
            self.visit_class_heritage(heritage);
        }
        self.visit_class_body(&class.body);
    }

    fn visit_ts_index_signature(&mut self, signature: &TSIndexSignature<'a>) {
        self.drop_whole(signature.span);
    }

    fn visit_method_definition(&mut self, method: &MethodDefinition<'a>) {
        if method.r#type == MethodDefinitionType::TSAbstractMethodDefinition || method.value.body.is_none() {
            return self.drop_whole(method.span);
        }
        let from = Self::after_decorators(&method.decorators, method.span);
        self.drop_modifiers(from, start(method.key.span()), false);
        if method.optional {
            self.drop_mark(self.name_end(&method.key, method.computed), "?");
        }
        walk::walk_method_definition(self, method);
    }

    fn visit_property_definition(&mut self, property: &PropertyDefinition<'a>) {
        if property.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition || property.declare {
            return self.drop_whole(property.span);
        }
        let from = Self::after_decorators(&property.decorators, property.span);
        self.drop_modifiers(from, start(property.key.span()), true);
        let name = self.name_end(&property.key, property.computed);
        if property.optional {
            self.drop_mark(name, "?");
        }
        if property.definite {
            self.drop_mark(name, "!");
        }
        walk::walk_property_definition(self, property);
        self.close(property.span);
    }

    fn visit_accessor_property(&mut self, property: &AccessorProperty<'a>) {
        if property.r#type == AccessorPropertyType::TSAbstractAccessorProperty {
            return self.drop_whole(property.span);
        }
        let from = Self::after_decorators(&property.decorators, property.span);
        self.drop_modifiers(from, start(property.key.span()), true);
        if property.definite {
            self.drop_mark(self.name_end(&property.key, property.computed), "!");
        }
        walk::walk_accessor_property(self, property);
        self.close(property.span);
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        // One without a body stands for types, wherever it is.
        if function.body.is_none() {
            return self.drop_whole(function.span);
        }
        walk::walk_function(self, function, flags);
    }
}
