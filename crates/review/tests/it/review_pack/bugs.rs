//! What the patterns of `reviewing-bugs` find, and what they leave alone.

use super::Row;

pub(super) const BUGS: &[Row] = &[
    (
        "merge_conflict_marker",
        &["a\n<<<<<<< HEAD\nb", ">>>>>>> feature/login"],
        &["=======", "<<<<<<<<<< ten of them", "  <<<<<<< HEAD", "x << y >> z", ">>>>>>>"],
    ),
    (
        "empty_catch_block",
        &["} catch (e) {}", "catch (IOException ex) { }", "try { f(); } catch (err) {\n  }"],
        &[
            "catch (e) { log(e); }",
            "catch (InterruptedException ignored) {}",
            "catch (e) { /* nothing depends on it */ }",
            "} catch {}",
        ],
    ),
    (
        "except_pass",
        &[
            "try:\n    f()\nexcept:\n    pass\n",
            "    except Exception as e:\n        pass",
            "except BaseException: pass",
        ],
        &[
            "except KeyError:\n    pass",
            "except Exception:\n    pass  # the cache is only a help",
            "except Exception:\n    log.exception('x')",
            "except Exception:\n    passed = True",
        ],
    ),
    (
        "missing_await",
        &["const data = fetch(url).json();", "fetch(url(id), {}).ok", "if (fetch(url).ok) {"],
        &[
            "const data = await (await fetch(url)).json();",
            "fetch(url).then(r => r.json())",
            "prefetch(url).json()",
            "this.fetch().text",
            "var t = this.fetch().text;",
            "const x = await ky.fetch(url).json();",
            "// fetch(url).json()",
            "parser.fetch().text === 'x'",
            "    asyncio.sleep(1)",
        ],
    ),
    (
        "assignment_in_condition",
        &[
            "if (done = true) {",
            "while (x.next = null)",
            "if (name = \"admin\")",
            "if (n = 0) return;",
        ],
        &[
            "if (done == true) {",
            "if (done === null) {",
            "while ((line = read()) != null)",
            "if (a <= 0)",
            "for (let i = 0; i < n; i++)",
        ],
    ),
    (
        "identity_with_literal",
        &[
            "if x is 5:",
            "    return name is \"admin\"",
            "elif kind is not 'a' and ok:",
            "if f(x) is 5:",
        ],
        &[
            "if x is None:",
            "if x is not True:",
            "# this is 5 times as much",
            "print(\"it is 'x'\")",
            "    if return code is not 0",
            "    while the code is 0:",
            "return what is 'a', or nothing",
        ],
    ),
    (
        "nan_comparison",
        &["if (x === NaN)", "x != float('nan')", "assert a == np.nan", "if v == f64::NAN {"],
        &[
            "Number.isNaN(x)",
            "x = NaN",
            "x.is_nan()",
            "x == NaNoSecond",
            "y = np.nan",
            "// f64 does not implement Ord because `NaN != NaN`",
            "/// because NaN != NaN",
            r#"s = "==NaN==""#,
            "# x == NaN",
            " * x == NaN",
        ],
    ),
    (
        "defer_before_error_check",
        &["\tresp, err := http.Get(url)\n\tdefer resp.Body.Close()\n"],
        &[
            "resp, err := http.Get(url)\nif err != nil {\n\treturn err\n}\ndefer resp.Body.Close()",
            "f, err := os.Open(p)\ndefer f.Close()",
        ],
    ),
    (
        "leftover_debugger",
        &[
            "  debugger;",
            "    breakpoint()",
            "import pdb; pdb.set_trace()",
            "  binding.pry",
            "pdb.set_trace()",
        ],
        &[
            "debuggerUrl = 1;",
            "// a debugger;stop",
            "breakpoints()",
            "import pdbpp_config",
            "import pdb",
            "breakpoint() stops the program",
        ],
    ),
    (
        "dbg_macro",
        &["    dbg!(&value);", "let x = dbg!(y + 1);"],
        &["// dbg!(x)", "my_dbg_like!(x)", "\"use dbg!(x)\""],
    ),
    (
        "focused_test",
        &["  it.only('works', () => {", "describe.only(\"all\", () => {", "fdescribe('x', () => {"],
        &[
            "it('works only once', () => {",
            "query.only('name')",
            "fit(model, data)",
            "it.skip('x')",
        ],
    ),
];
