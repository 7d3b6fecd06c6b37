//! Ways to hide text in Markdown: each has a word that readers of the page do not see, and a word that they do.

use repertoire_github::comment::{NeutraliseRules, neutralise_text};
use repertoire_github::untrusted::{HiddenKind, sanitise_text};
use repertoire_model::ApiSecret;

/// The hidden word of every way. Parts of it are as bad.
const HIDDEN: &str = "OBEYME";

/// A way to hide text: its name, and a text with `OBEYME` hidden and `SEEN` shown.
const WAYS: &[(&str, &str)] = &[
    // Comments.
    ("an HTML comment", "SEEN <!-- OBEYME --> x"),
    ("an HTML comment that never ends", "SEEN <!-- OBEYME"),
    ("an HTML comment over lines", "SEEN <!--\n\nOBEYME\n\n--> x"),
    ("an HTML comment with a bang", "SEEN <!-- OBEYME --!> x"),
    ("a short comment", "SEEN <!--> x <!-- OBEYME --> y"),
    ("a processing instruction", "SEEN <? OBEYME ?> x"),
    ("a CDATA section", "SEEN <![CDATA[ OBEYME ]]> x"),
    ("a declaration", "SEEN <!OBEYME> x"),
    ("a bogus closing tag", "SEEN </ OBEYME> x"),
    ("a comment as a reference", "SEEN\n\n[//]: # (OBEYME)"),
    ("a comment as a reference in quotes", "SEEN\n\n[comment]: # \"OBEYME\""),
    ("a comment as an empty reference", "SEEN\n\n[comment]: <> (OBEYME)"),
    ("a comment as a label", "SEEN\n\n[OBEYME and more]: #"),
    ("a comment in a quotation", "SEEN\n\n> [//]: # (OBEYME)"),
    ("a comment in a list", "SEEN\n\n1. [//]: # (OBEYME)"),
    // Characters.
    ("tag characters", "SEEN\u{e004f}\u{e0042}\u{e0045} x"),
    ("entities of tag characters", "SEEN &#xE004F;&#xE0042; x"),
    ("variation selectors", "SEEN\u{e0154}\u{e0135} x"),
    ("zero-width characters in a comment", "SEEN <!\u{200b}-- OBEYME --> x"),
    ("a zero-width entity in a comment", "SEEN <!&#8203;-- OBEYME --> x"),
    ("an escape sequence", "SEEN \u{1b}]0;OBEYME\u{7} x"),
    // Elements that are not shown.
    ("a hidden attribute", "SEEN <p hidden>OBEYME</p> x"),
    ("a hidden attribute with a value", "SEEN <p hidden=\"until-found\">OBEYME</p> x"),
    ("an inert element", "SEEN <div inert>OBEYME</div> x"),
    ("a script", "SEEN <script>OBEYME</script> x"),
    ("a style sheet", "SEEN <style>OBEYME</style> x"),
    ("a template", "SEEN <template>OBEYME</template> x"),
    ("a noscript", "SEEN <noscript>OBEYME</noscript> x"),
    ("a title", "SEEN <title>OBEYME</title> x"),
    ("a text area", "SEEN <textarea>OBEYME</textarea> x"),
    ("a frame", "SEEN <iframe>OBEYME</iframe> x"),
    ("an object", "SEEN <object>OBEYME</object> x"),
    ("a drawing", "SEEN <svg><text>OBEYME</text></svg> x"),
    ("a formula in markup", "SEEN <math><mtext>OBEYME</mtext></math> x"),
    ("a selection", "SEEN <select><option>OBEYME</option></select> x"),
    ("a ruby parenthesis", "SEEN <ruby>x<rp>OBEYME</rp><rt>y</rt></ruby> x"),
    ("the fallback of a video", "SEEN <video>OBEYME</video> x"),
    ("the fallback of a sound", "SEEN <audio>OBEYME</audio> x"),
    ("the fallback of a canvas", "SEEN <canvas>OBEYME</canvas> x"),
    ("a closed dialog", "SEEN <dialog>OBEYME</dialog> x"),
    ("a meter", "SEEN <meter>OBEYME</meter> x"),
    ("an element that never ends", "SEEN <p hidden>OBEYME"),
    // Elements that are drawn so that nobody can read them.
    ("no display", "SEEN <p style=\"display:none\">OBEYME</p> x"),
    ("no visibility", "SEEN <p style='visibility: hidden'>OBEYME</p> x"),
    ("no opacity", "SEEN <p style=\"opacity:0.01\">OBEYME</p> x"),
    ("no size", "SEEN <span style=\"font-size:0\">OBEYME</span> x"),
    ("a size of one pixel", "SEEN <span style=\"font-size: 1px\">OBEYME</span> x"),
    ("no height", "SEEN <div style=\"max-height:0;overflow:hidden\">OBEYME</div> x"),
    ("outside of the page", "SEEN <div style=\"margin-left:-9999px\">OBEYME</div> x"),
    ("white text in a style", "SEEN <span style=\"color:#fff\">OBEYME</span> x"),
    ("nearly white text", "SEEN <span style=\"color: #fefefe\">OBEYME</span> x"),
    ("white text by numbers", "SEEN <span style=\"color:rgb(255, 255, 255)\">OBEYME</span> x"),
    ("white text by lightness", "SEEN <span style=\"color:hsl(0,0%,100%)\">OBEYME</span> x"),
    ("transparent text", "SEEN <span style=\"color:rgba(0,0,0,0)\">OBEYME</span> x"),
    ("a white font", "SEEN <font color=\"white\">OBEYME</font> x"),
    ("a white font by number", "SEEN <font color='#FFFFFF'>OBEYME</font> x"),
    ("a tiny font", "SEEN <font size=\"-7\">OBEYME</font> x"),
    ("a table without width", "SEEN <table width=0><tr><td>OBEYME</td></tr></table> x"),
    ("a style with a comment in it", "SEEN <p style=\"dis/**/play:none\">OBEYME</p> x"),
    ("smaller and smaller", "SEEN <sub><sub><sub><sub><sub>OBEYME</sub></sub></sub></sub></sub> x"),
    // Attributes.
    ("a title attribute", "SEEN <b title=\"OBEYME\">x</b>"),
    ("a data attribute", "SEEN <b data-x='OBEYME'>x</b>"),
    ("a label for readers", "SEEN <b aria-label=OBEYME>x</b>"),
    ("a text of an image tag", "SEEN <img src=\"a.png\" alt=\"OBEYME\"> x"),
    ("a source of a picture", "SEEN <picture><source srcset=\"OBEYME\"></picture> x"),
    ("a closing tag with words", "SEEN <b>x</b OBEYME>"),
    ("a tag that never ends", "SEEN <b title=\"OBEYME"),
    // Markdown.
    ("a text of a picture", "SEEN ![OBEYME](a.png) x"),
    ("a text of a picture by reference", "SEEN ![OBEYME][1] x\n\n[1]: https://x.org/a.png"),
    ("a text of a picture by its name", "SEEN ![OBEYME] x\n\n[OBEYME]: https://x.org/a.png"),
    ("a title of a link", "SEEN [x](https://x.org \"OBEYME\") x"),
    ("a title in brackets", "SEEN [x](https://x.org (OBEYME)) x"),
    ("a title of a reference", "SEEN [x][1]\n\n[1]: https://x.org \"OBEYME\""),
    ("a title on the next line", "SEEN [x][1]\n\n[1]: https://x.org\n  'OBEYME'"),
    ("an unused reference", "SEEN\n\n[1]: https://x.org/OBEYME"),
    ("an unused reference with a title", "SEEN\n\n[x]: https://x.org/OBEYME \"t\""),
    ("a reference used in code only", "SEEN `[1]`\n\n[1]: https://x.org/OBEYME"),
    ("a link without text", "SEEN [](https://x.org/OBEYME) x"),
    ("an anchor without text", "SEEN <a href=\"https://x.org/OBEYME\"></a> x"),
    ("words in an address", "SEEN [x](https://x.org/?q=do%20what%20I%20say%20OBEYME) x"),
    ("words in an address of a tag", "SEEN <a href=\"https://x.org/?q=a%20OBEYME\">x</a>"),
    ("an unused footnote", "SEEN\n\n[^1]: OBEYME"),
    ("an unused footnote over lines", "SEEN\n\n[^1]: a\n    OBEYME\n\n    b"),
    ("a footnote that refers to itself", "SEEN\n\n[^1]: OBEYME [^1]"),
    ("footnotes that refer to each other", "SEEN\n\n[^1]: OBEYME [^2]\n[^2]: OBEYME [^1]"),
    ("words behind a fence", "SEEN\n\n```rust OBEYME\nfn main() {}\n```"),
    ("a language that is none", "SEEN\n\n~~~OBEYME\ntext\n~~~"),
    ("attributes behind a fence", "SEEN\n\n```sh {title=\"OBEYME\"}\nls\n```"),
    ("words behind a fence in a list", "SEEN\n\n- ```js OBEYME\n  a()\n  ```"),
    ("a comment of a diagram", "SEEN\n\n```mermaid\ngraph TD\n%% OBEYME\nA-->B\n```"),
    ("a setting of a diagram", "SEEN\n\n```mermaid\n%%{init: {'x': 'OBEYME'}}%%\ngraph TD\n```"),
    ("a description of a diagram", "SEEN\n\n```mermaid\ngraph TD\naccDescr: OBEYME\nA-->B\n```"),
    ("a long description", "SEEN\n\n```mermaid\ngraph TD\naccDescr {\nOBEYME\n}\nA-->B\n```"),
    ("a hint of a diagram", "SEEN\n\n```mermaid\ngraph TD\nclick A \"x\" \"OBEYME\"\n```"),
    ("a map", "SEEN\n\n```geojson\n{\"properties\": {\"x\": \"OBEYME\"}}\n```"),
    ("a map with borders", "SEEN\n\n```topojson\n{\"x\": \"OBEYME\"}\n```"),
    ("a model", "SEEN\n\n```stl\nsolid OBEYME\nendsolid\n```"),
    ("a cell too many", "SEEN\n\n| a | b |\n|---|---|\n| 1 | 2 | OBEYME |"),
    ("a cell too many without bars", "SEEN\n\na | b\n--|--\n1 | 2 | OBEYME"),
    ("a phantom", "SEEN $\\phantom{OBEYME}$ x"),
    ("a phantom in a display", "SEEN\n\n$$\nx \\hphantom{OBEYME}\n$$"),
    ("a phantom in backticks", "SEEN $`\\vphantom{OBEYME}`$ x"),
    ("a phantom after prices", "SEEN $5 and $\\phantom{OBEYME}$ x"),
    ("a phantom in a block", "SEEN\n\n```math\n\\phantom{OBEYME}\n```"),
    ("white text in a formula", "SEEN $\\color{white}{OBEYME}$ x"),
    ("white text by a command", "SEEN $\\textcolor{#fff}{OBEYME}$ x"),
    ("tiny text in a formula", "SEEN $\\tiny OBEYME$ x"),
    ("a definition in a formula", "SEEN $\\def\\x{OBEYME} 1$ x"),
    ("a label in a formula", "SEEN $$a \\label{OBEYME}$$ x"),
    ("a comment in a formula", "SEEN\n\n```math\na % OBEYME\n```"),
    // Ways to put the reader out of step with the page.
    ("a digit before backticks", "SEEN\n\n5 ```\n\n```mermaid\ngraph TD\n%% OBEYME\nA-->B\n```"),
    ("a digit before backticks, and words", "SEEN\n5 ```\n\n```rust OBEYME\nfn main() {}\n```"),
    ("an indented fence before a map", "SEEN\n\n    ```\n\n```geojson\n{\"x\": \"OBEYME\"}\n```"),
    ("an indented fence before a model", "SEEN\n\n    ```\n\n```stl\nsolid OBEYME\n```"),
    ("a tab before a fence before a map", "SEEN\n\n\t```\n\n```geojson\n\"OBEYME\"\n```"),
    ("a fence in a paragraph of a list", "SEEN\n\n- a\n\n      ```\n\n- ```stl\n  OBEYME\n  ```"),
    ("a fence that its quotation ends", "SEEN\n\n> ```\n\n```stl\nOBEYME\n```"),
    ("a fence that its list ends", "SEEN\n\n- ```\n\n```stl\nOBEYME\n```"),
    (
        "a fence in a nested list",
        "SEEN\n\n- a\n  1. b\n     - ```topojson\n       OBEYME\n       ```",
    ),
    ("a fence in a nested quotation", "SEEN\n\n> > ~~~geojson\n> > OBEYME\n> > ~~~"),
    ("a fence closed by a longer one", "SEEN\n\n```\na\n`````\n\n```geojson\nOBEYME\n```"),
    ("a fence of other marks", "SEEN\n\n~~~\n```\n~~~\n\n```stl\nOBEYME\n```"),
    ("a fence with a backtick behind it", "SEEN\n\n``` a`\n\n```stl\nOBEYME\n```"),
    ("a fence in an HTML block", "SEEN\n\n<div>\n```\n</div>\n\n```stl\nOBEYME\n```"),
    ("a fence under a heading line", "SEEN\n===\n```stl\nOBEYME\n```"),
    ("a fence that is not closed", "SEEN\n\n```geojson\nOBEYME"),
    ("a footnote used in a fenced block", "SEEN\n\n```\n[^x]\n```\n\n[^x]: OBEYME"),
    ("a footnote used in indented code", "SEEN\n\n    [^x]\n\n[^x]: OBEYME"),
    ("a footnote with an escaped use", "SEEN \\[^x]\n\n[^x]: OBEYME"),
    ("a footnote used in an HTML block", "SEEN\n\n<div>\n[^x]\n</div>\n\n[^x]: OBEYME"),
    ("a text of a picture beside a footnote", "SEEN ![OBEYME [^x]](a.png)\n\n[^x]: a"),
    (
        "an address of a link around a footnote",
        "SEEN [a [^x]](https://x.y/do/as/they/say/OBEYME)\n\n[^x]: a",
    ),
    ("a footnote with a bracket in its name", "SEEN [^a[b]\n\n[^a[b]: OBEYME"),
    ("a footnote with a blank in its name", "SEEN [^a b]\n\n[^a b]: https://x.y 'OBEYME'"),
    ("a name of a footnote", "SEEN [^do-as-they-say-OBEYME]\n\n[^do-as-they-say-OBEYME]: a"),
    ("a footnote used as a link", "SEEN [^x](a)\n\n[^x]: OBEYME"),
    ("a footnote used in a cell too many", "SEEN\n\n| a |\n|---|\n| 1 | [^x] |\n\n[^x]: OBEYME"),
    ("a second footnote of the same name", "SEEN [^x]\n\n[^x]: a\n\n[^X]: OBEYME"),
    ("an unused footnote in a quotation", "SEEN\n\n> [^x]: OBEYME"),
    ("an unused footnote in a list", "SEEN\n\n- [^x]: OBEYME"),
    ("an unused footnote right after text", "SEEN\n[^x]: OBEYME"),
    ("a definition in a footnote", "SEEN[^1]\n\n[^1]: [a]: https://x.org/OBEYME\n    b"),
    ("a choice of formulas", "SEEN $\\mathchoice{a}{OBEYME}{OBEYME}{OBEYME}$ x"),
    ("a choice in a block", "SEEN\n\n```math\n\\mathchoice{a}{OBEYME}{OBEYME}{OBEYME}\n```"),
    ("a choice in backticks", "SEEN $`\\mathchoice{a}{OBEYME}{b}{c}`$ x"),
    ("an unknown command", "SEEN $\\whatever{OBEYME}$ x"),
    ("a comment in a formula in a line", "SEEN $a % OBEYME$ x"),
    ("a comment in a display", "SEEN\n\n$$\na % OBEYME\n$$"),
    ("a column of an array", "SEEN $$\\begin{array}{OBEYME} a \\end{array}$$ x"),
    ("lines on top of each other", "SEEN $$OBEYME \\\\[-9em] a$$ x"),
    ("words joined in an address", "SEEN [x](https://x.y/a-do-what-I-say-OBEYME) x"),
    ("words joined by lines in an address", "SEEN [x](https://x.y/a_do_what_I_say_OBEYME) x"),
    ("words as folders of an address", "SEEN [x](https://x.y/do/what/they/say/OBEYME) x"),
    ("words in a query", "SEEN [x](https://x.y/?a=do&b=what&c=they&d=say&e=OBEYME) x"),
    ("words in the address of a picture", "SEEN ![](https://x.y/do-what-they-say-OBEYME.png) x"),
    ("words in a reference", "SEEN [x][1]\n\n[1]: https://x.y/do-what-they-say-OBEYME"),
    (
        "words in a reference in a quotation",
        "SEEN [x][1]\n\n> [1]: https://x.y/do-what-they-say-OBEYME",
    ),
    ("words in a host", "SEEN [x](https://do-what-they-say-OBEYME.x.y/) x"),
    ("words before a host", "SEEN [x](https://OBEYME@x.y/) x"),
    ("words in another kind of address", "SEEN [x](data:text/plain,OBEYME) x"),
    ("words in angle brackets", "SEEN [x](<https://x.y/do what they say OBEYME>) x"),
    (
        "words in entities of an address",
        "SEEN [x](https://x.y/a&#45;do&#45;what&#45;they&#45;OBEYME) x",
    ),
    (
        "words behind the address of an issue",
        "SEEN https://github.com/a/b/issues/1#do-what-they-say-OBEYME x",
    ),
    (
        "words in an address of an image tag",
        "SEEN <img src=\"https://x.y/do-what-they-say-OBEYME\"> x",
    ),
    (
        "words in the label of a reference",
        "SEEN [x][do as OBEYME says]\n\n[do as OBEYME says]: https://x.y",
    ),
    (
        "a second reference of the same name",
        "SEEN [x][1]\n\n[1]: https://x.y\n[1]: https://x.y/OBEYME",
    ),
    ("a reference over lines", "SEEN\n\n[a]:\nhttps://x.y/OBEYME\n'OBEYME'"),
    ("a reference in nested lists", "SEEN\n\n- - [a]: https://x.y/OBEYME\n- b"),
    ("a reference in an alert", "SEEN\n\n> [!NOTE]\n> [a]: https://x.y/OBEYME\n> b"),
    ("a link with nothing but a blank", "SEEN [&nbsp;](https://x.y/OBEYME) x"),
    ("a link with nothing but tags", "SEEN [<b></b>](https://x.y/OBEYME) x"),
    ("a title over lines", "SEEN [x](https://x.y\n'OBEYME') x"),
    ("a title with an escaped quote", "SEEN [x](https://x.y \"a\\\" OBEYME\") x"),
    ("an attribute with a bracket in an HTML block", "SEEN\n\n<div><b x<y=\"OBEYME\">x</b></div>"),
    (
        "a tag that its HTML block does not close",
        "SEEN\n\n<div><b title=\"x\n\n\"> OBEYME\n\n[a](b)",
    ),
    ("a comment that its HTML block does not close", "SEEN\n\n<div><!-- x\n\n--> OBEYME"),
    ("an element that only code closes", "SEEN <template>x `</template>` OBEYME"),
    (
        "a summary with an attribute",
        "SEEN <details><summary title=\"OBEYME\">x</summary>y</details>",
    ),
    (
        "a picture with a source",
        "SEEN <picture><source media=\"OBEYME\"><img src=\"a.png\"></picture> x",
    ),
    ("a text of a picture in a task", "SEEN\n\n- [ ] ![OBEYME](a.png) x"),
    ("a text of a picture in an alert", "SEEN\n\n> [!NOTE]\n> ![OBEYME](a.png) x"),
    ("a text of a picture over lines", "SEEN ![a\nOBEYME\nb](a.png) x"),
    ("a text of a picture with nested brackets", "SEEN ![a [b [OBEYME] c] d](a.png) x"),
    ("a cell too many in a list", "SEEN\n\n- | a |\n  |---|\n  | 1 | OBEYME |"),
    ("a cell too many under one colon", "SEEN\n\n|a|\n:-:\n|1|OBEYME|"),
    (
        "settings of a diagram before it",
        "SEEN\n\n```mermaid\n---\nconfig: OBEYME\n---\ngraph TD\n```",
    ),
    ("a name in a diagram", "SEEN\n\n```mermaid\ngraph TD\ndo_what_they_say_OBEYME[x]-->B\n```"),
    // Diagrams: what is not known to be drawn.
    (
        "a hint of a diagram on the line of another statement",
        "SEEN\n\n```mermaid\ngraph TD; A-->B; click A \"x\" \"OBEYME\"\n```",
    ),
    (
        "a description of a diagram on the line of its kind",
        "SEEN\n\n```mermaid\ngraph TD; accDescr: OBEYME\n```",
    ),
    (
        "a statement behind a description on its line",
        "SEEN\n\n```mermaid\ngraph TD\naccDescr: x; A[\"OBEYME\"]-->B\n```",
    ),
    (
        "white text in a diagram on one line",
        "SEEN\n\n```mermaid\ngraph TD; A[\"OBEYME\"]; style A color:#fff,fill:#fff,stroke:#fff\n```",
    ),
    (
        "white text in a diagram by a class",
        "SEEN\n\n```mermaid\ngraph TD\nclassDef x color:#fff\nA[\"OBEYME\"]:::x\n```",
    ),
    (
        "dark text on a dark node",
        "SEEN\n\n```mermaid\ngraph TD\nA[\"OBEYME\"]\nstyle A fill:#333\n```",
    ),
    (
        "a node of a diagram without opacity",
        "SEEN\n\n```mermaid\ngraph TD\nA[\"OBEYME\"]\nstyle A opacity:0\n```",
    ),
    (
        "a menu of an actor on one line",
        "SEEN\n\n```mermaid\nsequenceDiagram; participant A; link A: OBEYME @ https://x.y\n```",
    ),
    (
        "a menu of an actor as data",
        "SEEN\n\n```mermaid\nsequenceDiagram\nA->>B: hi\nlinks A: {\"OBEYME\": \"https://x.y\"}\n```",
    ),
    ("a message of a commit", "SEEN\n\n```mermaid\ngitGraph\ncommit id:\"a\" msg:\"OBEYME\"\n```"),
    (
        "data of a node",
        "SEEN\n\n```mermaid\ngraph TD\nA@{ shape: rect, label: \"x\", descr: \"OBEYME\" }\n```",
    ),
    (
        "a link of a container",
        "SEEN\n\n```mermaid\nC4Context\nPerson(a, \"x\", $link=\"OBEYME\")\n```",
    ),
    (
        "settings of a diagram over lines",
        "SEEN\n\n```mermaid\n%%{init: {\n\"x\": \"OBEYME\"\n}}%%\ngraph TD\nA-->B\n```",
    ),
    (
        "a style sheet in the settings of a diagram",
        "SEEN\n\n```mermaid\n%%{init: {\"themeCSS\": \"* {fill: white}\"}}%%\ngraph TD\nA[OBEYME]-->B\n```",
    ),
    (
        "settings of a diagram before it over lines",
        "SEEN\n\n```mermaid\n---\nconfig:\n  x: OBEYME\n---\ngraph TD\nA-->B\n```",
    ),
    (
        "a title before a diagram",
        "SEEN\n\n```mermaid\n---\ntitle: OBEYME\n---\ngraph TD\nA-->B\n```",
    ),
    (
        "a name of a node with a label",
        "SEEN\n\n```mermaid\ngraph TD\nOBEYME[\"x\"]-->B\nB-->OBEYME\n```",
    ),
    (
        "names of nodes as a sentence",
        "SEEN\n\n```mermaid\ngraph TD\nprint[a]-->the[b]-->OBEYME[c]\n```",
    ),
    (
        "a name of an actor with a label",
        "SEEN\n\n```mermaid\nsequenceDiagram\nparticipant OBEYME as A\nOBEYME->>B: hi\n```",
    ),
    (
        "a name of a state with a description",
        "SEEN\n\n```mermaid\nstateDiagram-v2\nstate \"x\" as OBEYME\n[*] --> OBEYME\n```",
    ),
    (
        "a name of a class with a label",
        "SEEN\n\n```mermaid\nclassDiagram\nclass OBEYME[\"x\"]\nOBEYME <|-- B\n```",
    ),
    ("a first label of two", "SEEN\n\n```mermaid\ngraph TD\nA[\"OBEYME\"]-->B\nA[\"x\"]\n```"),
    ("a class of a node", "SEEN\n\n```mermaid\ngraph TD\nA:::OBEYME-->B\n```"),
    ("an icon of a node", "SEEN\n\n```mermaid\ngraph TD\nA[\"fa:fa-OBEYME x\"]-->B\n```"),
    (
        "a tag in a label",
        "SEEN\n\n```mermaid\ngraph TD\nA[\"<span hidden>OBEYME</span>\"]-->B\n```",
    ),
    ("a formula in a label", "SEEN\n\n```mermaid\ngraph TD\nA[\"$$\\phantom{OBEYME}$$\"]-->B\n```"),
    ("Markdown in a label", "SEEN\n\n```mermaid\ngraph TD\nA[\"`![OBEYME](x)`\"]-->B\n```"),
    ("a sliver of a pie", "SEEN\n\n```mermaid\npie\n\"a\" : 1000\n\"OBEYME\" : 0.1\n```"),
    ("a name of an edge", "SEEN\n\n```mermaid\ngraph TD\nA OBEYME@--> B\n```"),
    (
        "a kind of diagram that is not known",
        "SEEN\n\n```mermaid\nmindmap\n  root((x))\n    ::icon(OBEYME)\n```",
    ),
    ("a diagram that is none", "SEEN\n\n```mermaid\nOBEYME\n```"),
    (
        "a diagram in a quotation",
        "SEEN\n\n> ```mermaid\n> gitGraph\n> commit msg:\"OBEYME\"\n> ```",
    ),
    (
        "a diagram in a list",
        "SEEN\n\n- ```mermaid\n  graph TD; A-->B; click A \"x\" \"OBEYME\"\n  ```",
    ),
    // Sizes.
    (
        "subscripts with text between them",
        "SEEN <sub>.<sub>.<sub>.<sub>.<sub>OBEYME</sub></sub></sub></sub></sub> x",
    ),
    (
        "subscripts with other tags between them",
        "SEEN <sub><b><sub><b><sub><b><sub><b>OBEYME</b></sub></b></sub></b></sub></b></sub> x",
    ),
    (
        "small text in small text",
        "SEEN <small><small><small><small>a<small>OBEYME</small></small></small></small></small> x",
    ),
    ("code in code", "SEEN <code><code><code><code>OBEYME</code></code></code></code> x"),
    ("a ruby above a ruby", "SEEN <ruby>a<rt><ruby>b<rt>OBEYME</rt></ruby></rt></ruby> x"),
    ("smaller by several elements", "SEEN <kbd><samp><tt><sup>OBEYME</sup></tt></samp></kbd> x"),
    ("smaller in a heading", "SEEN\n\n<h6><sub>a <sup>b <small>OBEYME</small></sup></sub></h6>"),
    (
        "smaller with attributes",
        "SEEN <sub id=a><sub id=b><sub id=c><sub id=d>OBEYME</sub></sub></sub></sub> x",
    ),
    ("smaller without an end", "SEEN <small><small><small><small>OBEYME"),
    (
        "smaller with an end in code",
        "SEEN <sub><sub><sub>`</sub>`<sub>OBEYME</sub></sub></sub></sub> x",
    ),
];

#[test]
fn no_way_to_hide_text_survives() {
    let mut failed = Vec::new();
    for (name, text) in WAYS {
        let cleaned = sanitise_text(text);
        let is_hidden = cleaned.text.contains(HIDDEN) || cleaned.removed.is_empty();
        let is_lost = !cleaned.text.contains("SEEN");
        if is_hidden || is_lost || sanitise_text(&cleaned.text).text != cleaned.text {
            failed.push(format!("{name}: {:?}", cleaned.text));
        }
    }
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), WAYS.len(), failed.join("\n"));
}

#[test]
fn what_readers_see_survives() {
    for text in [
        "A [link](https://github.com/a/b/issues/1#issuecomment-2) and [another](https://x.org/a).",
        "5 ```\n\nA digit, and a `` ` `` in code.",
        "See https://github.com/a/b/issues/1#issuecomment-2, <https://x.org/any-words-that-are-shown> and #7.",
        "A price of $5, 50% off, C:\\Users\\x and $6; `$a\\foo$` is code.",
        "$$\n\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}\n$$",
        "Use `<script>` and `<select>` here.",
        "[docs](https://docs.rs/regex/latest/) and [code](https://github.com/a/b/blob/main/src/lib.rs#L3)",
        "> [!WARNING]\n> - a\n>   1. b\n\n1. \\[x] not a task",
        "A note.[^1]\n\n[^1]: It is shown.\n    So is this.",
        "```rust\nfn main() { println!(\"$\\\\phantom\"); }\n```",
        "```\nplain\n```\n\n~~~toml\na = 1\n~~~",
        "```mermaid\ngraph TD\nA[Start]-->B{Choice}\n```",
        "```mermaid\ngraph LR\nA[\"Start; then\"] -->|yes| B(Stop)\nB -- no --> C{Choice}\nC -.-> D & E\nsubgraph Inner work\nD ==> E\nend\nbuild --> test\n```",
        "```mermaid\nsequenceDiagram\nparticipant Alice\nAlice->>+Bob: How are you?\nBob-->>-Alice: Fine, 1 < 2\nNote over Alice,Bob: They met\nloop Every day\nAlice-)Bob: Hi\nend\n```",
        "```mermaid\nstateDiagram-v2\n[*] --> Idle\nIdle --> Running: start\nstate Running {\nA --> B\n}\nRunning --> [*]\n```",
        "```mermaid\nclassDiagram\nclass Animal {\n+int age\n+run() bool\n}\nAnimal <|-- Duck : is\nDuck : +swim()\nAnimal \"1\" --> \"many\" Leg\n```",
        "```mermaid\nerDiagram\nCUSTOMER ||--o{ ORDER : places\nORDER {\nint id PK \"number\"\n}\n```",
        "```mermaid\npie title Pets\n\"Dogs\" : 40\n\"Cats\" : 60.5\n```",
        "```mermaid\njourney\ntitle My day\nsection Work\nMake tea: 5: Me, Cat\n```",
        "```mermaid\ntimeline\ntitle History\n2002 : LinkedIn\n2004 : Facebook : Google\n```",
        "Wide code:\n\n```\na                                        b                                        c\n```",
        "<p>H<sub>2</sub>O</p>\n\n<p>x<sup>a<sub>b<sup>c</sup></sub></sup></p>\n\n<kbd>a</kbd> <kbd>b</kbd> <code>c</code> <code>d</code> <small>e</small>",
        "| a | b |\n|---|:-:|\n| 1 | 2 |\n| `x \\| y` | 3 |\n\nMore | text | here.",
        "Costs $5, or $x^2 + \\frac{1}{2}$, or $$\\sum_{i=0}^n i$$.",
        "<details><summary>More</summary>\n\nText\n\n</details>",
        "<ruby>漢<rt>kan</rt></ruby> H<sub>2</sub>O x<sup>2</sup>",
        "In LaTeX, \\phantom{x} leaves room.",
        "- [ ] a task\n- [x] another\n\n> [!NOTE]\n> A hint.",
        "Run `cargo test [^x]` and read [the guide](docs/guide.md).",
    ] {
        let cleaned = sanitise_text(text);
        assert_eq!(cleaned.text, text, "{:?}", cleaned.removed);
    }
}

#[test]
fn what_a_diagram_does_not_draw_goes_and_the_rest_stays() {
    for (diagram, expected) in [
        ("graph TD; A[One]-->B; click A \"x\" \"y\"", "graph TD; A[One]-->B;"),
        ("graph TD\nstyle A fill:#f9f,stroke:#333\nA-->B", "graph TD\n\nA-->B"),
        ("graph TD\nserver[Our server]-->B\nB-->server", "graph TD\nn1[Our server]-->B\nB-->n1"),
        ("%%{init: {'theme': 'forest'}}%%\ngraph TD\nA:::big-->B %% why", "\ngraph TD\nA -->B"),
    ] {
        let cleaned = sanitise_text(&format!("```mermaid\n{diagram}\n```")).text;
        let lines: Vec<&str> = cleaned.lines().map(str::trim_end).collect();
        assert_eq!(lines.join("\n"), format!("```mermaid\n{expected}\n```"));
    }
    let cleaned = sanitise_text("```mermaid\nmindmap\n a\n```").text;
    assert_eq!(cleaned, "```\n(a diagram that is not understood was removed)\n```");
}

#[test]
fn text_is_not_pushed_out_of_sight_by_empty_space() {
    let blanks = " ".repeat(3000);
    let parts = "a                                      ".repeat(40);
    let paragraphs = "&nbsp;\n\n".repeat(300);
    for (text, mark) in [
        (format!("```\nx{blanks}OBEYME\n```"), "(… 3000 blanks …) OBEYME"),
        (format!("    x{}OBEYME", "\t".repeat(300)), "(… 300 blanks …) OBEYME"),
        (format!("> ```\n> {parts}OBEYME\n> ```"), "a (… 38 blanks …) a"),
        (format!("SEEN\n\n{paragraphs}OBEYME"), "(… empty space …)"),
        (format!("SEEN{}OBEYME", "<br>".repeat(300)), "(… empty space …)"),
        (format!("SEEN\n\n{}OBEYME", "<p></p>\n".repeat(300)), "(… empty space …)"),
        (format!("SEEN\n\n{}OBEYME", "> &emsp;\n>\n".repeat(300)), "(… empty space …)"),
        (format!("```\nx{}OBEYME\n```", "\n".repeat(300)), "(… empty space …)"),
    ] {
        let cleaned = sanitise_text(&text);
        assert!(cleaned.text.contains(mark) && cleaned.text.len() < 2100, "{:?}", cleaned.text);
        let kinds: Vec<_> = cleaned.removed.iter().map(|removed| removed.what).collect();
        assert_eq!(kinds, [HiddenKind::EmptySpace], "{text:?}");
        assert_eq!(sanitise_text(&cleaned.text).text, cleaned.text);
    }
}

/// `ghs_Ab12Cd34Ef56Gh78` in the forms in which a model may repeat it.
#[test]
fn encoded_forms_of_a_token_are_not_published() {
    let secrets = [ApiSecret::new("ghs_Ab12Cd34Ef56Gh78")];
    let rules = NeutraliseRules { secrets: &secrets, ..NeutraliseRules::default() };
    for form in [
        "ghs_Ab12Cd34Ef56Gh78",
        "87hG65fE43dC21bA_shg",
        "Z2hzX0FiMTJDZDM0RWY1NkdoNzg=",
        "Z2hzX0FiMTJDZDM0RWY1NkdoNzg",
        "dG9rZW49Z2hzX0FiMTJDZDM0RWY1NkdoNzgK",
        "6768735f4162313243643334456635364768373",
        "6768735F41623132436433344566353647683738",
        "67 68 73 5f 41 62 31 32 43 64 33 34 45 66 35 36 47 68 37 38",
        "\\x67\\x68\\x73\\x5f\\x41\\x62\\x31\\x32\\x43\\x64\\x33\\x34\\x45\\x66\\x35\\x36\\x47\\x68\\x37\\x38",
        "Z2hz-X0Fi-MTJD-ZDM0-RWY1-Nkdo-Nzg=",
        "Z2hzX0FiMTJD\nZDM0RWY1Nkdo\nNzg=",
        "g h s _ A b 1 2 C d 3 4 E f 5 6 G h 7 8",
        "00000000: 6768 735f 4162 3132 4364 3334 4566 3536  ghs_Ab12Cd34Ef56\n00000010: 4768 3738  Gh78\n",
        "%67%68%73%5F%41%62%31%32%43%64%33%34%45%66%35%36%47%68%37%38",
    ] {
        // A value that is one digit shorter is not an encoded form.
        let is_whole = form != "6768735f4162313243643334456635364768373";
        let shown = neutralise_text(&format!("The value is {form} here."), &rules);
        assert_eq!(shown.contains("***"), is_whole, "{form} became {shown}");
        assert!(!is_whole || !shown.contains(form), "{form} became {shown}");
    }
}
