//! Cases about execution rows: their content in listings, and their visibility to tenants.

use std::sync::Arc;

use noetl_model::{CatalogId, ExecutionId, Fact, Seq, Tenant, Timestamp};

use super::story::{Story, done, failure, log, said, write};
use crate::{ExecutionFilter, ExecutionStatus, StartCounts, Store, TimeBuckets};

pub async fn a_row_is_read_back_unchanged(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    story.row.parent = Some(ExecutionId::new(3));
    write(&*store, story.start()).await;
    assert_eq!(row(&*store, &story).await, story.row);
    story.row.steps_entered = 2;
    story.row.steps_completed = 3;
    story.row.steps_failed = 4;
    story.row.steps_running = u32::MAX;
    story.row.current_step = None;
    let end = Fact::PlaybookFailed { step: Arc::from("a"), failure: failure() };
    write(&*store, story.then(vec![end])).await;
    let read = row(&*store, &story).await;
    assert_eq!(read, story.row);
    assert_eq!(read.error.as_deref(), Some("timeout: took longer than 5 s"));
}

pub async fn start_data_of_an_execution_never_changes(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let before = story.row.clone();
    story.row.path = Arc::from("other/path");
    story.row.catalog = CatalogId::new(99);
    story.row.playbook_version = 99;
    story.row.parent = Some(ExecutionId::new(99));
    story.row.started_at = Timestamp::from_micros(99);
    write(&*store, story.then(vec![said("hello")])).await;
    let after = row(&*store, &story).await;
    assert_eq!(after.path, before.path);
    assert_eq!(after.catalog, before.catalog);
    assert_eq!(after.playbook_version, before.playbook_version);
    assert_eq!(after.parent, before.parent);
    assert_eq!(after.started_at, before.started_at);
    assert_eq!(after.version, Seq(4));
}

pub async fn another_tenant_sees_nothing(store: Arc<dyn Store>) {
    let mut mine = Story::new(10);
    let mut theirs = Story::new(11).of("acme");
    write(&*store, mine.start()).await;
    write(&*store, theirs.start()).await;
    for (story, other) in [(&mine, &theirs), (&theirs, &mine)] {
        let hidden = store.execution(&story.tenant, other.id()).await;
        assert_eq!(hidden.expect("a read"), None);
        let listed = list(&*store, &story.tenant, &all()).await;
        assert_eq!(listed, [story.id().get()]);
    }
    let nobody = Tenant::new("nobody");
    assert!(list(&*store, &nobody, &all()).await.is_empty());
}

pub async fn an_execution_records_its_tenant(store: Arc<dyn Store>) {
    let mut story = Story::new(10).of("acme");
    write(&*store, story.start()).await;
    let tenant = store.tenant_of(story.id()).await.expect("a read");
    assert_eq!(tenant, Some(Tenant::new("acme")));
    let unknown = store.tenant_of(ExecutionId::new(11)).await;
    assert_eq!(unknown.expect("a read"), None);
}

pub async fn a_list_is_ordered_by_start_with_offset_and_limit(store: Arc<dyn Store>) {
    for (id, started_at) in [(10, 5), (11, 9), (12, 5), (13, 7), (14, 1)] {
        let mut story = Story::new(id);
        story.row.started_at = Timestamp::from_micros(started_at);
        write(&*store, story.start()).await;
    }
    let tenant = Tenant::default();
    for (offset, limit, expected) in [
        (0, usize::MAX, vec![11, 13, 12, 10, 14]),
        (0, 2, vec![11, 13]),
        (2, 2, vec![12, 10]),
        (4, 2, vec![14]),
        (5, 2, vec![]),
        (usize::MAX, usize::MAX, vec![]),
        (0, 0, vec![]),
    ] {
        let filter = ExecutionFilter { offset, limit, ..ExecutionFilter::default() };
        let listed = list(&*store, &tenant, &filter).await;
        assert_eq!(listed, expected, "offset {offset}, limit {limit}");
    }
}

pub async fn a_list_is_filtered_by_status_path_and_catalog(store: Arc<dyn Store>) {
    for (id, path, catalog, ends) in [
        (10, "demo/one", 1, true),
        (11, "demo/two", 2, false),
        (12, "prod/one", 1, false),
        (13, "prod/two", 2, true),
    ] {
        let mut story = Story::new(id);
        story.row.path = Arc::from(path);
        story.row.catalog = CatalogId::new(catalog);
        write(&*store, story.start()).await;
        if ends {
            write(&*store, story.then(vec![done()])).await;
        }
    }
    let running = Some(ExecutionStatus::Running);
    let completed = Some(ExecutionStatus::Completed);
    let cancelled = Some(ExecutionStatus::Cancelled);
    for (status, path, catalog, expected) in [
        (running, None, None, vec![12, 11]),
        (completed, None, None, vec![13, 10]),
        (cancelled, None, None, vec![]),
        (None, Some("one"), None, vec![12, 10]),
        (None, None, Some(2), vec![13, 11]),
        (running, Some("demo"), None, vec![11]),
        (completed, Some("two"), Some(2), vec![13]),
        (completed, Some("two"), Some(1), vec![]),
    ] {
        let filter = ExecutionFilter {
            status,
            path: path.map(str::to_owned),
            catalog: catalog.map(CatalogId::new),
            ..all()
        };
        let listed = list(&*store, &Tenant::default(), &filter).await;
        assert_eq!(listed, expected, "{filter:?}");
    }
}

pub async fn a_list_is_filtered_by_parent_and_start(store: Arc<dyn Store>) {
    for (id, parent, started_at, ends) in [
        (10, None, 5, false),
        (11, Some(10), 6, true),
        (12, Some(10), 7, false),
        (13, Some(9), 8, false),
    ] {
        let mut story = Story::new(id);
        story.row.parent = parent.map(ExecutionId::new);
        story.row.started_at = Timestamp::from_micros(started_at);
        write(&*store, story.start()).await;
        if ends {
            write(&*store, story.then(vec![done()])).await;
        }
    }
    let running = Some(ExecutionStatus::Running);
    for (parent, status, before, expected) in [
        (Some(10), None, None, vec![12, 11]),
        (Some(10), running, None, vec![12]),
        (Some(10), None, Some(7), vec![11]),
        (Some(8), None, None, vec![]),
        (None, None, Some(7), vec![11, 10]),
        (None, running, Some(8), vec![12, 10]),
    ] {
        let filter = ExecutionFilter {
            status,
            parent: parent.map(ExecutionId::new),
            started_before: before.map(Timestamp::from_micros),
            ..all()
        };
        let listed = list(&*store, &Tenant::default(), &filter).await;
        assert_eq!(listed, expected, "{filter:?}");
    }
    let filter = ExecutionFilter { parent: Some(ExecutionId::new(10)), ..all() };
    assert_eq!(list(&*store, &Tenant::new("acme"), &filter).await, Vec::<i64>::new());
}

pub async fn a_list_is_filtered_by_time_and_text(store: Arc<dyn Store>) {
    for (id, path, started_at, fails) in
        [(1010, "Demo/a", 5, false), (1011, "demo/b", 6, true), (1012, "other/Ä_%", 7, true)]
    {
        let mut story = Story::new(id);
        story.row.path = Arc::from(path);
        story.row.started_at = Timestamp::from_micros(started_at);
        write(&*store, story.start()).await;
        if fails {
            let failed = Fact::PlaybookFailed { step: Arc::from("a"), failure: failure() };
            write(&*store, story.then(vec![failed])).await;
        }
    }
    let written = error_of(&*store, 1011).await;
    let failed = Some(ExecutionStatus::Failed);
    for (status, after, before, text, expected) in [
        (None, Some(6), None, None, vec![1012, 1011]),
        (None, Some(6), Some(7), None, vec![1011]),
        (failed, Some(7), None, None, vec![1012]),
        (None, Some(8), None, None, vec![]),
        (None, None, None, Some("DEMO"), vec![1011, 1010]),
        (None, None, None, Some("ä_%"), vec![1012]),
        (None, None, None, Some("011"), vec![1011]),
        (failed, None, None, Some("101"), vec![1012, 1011]),
        (failed, None, None, Some(written.as_str()), vec![1012, 1011]),
        (None, None, None, Some(""), vec![1012, 1011, 1010]),
        (None, None, None, Some("%"), vec![1012]),
    ] {
        let filter = ExecutionFilter {
            status,
            started_after: after.map(Timestamp::from_micros),
            started_before: before.map(Timestamp::from_micros),
            text: text.map(str::to_owned),
            ..all()
        };
        let listed = list(&*store, &Tenant::default(), &filter).await;
        assert_eq!(listed, expected, "{filter:?}");
    }
}

/// Returns the error in an execution's row.
async fn error_of(store: &dyn Store, id: i64) -> String {
    let row = store.execution(&Tenant::default(), ExecutionId::new(id)).await.expect("a row");
    row.and_then(|row| row.error).expect("an error")
}

pub async fn executions_are_counted_by_start(store: Arc<dyn Store>) {
    for (id, tenant, started_at, ends) in [
        (10, "default", 99, false),
        (11, "default", 100, true),
        (12, "default", 109, true),
        (13, "default", 109, false),
        (14, "default", 110, false),
        (15, "default", 129, false),
        (16, "default", 130, false),
        (17, "acme", 100, false),
    ] {
        let mut story = Story::new(id).of(tenant);
        story.row.started_at = Timestamp::from_micros(started_at);
        write(&*store, story.start()).await;
        if ends {
            write(&*store, story.then(vec![done()])).await;
        }
    }
    let stretch = TimeBuckets { from: Timestamp::from_micros(100), width_micros: 10, count: 3 };
    let counts = store.executions_by_start(&Tenant::default(), stretch).await.expect("counts");
    let (completed, running) = (ExecutionStatus::Completed, ExecutionStatus::Running);
    let expected = [
        StartCounts { place: 0, status: completed, count: 2 },
        StartCounts { place: 0, status: running, count: 1 },
        StartCounts { place: 1, status: running, count: 1 },
        StartCounts { place: 2, status: running, count: 1 },
    ];
    assert_eq!(counts, expected);
    let none = store.executions_by_start(&Tenant::new("nobody"), stretch).await.expect("counts");
    assert_eq!(none, []);
}

pub async fn a_path_filter_ignores_case_and_matches_every_character_literally(
    store: Arc<dyn Store>,
) {
    for (id, path) in [(10, "Demo/100%"), (11, "demo/a_b"), (12, "demo/ÄÖÜ")] {
        let mut story = Story::new(id);
        story.row.path = Arc::from(path);
        write(&*store, story.start()).await;
    }
    for (text, expected) in [
        ("DEMO", vec![12, 11, 10]),
        ("%", vec![10]),
        ("_", vec![11]),
        ("äöü", vec![12]),
        ("", vec![12, 11, 10]),
        ("demo/a?b", vec![]),
    ] {
        let filter = ExecutionFilter { path: Some(text.into()), ..all() };
        let listed = list(&*store, &Tenant::default(), &filter).await;
        assert_eq!(listed, expected, "{text:?}");
    }
}

pub async fn a_finished_execution_is_not_unfinished(store: Arc<dyn Store>) {
    let cancelled = Fact::PlaybookCancelled { reason: None };
    let failed = Fact::PlaybookFailed { step: Arc::from("a"), failure: failure() };
    for (id, end) in (10..).zip([done(), cancelled, failed]) {
        let mut story = Story::new(id);
        write(&*store, story.start()).await;
        assert_eq!(unfinished(&*store, 0, 10).await, [id]);
        write(&*store, story.then(vec![end])).await;
        assert!(unfinished(&*store, 0, 10).await.is_empty());
    }
}

pub async fn executions_of_all_tenants_are_listed_in_id_order(store: Arc<dyn Store>) {
    let mut stories = [Story::new(12), Story::new(10).of("acme"), Story::new(11)];
    for story in &mut stories {
        write(&*store, story.start()).await;
    }
    let ended = stories[1].then(vec![done()]);
    write(&*store, ended).await;
    let page = async |after, limit| {
        let page = store.every_execution(ExecutionId::new(after), limit).await.expect("a page");
        page.into_iter().map(|(tenant, row)| (tenant.to_string(), row)).collect::<Vec<_>>()
    };
    let first = page(i64::MIN, 2).await;
    let expected = [
        ("acme".to_owned(), stories[1].row.clone()),
        ("default".to_owned(), stories[2].row.clone()),
    ];
    assert_eq!(first, expected);
    assert_eq!(page(11, 2).await, [("default".to_owned(), stories[0].row.clone())]);
    assert!(page(12, 2).await.is_empty());
}

pub async fn unfinished_executions_are_listed_in_pages_in_id_order(store: Arc<dyn Store>) {
    for (id, tenant) in [(13, "default"), (10, "acme"), (12, "default"), (11, "default")] {
        write(&*store, Story::new(id).of(tenant).start()).await;
    }
    assert_eq!(unfinished(&*store, i64::MIN, 3).await, [10, 11, 12]);
    assert_eq!(unfinished(&*store, 12, 3).await, [13]);
    assert!(unfinished(&*store, 13, 3).await.is_empty());
    assert!(unfinished(&*store, 0, 0).await.is_empty());
}

pub async fn a_finished_execution_accepts_reports(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![done()])).await;
    write(&*store, story.then(vec![said("late")])).await;
    assert_eq!(log(&*store, story.id()).await.len(), 5);
    assert_eq!(row(&*store, &story).await, story.row);
    assert!(unfinished(&*store, 0, 10).await.is_empty());
}

fn all() -> ExecutionFilter {
    ExecutionFilter { limit: 100, ..ExecutionFilter::default() }
}

async fn row(store: &dyn Store, story: &Story) -> crate::ExecutionRow {
    let row = store.execution(&story.tenant, story.id()).await;
    row.expect("a read").expect("an execution")
}

async fn list(store: &dyn Store, tenant: &Tenant, filter: &ExecutionFilter) -> Vec<i64> {
    let rows = store.executions(tenant, filter).await.expect("a list");
    rows.iter().map(|row| row.id.get()).collect()
}

async fn unfinished(store: &dyn Store, after: i64, limit: usize) -> Vec<i64> {
    let ids = store.unfinished(ExecutionId::new(after), limit).await;
    let ids = ids.expect("a page");
    ids.iter().map(|id| id.get()).collect()
}

pub async fn executions_are_counted_by_status(store: Arc<dyn Store>) {
    for number in 10..13 {
        let mut story = Story::new(number);
        write(&*store, story.start()).await;
        if number == 10 {
            write(&*store, story.then(vec![done()])).await;
        }
    }
    write(&*store, Story::new(13).of("acme").start()).await;
    let counts = store.executions_by_status(&Tenant::default()).await.expect("counts");
    let expected = [(ExecutionStatus::Completed, 1), (ExecutionStatus::Running, 2)];
    assert_eq!(counts, expected);
    let none = store.executions_by_status(&Tenant::new("nobody")).await.expect("counts");
    assert_eq!(none, []);
}
