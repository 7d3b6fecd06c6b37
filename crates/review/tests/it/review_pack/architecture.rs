//! What the patterns of `reviewing-architecture-principles` find, and what they leave alone.

use super::Row;

pub(super) const ARCHITECTURE: &[Row] = &[
    (
        "domain_imports_infrastructure",
        &[
            "from sqlalchemy.orm import Session",
            "import express from 'express';",
            "use sqlx::PgPool;",
            "using Microsoft.EntityFrameworkCore;",
            "import \"database/sql\"",
        ],
        &[
            "from decimal import Decimal",
            "import { Money } from './money';",
            "// use sqlx for that",
            "use crate::flasks::Rack;",
        ],
    ),
    (
        "circular_dependency",
        &[
            "    # imported here to avoid circular imports\n    from app import models",
            "// breaks the cyclic dependency on user\nconst user = require('./user');",
            "from app import models  # avoid circular import",
        ],
        &[
            "# a circular buffer avoids copies",
            "// detect circular imports",
            "raise CircularImport()",
            "# prevent circular references\nimport weakref",
            "# to avoid circular imports, see above\nx = 1",
            "// prevent circular references\nconst seen = new Set();",
        ],
    ),
    (
        "query_in_view",
        &[
            "<% rows = db.execute(\"SELECT name FROM users WHERE id = 1\") %>",
            "'delete from carts '",
        ],
        &["<p>Select one from the list</p>", "\"Update set\"", "\"Please select a file\""],
    ),
    (
        "global_mutable_state",
        &["static mut COUNTER: u32 = 0;", "pub(crate) static mut CACHE: Vec<u8> = Vec::new();"],
        &[
            "static COUNTER: AtomicU32 = AtomicU32::new(0);",
            "// static mut is gone",
            "let mut x = 0;",
            "extern \"C\" {\n    pub static mut environ: *mut *mut c_char;\n}",
        ],
    ),
    (
        "function_10_params",
        &[
            "def f(a, b, c, d, e, g, h, i, j, k):",
            "fn f(\n    a: u8,\n    b: u8,\n    c: u8,\n    d: u8,\n    e: u8,\n    g: u8,\n    h: u8,\n    i: u8,\n    j: u8,\n    k: u8,\n) {",
            "def f(self, a, b, c, d, e, g, h, i, j, k):",
        ],
        &[
            "def f(a, b, c, d, e, g, h, i, j):",
            "fn f(\n    a: u8,\n    b: u8,\n    c: u8,\n    d: u8,\n    e: u8,\n    g: u8,\n    h: u8,\n    i: u8,\n    j: u8,\n) {",
            "f(a, b, c, d, e, g, h, i, j, k)",
            "def f(self, a, b, c, d, e, g, h, i, j):",
            "def f(a, b, c, d, e, g, h, i, j, **kwargs):",
            "def f(a: Dict[str, int], b: Dict[str, int], c, d, e, g, h, i):",
            "def f(self, a, b, c, d, e, g, h, i, j, **kwargs):",
            "fn f(&mut self, a: u8, b: u8, c: u8, d: u8, e: u8, g: u8, h: u8, i: u8, j: u8)",
        ],
    ),
    (
        "deep_relative_import",
        &["import { x } from '../../../../shared/x';", "require(\"../../../../../x\")"],
        &["import { x } from '../../x';", "const path = '../../../../data';"],
    ),
    (
        "direct_new_instantiation",
        &[
            "    private final UserRepository users = new UserRepository();",
            "  private readonly mail: MailService = new MailService(",
        ],
        &[
            "    private final UserRepository users;",
            "this.users = users;",
            "var s = new MailService();",
        ],
    ),
];
