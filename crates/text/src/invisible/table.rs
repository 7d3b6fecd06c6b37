//! The table of invisible characters.

/// The kinds of invisible characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InvisibleKind {
    /// A tag character, which spells a letter that is never drawn.
    TagCharacter,
    /// A selector of a glyph's form. 256 of them can spell any byte.
    VariationSelector,
    /// A character without width that joins or separates letters.
    ZeroWidth,
    /// A control of the text direction, which can make text display differently from how it is read by programs.
    BidirectionalControl,
    /// A direction mark (U+200E, U+200F, U+061C).
    DirectionMark,
    /// An invisible mathematical operator, such as U+2062.
    InvisibleOperator,
    /// A deprecated format character, or one for specific scripts and notations.
    FormatControl,
    /// A letter or pattern that is drawn as a blank.
    BlankFiller,
    /// A hyphen that is drawn only at a line break.
    SoftHyphen,
    /// A character without a public meaning, which fonts may draw as nothing.
    PrivateUse,
    /// A control character other than a line break or tab.
    ControlCharacter,
    /// A complete terminal escape sequence.
    TerminalEscape,
    /// A mark around annotations that are not part of the line.
    AnnotationMark,
    /// A line or paragraph separator, which only some programs treat as a line break.
    LineSeparator,
    /// A code point that is never a character.
    Noncharacter,
    /// An unassigned code point that renderers must not draw.
    UnassignedIgnorable,
}

use InvisibleKind::{
    AnnotationMark, BidirectionalControl, BlankFiller, ControlCharacter, DirectionMark,
    FormatControl, InvisibleOperator, LineSeparator, Noncharacter, PrivateUse, SoftHyphen,
    TagCharacter, TerminalEscape, UnassignedIgnorable, VariationSelector, ZeroWidth,
};

impl InvisibleKind {
    /// The kind of a character; `None` if it is visible or an ordinary blank. Noncharacters at the end of a plane are
    /// the only ones that are not in the table.
    pub fn of_char(c: char) -> Option<InvisibleKind> {
        let code = u32::from(c);
        let at = TABLE.partition_point(|(first, _, _)| *first <= code).checked_sub(1)?;
        let (_, last, kind) = TABLE[at];
        if code <= last { Some(kind) } else { (code & 0xfffe == 0xfffe).then_some(Noncharacter) }
    }

    /// The name of such a character, in the singular.
    pub fn name(self) -> &'static str {
        match self {
            TagCharacter => "tag character",
            VariationSelector => "variation selector",
            ZeroWidth => "zero-width character",
            BidirectionalControl => "bidirectional control",
            DirectionMark => "direction mark",
            InvisibleOperator => "invisible operator",
            FormatControl => "invisible format character",
            BlankFiller => "blank filler",
            SoftHyphen => "soft hyphen",
            PrivateUse => "private-use character",
            ControlCharacter => "control character",
            TerminalEscape => "terminal escape sequence",
            AnnotationMark => "annotation mark",
            LineSeparator => "line separator",
            Noncharacter => "noncharacter",
            UnassignedIgnorable => "unassigned invisible character",
        }
    }

    /// Returns true if the kind can spell out or reverse text. The others occur by accident: icons, pasted hyphens,
    /// zero-width spaces.
    pub fn can_carry_text(self) -> bool {
        !matches!(
            self,
            ZeroWidth
                | DirectionMark
                | BlankFiller
                | SoftHyphen
                | PrivateUse
                | ControlCharacter
                | LineSeparator
                | Noncharacter
        )
    }
}

/// Ranges of code points (first, last, kind), sorted.
pub(super) const TABLE: &[(u32, u32, InvisibleKind)] = &[
    (0x0000, 0x001f, ControlCharacter),
    (0x007f, 0x009f, ControlCharacter),
    (0x00ad, 0x00ad, SoftHyphen),
    (0x034f, 0x034f, ZeroWidth),
    (0x061c, 0x061c, DirectionMark),
    (0x115f, 0x1160, BlankFiller),
    (0x17b4, 0x17b5, FormatControl),
    (0x180b, 0x180d, VariationSelector),
    (0x180e, 0x180e, ZeroWidth),
    (0x180f, 0x180f, VariationSelector),
    (0x200b, 0x200d, ZeroWidth),
    (0x200e, 0x200f, DirectionMark),
    (0x2028, 0x2029, LineSeparator),
    (0x202a, 0x202e, BidirectionalControl),
    (0x2060, 0x2060, ZeroWidth),
    (0x2061, 0x2064, InvisibleOperator),
    (0x2065, 0x2065, UnassignedIgnorable),
    (0x2066, 0x2069, BidirectionalControl),
    (0x206a, 0x206f, FormatControl),
    (0x2800, 0x2800, BlankFiller),
    (0x3164, 0x3164, BlankFiller),
    (0xe000, 0xf8ff, PrivateUse),
    (0xfdd0, 0xfdef, Noncharacter),
    (0xfe00, 0xfe0f, VariationSelector),
    (0xfeff, 0xfeff, ZeroWidth),
    (0xffa0, 0xffa0, BlankFiller),
    (0xfff0, 0xfff8, UnassignedIgnorable),
    (0xfff9, 0xfffb, AnnotationMark),
    (0x13430, 0x1343f, FormatControl),
    (0x1bca0, 0x1bca3, FormatControl),
    (0x1d159, 0x1d159, BlankFiller),
    (0x1d173, 0x1d17a, FormatControl),
    (0xe0000, 0xe0000, UnassignedIgnorable),
    (0xe0001, 0xe007f, TagCharacter),
    (0xe0080, 0xe00ff, UnassignedIgnorable),
    (0xe0100, 0xe01ef, VariationSelector),
    (0xe01f0, 0xe0fff, UnassignedIgnorable),
    (0xf0000, 0xffffd, PrivateUse),
    (0x100000, 0x10fffd, PrivateUse),
];
