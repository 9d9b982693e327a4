//! `borehole mcp` and the server's `/mcp`, asked by the clients that the makers of the protocol publish.

use borehole_testkit::peers::{Peer, peer};
use serde_json::{Value, json};

use crate::program::{corpus, run};
use crate::serve::Serving;

/// The program, as a client starts it.
const PROGRAM: &str = env!("CARGO_BIN_EXE_borehole");

/// The answer that the inspector prints about a program that it starts.
fn inspected(inspector: &Peer, program: &[&str], asked: &[&str]) -> Value {
    let arguments = [&["inspect", "--"], program, &["--"], asked].concat();
    serde_json::from_str(&inspector.stdout(&arguments)).unwrap()
}

#[test]
fn the_inspector_lists_tools_with_schemas_and_calls_them() {
    let Some(inspector) = peer("mcp") else { return };
    let file = corpus("rbt/daemon_worker.rbt");
    let program = [PROGRAM, "mcp", &file];
    let listed = inspected(&inspector, &program, &["tools/list"]);
    let tools = listed["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 15, "{listed}");
    for tool in tools {
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
    }
    let asked = ["tools/call", "top", "input=daemon_worker.rbt", "limit=3"];
    let answer = inspected(&inspector, &program, &asked);
    assert_eq!(answer["structuredContent"]["total"], 30, "{answer}");
    assert_eq!(answer["structuredContent"]["rows"].as_array().unwrap().len(), 3);
    assert!(answer["content"][0]["text"].as_str().unwrap().contains("of 30 samples"), "{answer}");
    let heap = corpus("php/heap/8.1.2.rdump");
    let listed = inspected(&inspector, &[PROGRAM, "rmem:mcp", &format!("--rmem={heap}")], &["tools/list"]);
    assert_eq!(listed["tools"].as_array().unwrap().len(), 19, "{listed}");
}

#[test]
fn the_server_conforms_to_the_protocol() {
    let Some(tests) = peer("mcp") else { return };
    let (_serving, address) = Serving::start(&[&corpus("rbt/daemon_worker.rbt")]);
    for scenario in ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"] {
        let said = tests.stdout(&["conform", &format!("{address}mcp"), scenario]);
        assert!(said.contains("Failed: 0") || said.contains("0 failed"), "{scenario}: {said}");
    }
}

#[test]
fn the_client_for_python_accepts_what_every_tool_answers() {
    let Some(client) = peer("mcp-python") else { return };
    let profile = json!({ "input": "26_realapp_zstd.bin" });
    let heap = json!({ "input": "8.1.2.rdump" });
    let with = |base: &Value, more: Value| {
        let mut all = base.as_object().unwrap().clone();
        all.extend(more.as_object().unwrap().clone());
        Value::from(all)
    };
    let calls = [
        ("open", json!({})),
        ("overview", profile.clone()),
        ("top", with(&profile, json!({ "limit": 5, "sort": "total" }))),
        ("tree", profile.clone()),
        ("callers_callees", with(&profile, json!({ "function": "f0" }))),
        ("paths", profile.clone()),
        ("timeline", profile.clone()),
        ("by", with(&profile, json!({ "by": "thread" }))),
        ("diff", json!({ "before": ["26_realapp_zstd.bin"], "after": ["26_realapp_zstd.bin"] })),
        ("tokio_flags", json!({ "input": "stuck_worker.bin" })),
        ("heap_classes", heap.clone()),
        ("heap_findings", heap.clone()),
        ("heap_ask", with(&heap, json!({ "node": "n0" }))),
    ];
    let inputs = ["tachyon/corpus/26_realapp_zstd.bin", "php/heap/8.1.2.rdump", "trc/tokio/stuck_worker.bin"]
        .map(corpus);
    let mut arguments = vec![PROGRAM.to_owned(), "mcp".to_owned()];
    arguments.extend(inputs);
    arguments.push("--".to_owned());
    for (tool, call) in &calls {
        arguments.extend([(*tool).to_owned(), call.to_string()]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let said: Value = serde_json::from_str(&client.stdout(&arguments)).unwrap();
    for ((tool, _), answer) in calls.iter().zip(said["answers"].as_array().unwrap()) {
        assert_eq!(answer["isError"], false, "{tool}: {answer}");
        assert!(answer["structuredContent"].is_object(), "{tool}: {answer}");
    }
}

#[test]
fn reli_names_of_these_commands_work() {
    let heap = corpus("php/heap/8.1.2.rdump");
    let node = String::from_utf8(run(&["rmem:query", &heap, "--node", "0", "--children"]).done()).unwrap();
    assert!(node.contains("Node n0") && node.contains("holds"), "{node}");
    let refused = run(&["rmem:serve", &heap, "--socket", "/tmp/x.sock"]).failed();
    assert!(refused.contains("over HTTP"), "{refused}");
}

#[cfg(feature = "lake")]
#[test]
fn a_lake_is_asked_in_sql_and_by_selection() {
    let scratch = borehole_testkit::Scratch::new();
    let lake = scratch.path("lake").to_str().unwrap().to_owned();
    for (version, file) in [("1", "rbt/daemon_worker.rbt"), ("2", "rbt/native.rbt")] {
        let label = format!("version={version}");
        run(&["lake", "add", &lake, &corpus(file), "--service", "shop", "--label", &label]).done();
    }
    let asked = |question: &[&str]| -> Value {
        let words = [&["query", &*lake], question, &["--json"]].concat();
        serde_json::from_slice(&run(&words).done()).unwrap()
    };
    let sums = asked(&["query", "sql=SELECT service, sum(value) AS value FROM samples GROUP BY 1"]);
    assert_eq!((&sums["columns"], &sums["rows"][0][0]), (&json!(["service", "value"]), &json!("shop")));
    let top = asked(&["lake_top", "label=version=1", "limit=3"]);
    assert_eq!(top["rows"].as_array().unwrap().len(), 3, "{top}");
    let changed = asked(&["lake_diff", "before=version=1", "after=version=2"]);
    assert!(changed["rows"][0][5].is_string(), "{changed}");
    for wrong in ["sql=DROP TABLE samples", "sql=COPY samples TO '/tmp/x.csv'", "sql=--schema"] {
        let refused = run(&["query", &lake, "query", wrong]).failed();
        assert!(refused.starts_with("error: "), "{wrong}: {refused}");
    }
    let (_serving, address) = Serving::start(&[&lake]);
    let host = address.strip_prefix("http://").unwrap().trim_end_matches('/');
    let listed = crate::serve::send(host, "GET", "/api/v1/lakes");
    assert_eq!(listed["lakes"], json!([lake]));
}
