//! Lakes in a server that implements Azure's storage protocol.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Stdio};

use borehole_testkit::{Scratch, peers};

use crate::lake::assert_is_of_use;
use crate::program::{Ended, program};

/// A server with a container called `fleet`; it ends with the test.
struct Azure {
    child: Child,
    address: String,
}

impl Drop for Azure {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Azure {
    fn start(scratch: &Scratch) -> Option<Self> {
        let peer = peers::peer("azurite")?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = peer.command();
        command.arg(port.to_string()).arg(scratch.path("storage"));
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let server = Self { child, address: format!("http://127.0.0.1:{port}") };
        let said: Vec<_> = said.take_while(|line| line != "ready" && !line.starts_with("cannot")).collect();
        assert!(said.iter().any(|line| line.contains("successfully listens")), "{said:?}");
        Some(server)
    }

    fn lake(&self, arguments: &[&str]) -> Ended {
        let mut command = program(&[&["lake"], arguments].concat());
        command.env("AZURE_STORAGE_USE_EMULATOR", "true").env("AZURITE_BLOB_STORAGE_URL", &self.address);
        command.output().unwrap().into()
    }
}

#[test]
fn a_lake_may_be_in_azures_storage() {
    let scratch = Scratch::new();
    let Some(server) = Azure::start(&scratch) else { return };
    assert_is_of_use("az://fleet/some/lake", |arguments| server.lake(arguments));
    let error = server.lake(&["query", "az://elsewhere/lake", "SELECT 1 FROM samples"]).failed();
    assert!(error.starts_with("error: az://elsewhere/lake/_lake/states: "), "{error}");
}
