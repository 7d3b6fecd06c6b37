//! Elements: what the XML form is written from, and read into.
//!
//! An element has either a text or elements in it, never both: so a text is kept to the last space, and the space
//! between elements means nothing.

use std::borrow::Cow;

use quick_xml::Writer;
use quick_xml::XmlVersion;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesEnd, BytesStart, BytesText, Event};
use quick_xml::name::QName;

use super::ParseError;
use crate::limits::{STEP_XML_BYTES_MAX, STEP_XML_DEPTH_MAX};

/// One element.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Element<'a> {
    pub(super) name: Cow<'a, str>,
    attributes: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub(super) text: Cow<'a, str>,
    pub(super) children: Vec<Element<'a>>,
}

/// An element without anything in it.
pub(super) fn element(name: &'static str) -> Element<'static> {
    Element { name: Cow::Borrowed(name), ..Element::default() }
}

impl<'a> Element<'a> {
    /// With an attribute.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<Cow<'a, str>>) -> Self {
        self.attributes.push((Cow::Borrowed(name), value.into()));
        self
    }

    /// With an attribute, if there is a value.
    pub(super) fn with_some(self, name: &'static str, value: Option<&'a str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// With an attribute, if the value says anything.
    pub(super) fn with_any(self, name: &'static str, value: &'a str) -> Self {
        self.with_some(name, Some(value).filter(|value| !value.is_empty()))
    }

    /// With a number as an attribute.
    pub(super) fn with_number(self, name: &'static str, value: impl ToString) -> Self {
        self.with(name, value.to_string())
    }

    /// With this text in it.
    pub(super) fn text(mut self, text: impl Into<Cow<'a, str>>) -> Self {
        self.text = text.into();
        self
    }

    /// With an element in it.
    pub(super) fn child(mut self, child: Element<'a>) -> Self {
        self.children.push(child);
        self
    }

    /// With an element in it, if there is one.
    pub(super) fn child_some(mut self, child: Option<Element<'a>>) -> Self {
        self.children.extend(child);
        self
    }

    /// With an element for a text, if that says anything.
    pub(super) fn child_any(self, name: &'static str, text: &'a str) -> Self {
        self.child_some((!text.is_empty()).then(|| element(name).text(text)))
    }

    /// With elements in it.
    pub(super) fn all(mut self, children: impl IntoIterator<Item = Element<'a>>) -> Self {
        self.children.extend(children);
        self
    }

    /// The value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    /// The first element of this name.
    pub(super) fn find(&self, name: &str) -> Option<&Element<'a>> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The elements of this name.
    pub(super) fn every<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Element<'a>> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Writes a document.
pub(super) fn write(root: &Element<'_>) -> String {
    let mut writer = Writer::new_with_indent(Vec::with_capacity(4 * 1024), b' ', 2);
    write_element(&mut writer, root).expect("writing to memory does not fail");
    let mut text = String::from_utf8(writer.into_inner()).expect("only text was written");
    text.push('\n');
    text
}

fn write_element(writer: &mut Writer<Vec<u8>>, element: &Element<'_>) -> std::io::Result<()> {
    let mut start = BytesStart::new(element.name.as_ref());
    for (name, value) in &element.attributes {
        start.push_attribute(Attribute {
            key: QName(name),
            value: escaped(value, Place::Attribute),
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
        let text = BytesText::from_escaped(escaped(&element.text, Place::Text));
        writer.write_event(Event::Text(text))?;
    }
    writer.write_event(Event::End(BytesEnd::new(element.name.as_ref())))
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Text,
    Attribute,
}

/// A text as XML holds it. Line ends that a parser would change are written as references.
fn escaped(text: &str, place: Place) -> Cow<'_, str> {
    let Some(first) = text.find(|char| reference(char, place).is_some()) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 32);
    out.push_str(&text[..first]);
    for char in text[first..].chars() {
        match reference(char, place) {
            Some(reference) => out.push_str(reference),
            None => out.push(char),
        }
    }
    Cow::Owned(out)
}

fn reference(char: char, place: Place) -> Option<&'static str> {
    Some(match char {
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        '\r' => "&#13;",
        '"' if place == Place::Attribute => "&quot;",
        '\n' if place == Place::Attribute => "&#10;",
        '\t' if place == Place::Attribute => "&#9;",
        '\n' | '\t' => return None,
        '\0'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}' => "\u{FFFD}",
        _ => return None,
    })
}

/// Reads a document into its root element.
pub(super) fn read(text: &str) -> Result<Element<'static>, ParseError> {
    if text.len() > STEP_XML_BYTES_MAX {
        return Err(ParseError::TooLong { bytes: text.len() });
    }
    let mut reader = quick_xml::Reader::from_str(text);
    let mut open: Vec<Element<'static>> = Vec::new();
    let mut root = None;
    loop {
        let event = reader.read_event().map_err(|error| ParseError::Xml {
            at: usize::try_from(reader.error_position()).unwrap_or(usize::MAX),
            message: error.to_string(),
        })?;
        let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let bad = |message: String| ParseError::Xml { at, message };
        match event {
            Event::Start(start) => {
                if root.is_some() {
                    return Err(bad("a second root element".to_owned()));
                }
                if open.len() >= STEP_XML_DEPTH_MAX {
                    return Err(ParseError::TooDeep);
                }
                open.push(begun(&start).map_err(bad)?);
            }
            Event::Empty(start) => {
                let element = begun(&start).map_err(bad)?;
                close(element, &mut open, &mut root).map_err(bad)?;
            }
            Event::End(_) => {
                let mut element = open.pop().ok_or_else(|| bad("nothing is open".to_owned()))?;
                if !element.children.is_empty() {
                    element.text = Cow::Borrowed("");
                }
                close(element, &mut open, &mut root).map_err(bad)?;
            }
            Event::Text(text) => add(&mut open, &text.xml10_content()).map_err(bad)?,
            Event::CData(text) => add(&mut open, &text.xml10_content()).map_err(bad)?,
            Event::GeneralRef(reference) => {
                let found = match reference.resolve_char_ref() {
                    Ok(Some(char)) => Some(char.to_string()),
                    _ => quick_xml::escape::resolve_xml_entity(&reference).map(str::to_owned),
                };
                let text =
                    found.ok_or_else(|| bad(format!("an unknown entity `{}`", &*reference)))?;
                add(&mut open, &text).map_err(bad)?;
            }
            Event::DocType(_) => return Err(bad("a document type is not read".to_owned())),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof if open.is_empty() => return root.ok_or(ParseError::Empty),
            Event::Eof => return Err(bad("it ends before its last element is closed".to_owned())),
        }
    }
}

fn begun(start: &BytesStart<'_>) -> Result<Element<'static>, String> {
    let mut element =
        Element { name: Cow::Owned(start.name().as_ref().to_owned()), ..Element::default() };
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

fn close(
    element: Element<'static>,
    open: &mut [Element<'static>],
    root: &mut Option<Element<'static>>,
) -> Result<(), String> {
    match (open.last_mut(), &root) {
        (Some(parent), _) => parent.children.push(element),
        (None, None) => *root = Some(element),
        (None, Some(_)) => return Err("a second root element".to_owned()),
    }
    Ok(())
}

fn add(open: &mut [Element<'static>], text: &str) -> Result<(), String> {
    match open.last_mut() {
        Some(element) => element.text.to_mut().push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err("text outside the root element".to_owned()),
    }
    Ok(())
}
