//! The element tree that the XML form is written from and parsed into.
//!
//! An element contains either text or elements, never both. Text is therefore preserved exactly, and whitespace
//! between elements has no meaning.

use std::borrow::Cow;

use quick_xml::Writer;
use quick_xml::XmlVersion;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesEnd, BytesStart, BytesText, Event};
use quick_xml::name::QName;

use super::StepParseError;
use crate::limits::{STEP_XML_BYTES_MAX, STEP_XML_DEPTH_MAX};

/// Replacement for characters that XML 1.0 cannot represent.
const REPLACEMENT: &str = "\u{FFFD}";

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct XmlElement<'a> {
    pub(super) name: Cow<'a, str>,
    attributes: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub(super) text: Cow<'a, str>,
    pub(super) children: Vec<XmlElement<'a>>,
}

/// Creates an empty element.
pub(super) fn new_element(name: &'static str) -> XmlElement<'static> {
    XmlElement { name: Cow::Borrowed(name), ..XmlElement::default() }
}

impl<'a> XmlElement<'a> {
    /// Adds an attribute.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<Cow<'a, str>>) -> Self {
        self.attributes.push((Cow::Borrowed(name), value.into()));
        self
    }

    /// Adds an attribute if there is a value.
    pub(super) fn with_some(self, name: &'static str, value: Option<&'a str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds an attribute unless the value is empty.
    pub(super) fn with_any(self, name: &'static str, value: &'a str) -> Self {
        self.with_some(name, Some(value).filter(|value| !value.is_empty()))
    }

    /// Adds a number as an attribute.
    pub(super) fn with_number(self, name: &'static str, value: impl ToString) -> Self {
        self.with(name, value.to_string())
    }

    /// Sets the text.
    pub(super) fn text(mut self, text: impl Into<Cow<'a, str>>) -> Self {
        self.text = text.into();
        self
    }

    /// Adds a child element.
    pub(super) fn child(mut self, child: XmlElement<'a>) -> Self {
        self.children.push(child);
        self
    }

    /// Adds a child element if there is one.
    pub(super) fn child_some(mut self, child: Option<XmlElement<'a>>) -> Self {
        self.children.extend(child);
        self
    }

    /// Adds a child element with a text unless the text is empty.
    pub(super) fn child_any(self, name: &'static str, text: &'a str) -> Self {
        self.child_some((!text.is_empty()).then(|| new_element(name).text(text)))
    }

    /// Adds child elements.
    pub(super) fn all(mut self, children: impl IntoIterator<Item = XmlElement<'a>>) -> Self {
        self.children.extend(children);
        self
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    /// The first child with this name.
    pub(super) fn find_child(&self, name: &str) -> Option<&XmlElement<'a>> {
        self.children.iter().find(|child| child.name == name)
    }

    /// All children with this name.
    pub(super) fn children_named<'s>(
        &'s self,
        name: &'s str,
    ) -> impl Iterator<Item = &'s XmlElement<'a>> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Serialises a document.
pub(super) fn write_document(root: &XmlElement<'_>) -> String {
    let mut writer = Writer::new_with_indent(Vec::with_capacity(4 * 1024), b' ', 2);
    write_element(&mut writer, root).expect("writing to memory does not fail");
    let mut text = String::from_utf8(writer.into_inner()).expect("only text was written");
    text.push('\n');
    text
}

fn write_element(writer: &mut Writer<Vec<u8>>, element: &XmlElement<'_>) -> std::io::Result<()> {
    let mut start = BytesStart::new(element.name.as_ref());
    for (name, value) in &element.attributes {
        start.push_attribute(Attribute {
            key: QName(name),
            value: escape_text(value, EscapeContext::Attribute),
        });
    }
    if element.children.is_empty() && element.text.is_empty() {
        return writer.write_event(Event::Empty(start));
    }
    writer.write_event(Event::Start(start))?;
    for child in &element.children {
        write_element(writer, child)?;
    }
    if element.children.is_empty() {
        let text = BytesText::from_escaped(escape_text(&element.text, EscapeContext::Text));
        writer.write_event(Event::Text(text))?;
    }
    writer.write_event(Event::End(BytesEnd::new(element.name.as_ref())))
}

#[derive(Clone, Copy)]
enum EscapeContext {
    Text,
    Attribute,
}

/// Escapes text for XML. Line endings that a parser would normalise are written as character references.
fn escape_text(text: &str, place: EscapeContext) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut done, mut at) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        // Nearly every byte stands for itself, so skip these quickly.
        if byte.is_ascii_alphanumeric() || *byte == b' ' {
            at += 1;
            continue;
        }
        let Some((length, reference)) = escape_sequence(&bytes[at..], place) else {
            at += 1;
            continue;
        };
        out.push_str(&text[done..at]);
        out.push_str(reference);
        at += length;
        done = at;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// The replacement for the character at the start of these bytes, and the number of bytes it replaces; `None` if the
/// character needs none.
fn escape_sequence(bytes: &[u8], place: EscapeContext) -> Option<(usize, &'static str)> {
    Some(match (bytes, place) {
        ([b'&', ..], _) => (1, "&amp;"),
        ([b'<', ..], _) => (1, "&lt;"),
        ([b'>', ..], _) => (1, "&gt;"),
        ([b'\r', ..], _) => (1, "&#13;"),
        ([b'"', ..], EscapeContext::Attribute) => (1, "&quot;"),
        ([b'\n', ..], EscapeContext::Attribute) => (1, "&#10;"),
        ([b'\t', ..], EscapeContext::Attribute) => (1, "&#9;"),
        ([b'\n' | b'\t', ..], EscapeContext::Text) => return None,
        // XML 1.0 cannot represent these at all; the three bytes are U+FFFE and U+FFFF.
        ([0..0x20, ..], _) => (1, REPLACEMENT),
        ([0xEF, 0xBF, 0xBE | 0xBF, ..], _) => (3, REPLACEMENT),
        _ => return None,
    })
}

/// Parses a document into its root element.
pub(super) fn read_document(text: &str) -> Result<XmlElement<'static>, StepParseError> {
    if text.len() > STEP_XML_BYTES_MAX {
        return Err(StepParseError::TooLong { bytes: text.len() });
    }
    let mut reader = quick_xml::Reader::from_str(text);
    let mut open: Vec<XmlElement<'static>> = Vec::new();
    let mut root = None;
    loop {
        let event = reader.read_event().map_err(|error| StepParseError::Xml {
            at: usize::try_from(reader.error_position()).unwrap_or(usize::MAX),
            message: error.to_string(),
        })?;
        let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let bad = |message: String| StepParseError::Xml { at, message };
        match event {
            Event::Start(start) => {
                if root.is_some() {
                    return Err(bad("a second root element".to_owned()));
                }
                if open.len() >= STEP_XML_DEPTH_MAX {
                    return Err(StepParseError::TooDeep);
                }
                open.push(start_element(&start).map_err(bad)?);
            }
            Event::Empty(start) => {
                let element = start_element(&start).map_err(bad)?;
                close_element(element, &mut open, &mut root).map_err(bad)?;
            }
            Event::End(_) => {
                let mut element = open.pop().ok_or_else(|| bad("nothing is open".to_owned()))?;
                if !element.children.is_empty() {
                    element.text = Cow::Borrowed("");
                }
                close_element(element, &mut open, &mut root).map_err(bad)?;
            }
            Event::Text(text) => push_text(&mut open, &text.xml10_content()).map_err(bad)?,
            Event::CData(text) => push_text(&mut open, &text.xml10_content()).map_err(bad)?,
            Event::GeneralRef(reference) => {
                let found = match reference.resolve_char_ref() {
                    Ok(Some(char)) => Some(char.to_string()),
                    _ => quick_xml::escape::resolve_xml_entity(&reference).map(str::to_owned),
                };
                let text =
                    found.ok_or_else(|| bad(format!("an unknown entity `{}`", &*reference)))?;
                push_text(&mut open, &text).map_err(bad)?;
            }
            Event::DocType(_) => return Err(bad("a document type is not read".to_owned())),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof if open.is_empty() => return root.ok_or(StepParseError::Empty),
            Event::Eof => return Err(bad("it ends before its last element is closed".to_owned())),
        }
    }
}

fn start_element(start: &BytesStart<'_>) -> Result<XmlElement<'static>, String> {
    let mut element =
        XmlElement { name: Cow::Owned(start.name().as_ref().to_owned()), ..XmlElement::default() };
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|error| error.to_string())?;
        let key = attribute.key.as_ref().to_owned();
        element.attributes.push((Cow::Owned(key), Cow::Owned(value.into_owned())));
    }
    Ok(element)
}

fn close_element(
    element: XmlElement<'static>,
    open: &mut [XmlElement<'static>],
    root: &mut Option<XmlElement<'static>>,
) -> Result<(), String> {
    match (open.last_mut(), &root) {
        (Some(parent), _) => parent.children.push(element),
        (None, None) => *root = Some(element),
        (None, Some(_)) => return Err("a second root element".to_owned()),
    }
    Ok(())
}

fn push_text(open: &mut [XmlElement<'static>], text: &str) -> Result<(), String> {
    match open.last_mut() {
        Some(element) => element.text.to_mut().push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err("text outside the root element".to_owned()),
    }
    Ok(())
}
