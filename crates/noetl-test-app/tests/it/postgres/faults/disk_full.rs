//! The disk of the tables is full.

use std::path::{Path, PathBuf};
use std::process::Command;

use noetl_journal::{StartError, StartRequest, SubmitError};
use noetl_model::Tenant;
use noetl_store::StoreError;
use noetl_test_services::postgres::TestServer;

use crate::postgres::faults::plane::Plane;

/// A small disk in memory. Dropping the value unmounts it.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a disk, or returns `None` without the right to mount.
    fn mount(size: &str) -> Option<Self> {
        let path = std::env::temp_dir().join(format!("noetl-small-disk-{}", std::process::id()));
        std::fs::create_dir_all(&path).ok()?;
        let disk = Self(path);
        disk.run("mount", &["-t", "tmpfs", "-o", &format!("size={size},mode=777"), "none"])
            .then_some(disk)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> bool {
        let output = Command::new(program).args(arguments).arg(&self.0).output();
        output.is_ok_and(|output| output.status.success())
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.run("umount", &["--lazy"]);
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Fills the disk.
const FILL: &str = "create table ballast (bytes text); \
     alter table ballast alter bytes set storage external; \
     do $$ begin loop begin \
       insert into ballast select repeat(md5(random()::text), 200) from generate_series(1, 50); \
     exception when disk_full then exit; end; end loop; end $$";

/// Only the tables are on the small disk. A server that cannot write its write-ahead log stops, which
/// is another fault.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_rejects_starts_until_space_is_free() {
    let Some(disk) = SmallDisk::mount("40m") else {
        noetl_test_services::unsupported("tmpfs mounts", "run the tests as root");
        return;
    };
    let server = TestServer::start(&["fsync=off"]);
    let place = disk.path().join("tables");
    std::fs::create_dir(&place).expect("room");
    assert!(Command::new("chown").arg("postgres").arg(&place).status().expect("chown").success());
    server.psql(&format!("create tablespace small location '{}'", place.display()));
    server.psql("alter database postgres set default_tablespace = small");
    let plane = Plane::open(server.url()).await;
    let load = plane.load(20).await;
    server.psql(FILL);
    // Rows that fit into the last page still succeed.
    let refused = loop {
        let request = StartRequest { catalog: Some(load.catalog), ..StartRequest::default() };
        match plane.control.journal.executions.start(&Tenant::default(), request).await {
            Ok(_) => {}
            Err(StartError::Submit(SubmitError::Store(error))) => break error,
            Err(error) => panic!("{error:?}"),
        }
    };
    assert!(matches!(*refused, StoreError::Full(_)), "{refused:?}");
    server.psql("drop table ballast");
    load.ends_whole(&plane, &server).await;
    plane.close().await;
}
