//! Queries on a cluster: Ballista's scheduler and executors, with the tables and functions of lakes.
//!
//! The client plans the query and sends it with the names of the files. The scheduler skips files that cannot match and
//! splits the rest. Executors read them from the storage themselves, with their own credentials.

mod codec;
mod serve;
mod stores;

use std::sync::Arc;

use ballista::prelude::{SessionConfigExt as _, SessionContextExt as _};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use url::Url;

use self::codec::{LakeCodec, MESSAGE_BYTES};
pub use self::serve::{ExecutorOptions, SchedulerOptions, run_executor, run_scheduler};
use crate::{Error, Lake, LakeSession};

impl Lake {
    /// Opens the current state of the lake for queries on the cluster whose scheduler is at `address`, such as
    /// `df://127.0.0.1:50050`. All machines of the cluster must reach the lake under the same name.
    ///
    /// # Errors
    /// If the lake cannot be read, or the address is invalid.
    pub fn session_on(&self, address: &str) -> Result<LakeSession<'_>, Error> {
        let context = self.block_on(connect(address))?;
        let state = self.state()?;
        self.register(&context, &state)?;
        let session = self.session_in(context, state)?;
        Ok(LakeSession { cluster: Some(address.to_owned()), ..session })
    }
}

async fn connect(address: &str) -> Result<SessionContext, Error> {
    let url = Url::parse(address).ok().filter(|url| url.scheme() == "df" && url.has_host());
    if url.is_none() {
        return Err(Error::question(format!(
            "expected the address of a scheduler, df://HOST:PORT, found {address}"
        )));
    }
    let config = SessionConfig::new()
        .with_information_schema(true)
        .upgrade_for_ballista()
        // Re-planning as stages end loses the results of stages that are repeated because an executor is gone: a query never
        // ends then. Seen with Ballista 55.0.
        .with_ballista_adaptive_query_planner(false)
        .with_ballista_grpc_client_max_message_size(MESSAGE_BYTES as usize)
        .with_ballista_logical_extension_codec(Arc::new(LakeCodec::default()));
    let state = SessionStateBuilder::new().with_default_features().with_config(config).build();
    Ok(SessionContext::remote_with_state(address, state).await?)
}
