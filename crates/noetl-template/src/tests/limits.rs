use super::*;

/// Renders a template and checks that a limit stops it. A limit that does not count the work leaves the test
/// running until the runner's timeout.
#[track_caller]
fn refused(template: &str, part: &str) {
    let rendered = render(json!({"xs": [1, 2, 3]}), template);
    let message = rendered.as_str().unwrap_or_default();
    assert!(message.contains(part), "{template}: {message:.300}");
}

#[test]
fn large_texts_are_rejected_before_they_are_built() {
    let limit = "bytes of output";
    refused("{{ 'a' * 10**9 }}", limit);
    refused("{{ 'a' * 10**15 }}", limit);
    refused("{{ ('a' * 10**6) | replace('a', 'b' * 10**6) }}", limit);
    refused("{{ ('a\n' * 10**6) | indent(10**9) }}", limit);
    refused("{{ range(50000) | join('a' * 10**4) }}", limit);
    refused("{{ ('a' * 10**5) | regex_replace('a', 'b' * 10**5) }}", limit);
    refused("{{ (['a' * 10**4] * 9999) | map('replace', 'a', 'b' * 1000) | list }}", "operations");
    refused("{{ '%s%s%s%s' | format('a' * 10**7, 1, 2, 3) }}", limit);
    refused("{{ {'a': 'x' * 10**7, 'b': ['x' * 10**7]} | urlencode }}", limit);
    refused("{{ '%999999999d' | format(1) }}", "limit of 9999");
    refused("{% for i in range(99999) %}{{ 'a' * 1000 }}{% endfor %}", limit);
    refused(
        "{% set s = namespace(x='aa') %}{% for i in range(99) %}{% set s.x = s.x ~ s.x %}{% endfor %}",
        "exceeds the limit",
    );
}

#[test]
fn large_lists_are_rejected_before_they_are_built() {
    let limit = "limit of 100000 items";
    refused("{{ range(10**9) }}", limit);
    refused("{{ [0] * 10**9 }}", limit);
    refused("{{ range(60000) + range(60000) }}", limit);
    refused("{{ ('a' * 10**7) | list }}", "operations");
    refused("{{ ('a,' * 10**6) | split(',') }}", limit);
    refused("{{ [1] | batch(10**9, 0) }}", "row count");
    refused("{{ [1] | slice(10**9) }}", "row count");
}

#[test]
fn work_beyond_the_operation_limit_is_rejected() {
    let limit = "limit of 1000000 operations";
    refused("{{ range(99999) | select('in', range(99999)) | list }}", limit);
    refused("{{ (['a' * 10**7] * 99999) | sort }}", limit);
    refused("{{ ['a' * 10**7] * 99999 == ['a' * 10**7] * 99999 }}", limit);
    refused("{{ range(99999) | map('regex_match', 'a{20}') }}", limit);
    refused("{{ ('[' ~ '1,' * 8000000 ~ '1]') | fromjson }}", limit);
    refused("{{ [1] | map('map', 'upper') }}", "cannot be applied to each item");
    refused(
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        limit,
    );
    refused("{% for a in range(99999) %}{% set x = range(99999) | sort %}{% endfor %}", limit);
    refused("{% set b = range(50000) %}{% for a in range(999) %}{{ a in b }}{% endfor %}", limit);
}

#[test]
fn exponentially_growing_values_are_rejected() {
    refused(
        "{% set s = namespace(x=[1]) %}{% for i in range(99) %}{% set s.x = [s.x, s.x] %}{% endfor %}{{ s.x }}",
        "operations",
    );
    let loops = "{% for x in [[x, x]] %}".repeat(60);
    let ends = "{% endfor %}".repeat(60);
    refused(&format!("{loops}{{{{ x }}}}{ends}"), "operations");
}

#[test]
fn deep_values_are_rejected() {
    refused(
        "{% set s = namespace(x=[]) %}{% for i in range(9999) %}{% set s.x = [s.x] %}{% endfor %}",
        "100 nested levels",
    );
    refused(
        "{% set s = namespace(x=xs) %}{% for i in range(9999) %}{% set s.x = s.x[0:] | reverse %}{% endfor %}done",
        "done",
    );
    refused("{% set s = namespace() %}{% set s.s = s %}{{ s }}", "cannot be put into");
    refused("{% set s = namespace() %}{% set s.s = [s] %}{{ s }}", "cannot be put into");
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let message = error_of(json!({"deep": deep}), "{{ deep }}");
    assert!(message.contains("100 nested levels"), "{message}");
}

#[test]
fn deep_templates_are_rejected_without_overflowing_the_stack() {
    for source in [
        format!("{{{{ {}x{} }}}}", "(".repeat(9999), ")".repeat(9999)),
        format!("{{{{ {}x }}}}", "not ".repeat(9999)),
        format!("{{{{ {}1 }}}}", "-".repeat(9999)),
        format!("{{{{ {}1 }}}}", "2**".repeat(9999)),
        format!("{{{{ x{} }}}}", "|upper".repeat(9999)),
        format!("{{{{ x{} }}}}", "+1".repeat(9999)),
        format!("{{{{ {}x }}}}", "a if b else ".repeat(9999)),
        format!("{{{{ {}{} }}}}", "[".repeat(9999), "]".repeat(9999)),
        format!("{}{}", "{% if a %}".repeat(9999), "{% endif %}".repeat(9999)),
        format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(9999)),
        format!("{}{}", "{% for a in a %}".repeat(9999), "{% endfor %}".repeat(9999)),
    ] {
        assert!(Template::parse(&source).is_err(), "{source:.40}");
    }
}

#[test]
fn templates_near_the_nesting_limit_fit_half_a_thread_stack() {
    let work = || {
        for source in [
            format!("{{{{ {}x }}}}", "not ".repeat(1400)),
            format!("{{{{ x{} }}}}", "|upper".repeat(700)),
            format!("{{{{ x{} }}}}", "|upper".repeat(115)),
            format!("{{{{ x{} }}}}", "+1".repeat(115)),
            format!("{{{{ {}1{} }}}}", "dict(a=".repeat(115), ")".repeat(115)),
            format!("{{{{ x{} }}}}", ".a".repeat(115)),
            format!("{{{{ {}{} }}}}", "[".repeat(110), "]".repeat(110)),
            format!("{{{{ {}x{} }}}}", "(".repeat(140), ")".repeat(140)),
            format!("{}{}", "{% if 1 %}".repeat(115), "{% endif %}".repeat(115)),
            format!("{}{}", "{% for a in [1] %}".repeat(115), "{% endfor %}".repeat(115)),
            format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(100)),
        ] {
            if let Ok(template) = Template::parse(&source) {
                let _ = template.render(&scope(json!({"x": 1})));
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(1024 * 1024);
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn ordinary_templates_stay_far_below_the_limits() {
    let rendered = render(
        json!({"rows": (0..5000).collect::<Vec<_>>()}),
        "{% for r in rows %}{{ r * 2 }},{% endfor %}",
    );
    assert_eq!(rendered.as_str().unwrap().matches(',').count(), 5000);
    let text = "x".repeat(8 * 1024 * 1024);
    assert_eq!(render(json!({"t": text}), "{{ t }}"), json!(text));
}
