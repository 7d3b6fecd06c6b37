//! What the patterns of `reviewing-security` find, and what they leave alone.
//! Credentials are put together from parts, so that no scanner takes them for real ones.

use super::Row;

pub(super) const SECURITY: &[Row] = &[
    (
        "hardcoded_password",
        &[
            concat!("pass", r#"word = "hunter2-prod""#),
            concat!("  db_pass", r#"word: 's3cretValue',"#),
            concat!(r#""pass"#, r#"word": "P@ssw0rd1""#),
            concat!("let admin_pwd", r#" := "tr0ub4dor&3";"#),
        ],
        &[
            r#"password = os.environ["DB_PASSWORD"]"#,
            r#"password: "required""#,
            r#""password": "Your password""#,
            r#"password = "${DB_PASSWORD_1}""#,
            r#"password = "<password1>""#,
            r#"if password == "hunter2-prod" {"#,
            r#"passwordField = "input""#,
            r#"password_reset_url = "/v1/reset/2""#,
        ],
    ),
    (
        "hardcoded_api_key",
        &[
            concat!("API_", r#"KEY = "f3a9c1d77be24e0fa1b2c3d4""#),
            concat!("  client", r#"Secret: 'q8Zk2Lm4Pn6Rs8Tu0Vw2Xy',"#),
        ],
        &[
            r#"apiKey: process.env.API_KEY"#,
            r#"api_key = "your-api-key-goes-right-here""#,
            r#"const API_KEY_HEADER = "x-api-key""#,
            r#"apiKey: "NEXT_PUBLIC_FIREBASE_API_KEY""#,
        ],
    ),
    (
        "hardcoded_token",
        &[
            concat!("curl -H 'Authorization: gh", "p_0123456789abcdefghijklmnopqrstuvwxyz'"),
            concat!("slack = 'xo", "xb-123456789012-abcdefghijklmnop'"),
            concat!("stripe.key = 'sk", "_live_0123456789abcdefghijklmn'"),
        ],
        &[
            "ghp_short",
            "prefix = 'ghp_'",
            "sk_test_0123456789abcdefghijklmn",
            "npm_config_registry",
        ],
    ),
    (
        "aws_access_key",
        &[concat!("aws_access_key_id = AK", "IAQWERTYUIOPASDFGH")],
        &["AKIA", "AKIAlowercase", "MAKIAQWERTYUIOPASDFGHJ", "AKIA0123456789012345"],
    ),
    (
        "private_key",
        &[
            concat!("-----BEGIN RSA PRIV", "ATE KEY-----\nMIIEowIBAAKCAQEAx9b1\n"),
            concat!("key = \"-----BEGIN PRIV", "ATE KEY-----\\nMIIEvQIBADANBgkqhki\\n\""),
        ],
        &[
            r#"if text.contains("-----BEGIN PRIVATE KEY-----") {"#,
            "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQ\n",
            "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIE\n",
        ],
    ),
    (
        "sql_injection_concat",
        &[
            r#"String q = "SELECT * FROM users WHERE id = " + id;"#,
            r#"db.query("select name from t where name = '" + name + "'")"#,
            r#"cur.execute('DELETE FROM t WHERE id = ' + user_id)"#,
            r#"$q = "UPDATE t SET name = '" . $name . "'";"#,
            r#"sql = "INSERT INTO t (a) VALUES ('" + value + "')""#,
        ],
        &[
            r#"db.query("SELECT * FROM users WHERE id = ?", [id])"#,
            r#"String q = "SELECT * FROM users WHERE id = " + SEQUENCE;"#,
            r#"sql = "SELECT a FROM t WHERE id IN (" + placeholders + ")""#,
            r#"log("Select a file from the list, where = " , name)"#,
            r#"q = "SELECT a FROM t " + "WHERE id = $1""#,
            r#"title = "Update " + name"#,
        ],
    ),
    (
        "sql_injection_template",
        &[
            r#"cur.execute(f"SELECT * FROM users WHERE id = {user_id}")"#,
            "db.query(`SELECT * FROM users WHERE name = '${name}'`)",
            r#"let q = format!("DELETE FROM t WHERE id = {}", id);"#,
            r#"q = f"select * from t where name like '%{name}%'""#,
        ],
        &[
            "sql`SELECT * FROM users WHERE name = ${name}`",
            r#"cur.execute("SELECT * FROM users WHERE id = %s", (user_id,))"#,
            r#"f"SELECT {COLUMNS} FROM users WHERE id = ?""#,
            r#"format!("Select one of {} where = is meant", names)"#,
            r#"f"Update {name} and set the rest""#,
        ],
    ),
    (
        "eval_untrusted",
        &[
            "eval(req.body.code)",
            "  result = eval(request.args['expr'])",
            "const f = new Function('a', location.hash.slice(1))",
            "exec(input('code: '))",
        ],
        &[
            "pattern.exec(req.query.name)",
            "evaluate(req.body.code)",
            "model.eval()",
            "eval(\"1 + 1\")",
            "db.exec(request.data)",
        ],
    ),
    (
        "shell_true_formatted",
        &[
            "subprocess.run(f'tar xf {name}', shell=True)",
            r#"subprocess.check_output("ls " + path, shell=True)"#,
            r#"subprocess.Popen("rm %s" % name, shell=True, cwd=here)"#,
            "os.system(f'convert {path} out.png')",
            r#"os.system("rm " + path)"#,
        ],
        &[
            "subprocess.run(['tar', 'xf', name])",
            "subprocess.run('ls -l', shell=True)",
            "subprocess.run(f'tar xf {name}', shell=False)",
            "os.system('clear')",
        ],
    ),
    (
        "tls_verification_disabled",
        &[
            "requests.get(url, verify=False)",
            "const agent = new https.Agent({ rejectUnauthorized: false });",
            "process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';",
            "tls.Config{InsecureSkipVerify: true}",
            ".danger_accept_invalid_certs(true)",
            "curl_setopt($c, CURLOPT_SSL_VERIFYPEER, false);",
        ],
        &[
            "requests.get(url, verify=True)",
            "def check(token, verify=False):",
            "rejectUnauthorized: true",
            "InsecureSkipVerify: false",
            ".danger_accept_invalid_certs(insecure)",
            "process.env.NODE_TLS_REJECT_UNAUTHORIZED = '1'",
        ],
    ),
    (
        "yaml_unsafe_load",
        &[
            "data = yaml.unsafe_load(text)",
            "data = yaml.load(f, Loader=yaml.Loader)",
            "data = yaml.load(f, yaml.UnsafeLoader)",
        ],
        &[
            "data = yaml.safe_load(text)",
            "data = yaml.load(f, Loader=yaml.SafeLoader)",
            "data = yaml.load(f, Loader=yaml.CSafeLoader)",
            "data = yaml.load(f)",
        ],
    ),
    (
        "pickle_untrusted",
        &[
            "obj = pickle.loads(request.data)",
            "obj = pickle.loads(base64.b64decode(request.cookies['s']))",
        ],
        &[
            "obj = pickle.load(cache_file)",
            "json.loads(request.data)",
            "pickle.dumps(request.data)",
        ],
    ),
];
