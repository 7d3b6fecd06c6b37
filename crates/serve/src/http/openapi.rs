//! Builds the OpenAPI 3.1 document from the table of endpoints and the schemas of their types.

use std::collections::{BTreeMap, BTreeSet};

use http::{Method, StatusCode};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::api::{EmptyBody, PageQuery, SESSION};
use super::problem::HttpProblem;

/// Adds a schema to the document. A function, because all schemas share one generator.
type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// The description of an endpoint in the document.
pub struct ApiOperation {
    method: Method,
    path: &'static str,
    tag: &'static str,
    summary: &'static str,
    in_path: MakeSchema,
    in_query: MakeSchema,
    body: Option<MakeSchema>,
    is_paged: bool,
    answer: ResponseShape,
    refusals: BTreeMap<u16, &'static str>,
}

/// The format of a successful response.
pub struct ResponseShape {
    media_type: &'static str,
    schema: MakeSchema,
}

impl ResponseShape {
    /// JSON of a type.
    pub fn json<R: JsonSchema>() -> Self {
        ResponseShape {
            media_type: "application/json",
            schema: |generator| generator.subschema_for::<R>(),
        }
    }

    /// Text of another media type.
    pub fn text(media_type: &'static str) -> Self {
        ResponseShape { media_type, schema: |generator| generator.subschema_for::<String>() }
    }
}

impl ApiOperation {
    pub(super) fn new<P, Q, B>(
        method: &Method,
        path: &'static str,
        tag: &'static str,
        summary: &'static str,
        answer: ResponseShape,
    ) -> Self
    where
        P: JsonSchema,
        Q: JsonSchema,
        B: JsonSchema,
    {
        // `Nothing` marks an endpoint without a body; the name is that of the type in `api`.
        let takes_body = B::schema_name() != "Nothing";
        let body: MakeSchema = |generator| generator.subschema_for::<B>();
        let mut out = ApiOperation {
            method: method.clone(),
            path,
            tag,
            summary,
            in_path: |generator| P::json_schema(generator),
            in_query: |generator| Q::json_schema(generator),
            body: takes_body.then_some(body),
            is_paged: false,
            answer,
            refusals: BTreeMap::new(),
        };
        out.add_common_refusals();
        out
    }

    /// Adds the statuses that the guard and the parsing of a request may return for any endpoint.
    fn add_common_refusals(&mut self) {
        self.add_refusal(StatusCode::BAD_REQUEST, "The request makes no sense.");
        self.add_refusal(StatusCode::FORBIDDEN, "The request comes from another site.");
        self.add_refusal(StatusCode::MISDIRECTED_REQUEST, "The request is for another host.");
        self.add_refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Something else failed, such as a disk.",
        );
        self.add_refusal(StatusCode::SERVICE_UNAVAILABLE, "The answer took too long.");
        if !self.is_open() || self.path == SESSION {
            self.add_refusal(StatusCode::UNAUTHORIZED, "The token is missing or not valid.");
        }
        if self.path.contains('{') {
            self.add_refusal(StatusCode::NOT_FOUND, "There is nothing of that name.");
        }
        if self.method != Method::GET {
            self.add_refusal(StatusCode::REQUEST_TIMEOUT, "The body took too long to come.");
            self.add_refusal(StatusCode::PAYLOAD_TOO_LARGE, "The body is too large.");
            self.add_refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is no JSON.");
        }
    }

    pub(super) fn add_refusal(&mut self, status: StatusCode, when: &'static str) {
        self.refusals.insert(status.as_u16(), when);
    }

    pub(super) fn paged(self) -> Self {
        ApiOperation { is_paged: true, ..self }
    }

    pub(super) fn takes_body(&self) -> bool {
        self.body.is_some()
    }

    pub(super) fn path(&self) -> &'static str {
        self.path
    }

    /// The names of the query parameters.
    pub(super) fn query_names(&self) -> BTreeSet<String> {
        let mut generator = schema_generator();
        let name = |parameter: &Value| parameter["name"].as_str().map(str::to_owned);
        self.query_parameters(&mut generator).iter().filter_map(name).collect()
    }

    fn query_parameters(&self, generator: &mut SchemaGenerator) -> Vec<Value> {
        let mut out = schema_parameters("query", &(self.in_query)(generator));
        if self.is_paged {
            out.extend(schema_parameters("query", &PageQuery::json_schema(generator)));
        }
        out
    }

    fn is_open(&self) -> bool {
        self.path == SESSION || !self.path.starts_with("/api/") && self.path != "/metrics"
    }

    fn describe_operation(&self, generator: &mut SchemaGenerator) -> Value {
        let mut parameters = schema_parameters("path", &(self.in_path)(generator));
        parameters.extend(self.query_parameters(generator));
        let schema = (self.answer.schema)(generator);
        let mut responses = json!({
            "200": {
                "description": "Done.",
                "content": { self.answer.media_type: { "schema": schema } },
            },
        });
        for (status, when) in &self.refusals {
            let schema = generator.subschema_for::<HttpProblem>();
            responses[status.to_string()] = json!({
                "description": when,
                "content": { "application/problem+json": { "schema": schema } },
            });
        }
        let mut out = json!({
            "tags": [self.tag],
            "summary": self.summary,
            "operationId": self.operation_id(),
            "responses": responses,
        });
        if self.is_open() {
            out["security"] = json!([]);
        }
        if !parameters.is_empty() {
            out["parameters"] = Value::Array(parameters);
        }
        if self.method == Method::POST {
            let nothing: MakeSchema = |generator| generator.subschema_for::<EmptyBody>();
            let schema = self.body.unwrap_or(nothing)(generator);
            out["requestBody"] = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        }
        out
    }

    fn operation_id(&self) -> String {
        let words = self.path.split(['/', '{', '}', '.', '-']);
        let words = words.filter(|word| !matches!(*word, "" | "api" | "v1"));
        let method = self.method.as_str().to_ascii_lowercase();
        let words: Vec<&str> = std::iter::once(method.as_str()).chain(words).collect();
        words.join("_")
    }
}

/// The fields of a type as parameters.
fn schema_parameters(place: &str, schema: &Schema) -> Vec<Value> {
    let object = schema.as_object();
    let part = |name: &str| object.and_then(|object| object.get(name));
    let required = part("required").and_then(Value::as_array);
    let Some(Value::Object(properties)) = part("properties") else { return Vec::new() };
    let described = properties.iter().map(|(name, schema)| {
        let is_required = required.is_some_and(|names| names.iter().any(|other| other == name));
        let mut schema = remove_null(schema.clone());
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let mut out = json!({
            "name": name,
            "in": place,
            "required": place == "path" || is_required,
            "schema": schema,
        });
        if let Some(description) = description {
            out["description"] = description;
        }
        out
    });
    described.collect()
}

/// Removes `null` from the schema of a parameter: a parameter is present or absent, and cannot be null.
fn remove_null(mut schema: Value) -> Value {
    let Some(object) = schema.as_object_mut() else { return schema };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|one| one != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("enum") {
        choices.retain(|one| !one.is_null());
    }
    if let Some(Value::Array(mut choices)) = object.remove("anyOf") {
        choices.retain(|one| one["type"] != "null");
        match choices.as_slice() {
            [Value::Object(only)] => object.extend(only.clone()),
            _ => {
                object.insert("anyOf".to_owned(), Value::Array(choices));
            }
        }
    }
    schema
}

fn schema_generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    settings.into_generator()
}

/// Builds the whole document.
pub(super) fn build_document(operations: &[ApiOperation]) -> Value {
    let mut generator = schema_generator();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let described = operation.describe_operation(&mut generator);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_ascii_lowercase()] = described;
    }
    let mut document = json!({
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
    });
    add_integer_limits(&mut document);
    document
}

/// Adds the maximum of integers, because readers ignore `format`. 64-bit integers are limited to the range that every
/// JSON reader can represent.
fn add_integer_limits(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(add_integer_limits),
        Value::Object(object) => {
            let most: Option<i64> = match object.get("format").and_then(Value::as_str) {
                Some("uint8") => Some(u8::MAX.into()),
                Some("uint16") => Some(u16::MAX.into()),
                Some("uint32") => Some(u32::MAX.into()),
                Some("int32") => Some(i32::MAX.into()),
                Some("uint" | "uint64" | "int64" | "int") => Some((1 << 53) - 1),
                _ => None,
            };
            if let Some(most) = most {
                object.entry("maximum").or_insert_with(|| most.into());
            }
            object.values_mut().for_each(add_integer_limits);
        }
        _ => {}
    }
}
