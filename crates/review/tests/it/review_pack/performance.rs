//! What the patterns of `reviewing-performance` find, and what they leave alone.

use super::Row;

pub(super) const PERFORMANCE: &[Row] = &[
    (
        "select_star_in_loop",
        &[
            "for user in users:\n    rows = db.query('SELECT * FROM orders WHERE user = ?', user)",
            "for (const id of ids) {\n  const r = await q(`select * from t where id = $1`, [id]);",
        ],
        &[
            "rows = db.query('SELECT * FROM orders')\nfor r in rows:\n    print(r)",
            "for x in xs:\n    f(x)\nq('SELECT * FROM t')",
            "for x in xs:\n    q('SELECT id FROM t')",
            "for x in xs:\n    print(\"SELECT * FROM docs\")",
        ],
    ),
    (
        "n_plus_one_query",
        &[
            "for (const o of orders) {\n  o.user = await User.findByPk(o.userId);",
            "for order in orders:\n    user = User.objects.get(id=order.user_id)",
            "for _, id := range ids {\n\trow := db.QueryRow(query, id)",
        ],
        &[
            "const users = await User.findAll({ where: { id: ids } });\nfor (const u of users) {\n  show(u);",
            "for order in orders:\n    print(order)\nuser = User.objects.get(id=1)",
        ],
    ),
    (
        "regex_compiled_in_loop",
        &[
            "for line in lines {\n    let re = Regex::new(r\"^a+$\").unwrap();",
            "for (String s : all) {\n  Matcher m = Pattern.compile(\"a+\").matcher(s);",
        ],
        &[
            "let re = Regex::new(r\"^a+$\").unwrap();\nfor line in lines {\n    re.is_match(line);",
            "for word in words {\n    let re = Regex::new(&word).unwrap();",
        ],
    ),
    (
        "blocking_call_in_async",
        &[
            "async def poll(self):\n    time.sleep(5)",
            "    data = await load()\n    requests.post(url, json=data)",
            "    let x = load().await?;\n    std::thread::sleep(pause);",
        ],
        &[
            "def poll(self):\n    time.sleep(5)",
            "async def poll(self):\n    await asyncio.sleep(5)",
            "    x = await load()\n\ndef wait():\n    time.sleep(1)",
            "    let x = load().await?;\n    tokio::time::sleep(pause).await;",
            "    x = await loop.run_in_executor(None,\n        time.sleep(1))",
            "async def poll(self):\n    await loop.run_in_executor(None, lambda: time.sleep(1))",
        ],
    ),
    (
        "sync_io_in_handler",
        &[
            "app.get('/x', (req, res) => {\n  const t = fs.readFileSync('x.html');",
            "router.post('/x', async function (req, res) {\n  execSync('ls');",
        ],
        &[
            "const t = fs.readFileSync('x.html');\napp.get('/x', (req, res) => {\n  res.send(t);",
            "app.get('/x', async (req, res) => {\n  const t = await fs.readFile('x');",
        ],
    ),
    (
        "catastrophic_regex",
        &[
            "const re = /^(\\w+)+$/;",
            "re.match(r'([a-z]*)*x', text)",
            "Pattern.compile(\"(?:.*)+\")",
        ],
        &["/^(\\w+)$/", "/(\\w+,)+/", "(a + b) * c", "/([a-z])+/", "f(x)*(y+)"],
    ),
    (
        "len_of_queryset",
        &["n = len(User.objects.filter(active=True))", "if len(Order.objects.all()) > 3:"],
        &["n = User.objects.filter(active=True).count()", "n = len(users)", "len(x.objects)"],
    ),
    (
        "order_by_random",
        &["SELECT * FROM t ORDER BY RAND() LIMIT 1", "\"... order by random()\""],
        &["ORDER BY created_at", "ORDER BY random_key", "order by rank()"],
    ),
    (
        "collect_then_count",
        &["let n = words.filter(ok).collect::<Vec<_>>().len();"],
        &["let n = words.filter(ok).count();", ".collect::<Vec<_>>().sort()"],
    ),
    (
        "json_round_trip_clone",
        &["const copy = JSON.parse(JSON.stringify(state));"],
        &["JSON.parse(text)", "JSON.stringify(JSON.parse(text))", "structuredClone(state)"],
    ),
];
