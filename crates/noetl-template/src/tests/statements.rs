use super::*;

#[track_caller]
fn check_text(template: &str, expected: &str) {
    let workload = json!({"rows": [{"n": 1}, {"n": 2}, {"n": 3}], "map": {"b": 1, "a": 2}});
    assert_eq!(render(workload, template), json!(expected), "{template}");
}

#[test]
fn loop_variables_give_the_index_of_the_item() {
    check_text(
        "{% for r in rows %}{{ loop.index }}/{{ loop.length }}={{ r.n }}{{ ',' if not loop.last }}{% endfor %}",
        "1/3=1,2/3=2,3/3=3",
    );
    check_text("{% for r in rows if r.n > 1 %}{{ r.n }}{% endfor %}", "23");
    check_text("{% for x in missing %}{% else %}none{% endfor %}", "none");
    check_text("{% for k, v in map.items() %}{{ k }}{{ v }}{% endfor %}", "b1a2");
    check_text("{% for k in map %}{{ k }}{% endfor %}", "ba");
    check_text("{% for r in rows %}{{ loop.cycle('a', 'b') }}{% endfor %}", "aba");
    check_text(
        "{% for r in rows %}{% if r.n == 2 %}{% continue %}{% endif %}{{ r.n }}{% endfor %}",
        "13",
    );
    check_text(
        "{% for r in rows %}{% if r.n == 2 %}{% break %}{% endif %}{{ r.n }}{% endfor %}",
        "1",
    );
}

#[test]
fn a_name_set_in_a_loop_is_local_to_the_loop() {
    check_text("{% set n = 0 %}{% for r in rows %}{% set n = r.n %}{% endfor %}{{ n }}", "0");
    check_text(
        "{% set s = namespace(n=0) %}{% for r in rows %}{% set s.n = s.n + r.n %}{% endfor %}{{ s.n }}",
        "6",
    );
}

#[test]
fn blocks_bind_capture_and_filter() {
    check_text("{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}", "3");
    check_text("{% set t %}x{{ rows[0].n }}{% endset %}{{ t }}{{ t }}", "x1x1");
    check_text("{% filter upper %}ab{{ 'c' }}{% endfilter %}", "ABC");
    check_text("{% set a, b = [1, 2] %}{{ b }}{{ a }}", "21");
    check_text("{% if false %}a{% elif rows %}b{% else %}c{% endif %}", "b");
}

#[test]
fn a_local_name_shadows_a_scope() {
    check_text("{% set ctx = {'rows': 1} %}{{ ctx.rows }}", "1");
}

#[test]
fn only_a_namespace_is_mutable() {
    let message = error_of(json!({"m": {}}), "{% set m.x = 1 %}");
    assert_eq!(message, "cannot set m.x: only a namespace() can be changed");
}

#[test]
fn sql_filters_escape_values() {
    let template = "INSERT INTO t VALUES ({{ name | sql }}, {{ n | sql }}, {{ none | sql }})";
    let rendered = render(json!({"name": "O'Hara", "n": 5}), template);
    assert_eq!(rendered, json!("INSERT INTO t VALUES ('O''Hara', 5, NULL)"));
}
