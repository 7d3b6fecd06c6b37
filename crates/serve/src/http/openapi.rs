//! The OpenAPI 3.1 document, out of the table of endpoints and the schemas of their types.

use http::Method;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::problem::Problem;

/// What the document says of one endpoint.
pub struct Operation {
    method: String,
    path: &'static str,
    tag: &'static str,
    summary: &'static str,
    schemas: Schemas,
    takes_body: bool,
}

/// How schemas get into the document: as functions, since they share one generator.
struct Schemas {
    path: fn(&mut SchemaGenerator) -> Schema,
    query: fn(&mut SchemaGenerator) -> Schema,
    body: fn(&mut SchemaGenerator) -> Schema,
    answer: fn(&mut SchemaGenerator) -> Schema,
}

impl Operation {
    pub(super) fn new<P, Q, B, R>(
        method: &Method,
        path: &'static str,
        tag: &'static str,
        summary: &'static str,
    ) -> Self
    where
        P: JsonSchema,
        Q: JsonSchema,
        B: JsonSchema,
        R: JsonSchema,
    {
        let schemas = Schemas {
            path: |generator| P::json_schema(generator),
            query: |generator| Q::json_schema(generator),
            body: |generator| generator.subschema_for::<B>(),
            answer: |generator| generator.subschema_for::<R>(),
        };
        let takes_body = B::schema_name() != "Nothing";
        Operation {
            method: method.as_str().to_ascii_lowercase(),
            path,
            tag,
            summary,
            schemas,
            takes_body,
        }
    }

    pub(super) fn takes_body(&self) -> bool {
        self.takes_body
    }

    fn describe(&self, generator: &mut SchemaGenerator) -> Value {
        let mut parameters = fields("path", &(self.schemas.path)(generator));
        parameters.extend(fields("query", &(self.schemas.query)(generator)));
        let mut out = json!({
            "tags": [self.tag],
            "summary": self.summary,
            "operationId": self.id(),
            "responses": {
                "200": {
                    "description": "Done.",
                    "content": { "application/json": { "schema": (self.schemas.answer)(generator) } },
                },
                "default": {
                    "description": "It was not done.",
                    "content": {
                        "application/problem+json": { "schema": generator.subschema_for::<Problem>() },
                    },
                },
            },
        });
        if !parameters.is_empty() {
            out["parameters"] = Value::Array(parameters);
        }
        if self.takes_body {
            let schema = (self.schemas.body)(generator);
            out["requestBody"] = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        }
        out
    }

    fn id(&self) -> String {
        let words = self.path.split(['/', '{', '}', '.', '-']).filter(|word| !word.is_empty());
        let words: Vec<&str> = std::iter::once(self.method.as_str()).chain(words).collect();
        words.join("_")
    }
}

/// The fields of a type as parameters.
fn fields(place: &str, schema: &Schema) -> Vec<Value> {
    let object = schema.as_object();
    let part = |name: &str| object.and_then(|object| object.get(name));
    let required = part("required").and_then(Value::as_array);
    let Some(Value::Object(properties)) = part("properties") else { return Vec::new() };
    let described = properties.iter().map(|(name, schema)| {
        let is_required = required.is_some_and(|names| names.iter().any(|other| other == name));
        let mut out = json!({
            "name": name,
            "in": place,
            "required": place == "path" || is_required,
            "schema": schema,
        });
        if let Some(description) = schema.get("description") {
            out["description"] = description.clone();
        }
        out
    });
    described.collect()
}

/// The whole document.
pub(super) fn document(operations: &[Operation]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let described = operation.describe(&mut generator);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[&operation.method] = described;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Repertoire",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Skills, runs, workflows and reviews of one machine.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}
