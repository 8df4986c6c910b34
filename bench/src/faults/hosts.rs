//! Hosts of their own for everything, where this machine has network namespaces. A script makes them and
//! starts this program on one; here they are entered, and cut off from each other.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;

use crate::{Failure, Ground};

/// Where a process runs.
pub(crate) struct Place {
    pub(crate) address: IpAddr,
    /// What goes before a command to run it there.
    pub(crate) enter: Vec<String>,
}

impl Place {
    /// On this machine as it is, reached by nobody else.
    pub(crate) fn here() -> Self {
        Self { address: Ipv4Addr::LOCALHOST.into(), enter: Vec::new() }
    }

    /// A program with arguments, to be run there.
    pub(crate) fn words(&self, program: &str, arguments: &[&str]) -> Vec<String> {
        let arguments = arguments.iter().map(|it| (*it).to_owned());
        self.enter.iter().cloned().chain([program.to_owned()]).chain(arguments).collect()
    }
}

/// Every host there is, by its name.
pub(crate) struct Hosts {
    script: PathBuf,
    directory: PathBuf,
    addresses: HashMap<String, IpAddr>,
}

impl Hosts {
    /// Those that the script has made.
    pub(crate) fn made(ground: &Ground) -> Result<Self, Failure> {
        let mut addresses = HashMap::new();
        for line in std::fs::read_to_string(ground.directory.join("hosts"))?.lines() {
            let (host, address) = line.split_once(' ').ok_or("a host without an address")?;
            addresses.insert(host.to_owned(), address.parse()?);
        }
        let script = ground.services.join("hosts.sh");
        Ok(Self { script, directory: ground.directory.clone(), addresses })
    }

    pub(crate) fn place(&self, host: &str) -> Result<Place, Failure> {
        let address = *self.addresses.get(host).ok_or_else(|| format!("no host {host}"))?;
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        let enter = ["ip", "netns", "exec", &format!("{name}-{host}")].map(str::to_owned).into();
        Ok(Place { address, enter })
    }

    /// Drops what goes between a host and others, and tells nobody.
    pub(crate) async fn cut(&self, host: &str, others: &[&str]) -> Result<(), Failure> {
        self.must("cut", host, others).await
    }

    pub(crate) async fn mend(&self, host: &str, others: &[&str]) -> Result<(), Failure> {
        self.must("mend", host, others).await
    }

    /// Loses and delays some of what goes to these; whether this machine can.
    pub(crate) async fn spoil(&self, hosts: &[&str]) -> Result<bool, Failure> {
        self.run("spoil", hosts).await
    }

    pub(crate) async fn clear(&self, hosts: &[&str]) -> Result<(), Failure> {
        self.run("clear", hosts).await.map(|_| ())
    }

    /// Every host but this one.
    pub(crate) fn others(&self, host: &str) -> Vec<&str> {
        self.addresses.keys().map(String::as_str).filter(|it| *it != host).collect()
    }

    async fn must(&self, verb: &str, host: &str, others: &[&str]) -> Result<(), Failure> {
        let hosts: Vec<&str> = std::iter::once(host).chain(others.iter().copied()).collect();
        match self.run(verb, &hosts).await? {
            true => Ok(()),
            false => Err(format!("could not {verb} {}", hosts.join(" ")).into()),
        }
    }

    async fn run(&self, verb: &str, hosts: &[&str]) -> Result<bool, Failure> {
        let mut command = Command::new(&self.script);
        command.arg(verb).arg(&self.directory).args(hosts).stderr(Stdio::null());
        Ok(command.status().await?.success())
    }
}
