//! The disk has no room left.

use std::path::{Path, PathBuf};
use std::process::Command;

use noetl_control::{StartError, StartRequest, SubmitError};
use noetl_model::Tenant;
use noetl_store::StoreError;
use noetl_testkit::postgres::TestServer;

use crate::faults::plane::Plane;

/// A small disk in memory, taken away with this.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where nothing may be mounted.
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

/// Takes what room there is.
const FILL: &str = "create table ballast (bytes text); \
     alter table ballast alter bytes set storage external; \
     do $$ begin loop begin \
       insert into ballast select repeat(md5(random()::text), 200) from generate_series(1, 50); \
     exception when disk_full then exit; end; end loop; end $$";

/// The tables are on the small disk. The write-ahead log is not: a server that cannot write that
/// stops altogether, which is another fault.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_what_is_new_and_everything_goes_on_once_there_is_room() {
    let Some(disk) = SmallDisk::mount("40m") else {
        println!("skipped: nothing may be mounted here, which takes root");
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
    // What has a little room left in its last page is still taken.
    let refused = loop {
        let request = StartRequest { catalog: Some(load.catalog), ..StartRequest::default() };
        match plane.control.executions.start(&Tenant::default(), request).await {
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
