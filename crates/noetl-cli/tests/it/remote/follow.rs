use std::io::{BufRead as _, BufReader};

use rustix::process::Signal;

use super::Site;
use crate::dev_process::DevProcess;
use crate::noetl::one_step;

const WAITS: &str = "{kind: wait, seconds: 600}";

#[test]
fn ctrl_c_ends_following_but_not_the_execution() {
    let site = Site::new();
    site.register(&one_step(WAITS));
    let id = site.execute();
    let mut running = site.start(&["events", &id, "--follow", "--json"]);
    let mut lines = BufReader::new(running.stdout()).lines();
    assert!(lines.next().unwrap().unwrap().contains("playbook_started"));
    running.send(Signal::INT);
    assert_eq!(running.end(&site.home).code, Some(130));
    assert_eq!(site.raw(&["status", &id, "--json"]).json()["status"], "RUNNING");
}

#[test]
fn following_continues_after_a_server_restart_without_gaps_or_duplicates() {
    let site = Site::new();
    site.register(&one_step(WAITS));
    let id = site.execute();
    let mut running = site.start(&["events", &id, "--follow", "--json"]);
    let mut lines = BufReader::new(running.stdout()).lines();
    let mut places = Vec::new();
    let mut read = |lines: &mut dyn Iterator<Item = std::io::Result<String>>| {
        let line = lines.next()?.unwrap();
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        places.push(event["seq"].as_u64().unwrap());
        Some(event["event_type"].as_str().unwrap_or_default().to_owned())
    };
    while read(&mut lines).unwrap() != "command.issued" {}
    let Site { home, dev, url } = site;
    let port = dev.client.base().port().unwrap().to_string();
    dev.kill();
    let dev = DevProcess::start_at(&home.path().join("data"), &port);
    let site = Site { home, dev, url };
    assert_eq!(site.raw(&["cancel", &id]).code, Some(0));
    while read(&mut lines).is_some() {}
    assert_eq!(running.end(&site.home).code, Some(1));
    let expected: Vec<u64> = (1..=places.len() as u64).collect();
    assert_eq!(places, expected);
    let total = site.raw(&["events", &id, "--json"]).json()["total_events"].as_u64();
    assert_eq!(total, Some(places.len() as u64));
}
