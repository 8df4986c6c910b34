use std::sync::Arc;

use super::*;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn read(parent: &str) -> Option<TraceContext> {
    TraceContext::read(parent, None)
}

fn state(text: &str) -> Option<String> {
    let context = TraceContext::read(PARENT, Some(text)).expect("a sound parent");
    context.trace.state.as_deref().map(str::to_owned)
}

#[test]
fn a_parent_comes_out_as_it_went_in() {
    let context = read(PARENT).expect("the recommendation's own example");
    assert_eq!(context.parent(), PARENT);
    assert!(context.trace.is_sampled());
    assert_eq!(context.trace.id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(context.span.to_string(), "00f067aa0ba902b7");
    let unsampled = context.sampled(false);
    assert_eq!(unsampled.parent(), PARENT.replace("-01", "-00"));
    assert_eq!(unsampled.sampled(true).parent(), PARENT);
}

#[test]
fn an_invalid_traceparent_is_none() {
    for wrong in [
        "",
        "00",
        // Capitals.
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        // Nothing but zeros.
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        // The forbidden version, and one that is no number.
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        // More than version 00 has.
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.",
        // A later version whose addition is not parted by a dash.
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
        // Parts of other lengths that come to the same length.
        "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7--1",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0 ",
        "00+4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        // A sign is no digit.
        "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        // Characters of several bytes at the places that are cut.
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0é",
        "ééééééééééééééééééééééééééééééééééééééééééééééééééééééé",
    ] {
        assert_eq!(read(wrong), None, "{wrong}");
    }
    assert_eq!(read(&"0".repeat(100_000)), None);
}

#[test]
fn fields_of_later_versions_are_dropped() {
    let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-what-will-be";
    let context = read(later).expect("its known part");
    // Flags that are not known are not passed on.
    assert_eq!(context.parent(), PARENT.replace("-01", "-03"));
}

#[test]
fn a_tracestate_is_passed_on_without_empty_members() {
    assert_eq!(
        state("rojo=00f067aa0ba902b7, congo=t61 ,,").as_deref(),
        Some("rojo=00f067aa0ba902b7,congo=t61")
    );
    assert_eq!(state("1a-_*/@b=x y").as_deref(), Some("1a-_*/@b=x y"));
}

#[test]
fn a_list_that_is_none_is_left_out_and_the_parent_stays() {
    let many = (0..33).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
    let long = format!("k={}", "v".repeat(257));
    for wrong in
        ["", " , ", "a", "a=", "=b", "A=b", "a=b=c", "a=é", "a=1,a=2", "@a=b", &many, &long]
    {
        assert_eq!(state(wrong), None, "{wrong}");
    }
}

#[test]
fn a_long_list_loses_long_members_first_and_then_the_last() {
    let long = format!("long={}", "v".repeat(200));
    let short = |n: usize| format!("k{n}={}", "v".repeat(60));
    let mut members = vec![long.clone()];
    members.extend((0..6).map(short));
    let kept: Vec<String> = (0..6).map(short).collect();
    assert_eq!(state(&members.join(",")), Some(kept.join(",")));
    let many: Vec<String> = (0..20).map(short).collect();
    assert_eq!(state(&many.join(",")), Some(many[..8].join(",")));
}

#[test]
fn a_trace_is_an_object_in_rows() {
    let context = TraceContext::read(PARENT, Some("a=b")).expect("a parent");
    let context = context.with_baggage(Some("user=Ada"));
    let text = serde_json::to_string(&context).expect("JSON");
    let expected =
        format!(r#"{{"traceparent":"{PARENT}","tracestate":"a=b","baggage":"user=Ada"}}"#);
    assert_eq!(text, expected);
    let fields: Map = serde_json::from_str(&text).expect("an object");
    assert_eq!(TraceContext::of_fields(&fields), Some(context));
}

#[test]
fn a_row_with_an_invalid_trace_is_read_without_one() {
    #[derive(serde::Deserialize)]
    struct Row {
        #[serde(default, deserialize_with = "kept")]
        trace: Option<TraceContext>,
    }
    let read = |text: &str| serde_json::from_str::<Row>(text).expect("a row").trace;
    for none in [
        "{}",
        r#"{"trace":null}"#,
        r#"{"trace":7}"#,
        r#"{"trace":"00-4b"}"#,
        r#"{"trace":{}}"#,
        r#"{"trace":{"traceparent":7}}"#,
        r#"{"trace":{"traceparent":"00"}}"#,
    ] {
        assert_eq!(read(none), None, "{none}");
    }
    let found = read(&format!(r#"{{"trace":{{"traceparent":"{PARENT}","tracestate":7,"x":[]}}}}"#));
    assert_eq!(found, super::tests::read(PARENT));
}

#[test]
fn baggage_that_no_header_can_carry_is_left_out() {
    let with = |text: &str| read(PARENT).expect("a parent").with_baggage(Some(text)).baggage;
    assert_eq!(with("a=b").as_deref(), Some("a=b"));
    for wrong in ["", "  ", "a=\r\nx: y", "a=é", &"b".repeat(8193)] {
        assert_eq!(with(wrong), None, "{wrong}");
    }
}

#[test]
fn spans_are_known_by_ids() {
    let span = SpanId::of_command(CommandId::new(0x0123_4567_89ab_cdef));
    assert_eq!(span.to_string(), "0123456789abcdef");
    let context = read(PARENT).expect("a parent").with_span(span);
    assert_eq!(context.parent(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0123456789abcdef-01");
    assert_eq!(SpanId::new(0).to_string(), "0000000000000001");
}

#[test]
fn samplers_follow_the_caller_or_do_not() {
    let said = |is_sampled| read(PARENT).expect("a parent").sampled(is_sampled);
    let follows = |root| Sampler { root, follows_caller: true };
    let own = |root| Sampler { root, follows_caller: false };
    for root in [RootSampling::All, RootSampling::None] {
        assert!(follows(root).takes(&said(true)));
        assert!(!follows(root).takes(&said(false)));
    }
    assert!(own(RootSampling::All).takes(&said(false)));
    assert!(!own(RootSampling::None).takes(&said(true)));
    assert!(Sampler::default().takes_new(TraceId::new(7)));
}

#[test]
fn a_share_of_traces_is_that_share() {
    let share = |share: f64| RootSampling::Share(Ratio::new(share).expect("a share"));
    let taken = |root| {
        let sampler = Sampler { root, follows_caller: true };
        // Ids spread over the whole range.
        let ids = (0..1000_u128).map(|n| TraceId::new((n * 0x9e37_79b9_7f4a_7c15) | (1 << 100)));
        ids.filter(|id| sampler.takes_new(*id)).count()
    };
    assert_eq!(taken(share(0.0)), 0);
    assert_eq!(taken(share(1.0)), 1000);
    assert!((200..300).contains(&taken(share(0.25))), "{}", taken(share(0.25)));
    assert_eq!([Ratio::new(-0.1), Ratio::new(1.1), Ratio::new(f64::NAN)], [None; 3]);
}

#[test]
fn shared_values_are_not_copied() {
    let context = read(PARENT).expect("a parent");
    assert!(Arc::ptr_eq(&context.trace, &context.with_span(SpanId::new(5)).trace));
    assert!(Arc::ptr_eq(&context.trace, &context.clone().sampled(true).trace));
}

#[test]
fn fields_of_another_type_are_no_trace() {
    let fields = Map::from_iter([(TRACEPARENT.to_owned(), Value::from(7))]);
    assert_eq!(TraceContext::of_fields(&fields), None);
}
