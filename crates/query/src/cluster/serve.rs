//! The programs of a cluster: one scheduler, and any number of executors.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::ConfigProducer;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::BallistaError;
use ballista_core::extension::SessionConfigExt as _;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::utils::default_session_builder;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{FunctionRegistry as _, SessionState};
use datafusion::prelude::SessionConfig;

use super::codec::{LakeCodec, MESSAGE_BYTES};
use super::stores::Stores;
use crate::lake::runtime;
use crate::{Error, functions};

/// The options of a scheduler.
#[derive(Clone, Debug)]
pub struct SchedulerOptions {
    /// The address to listen on.
    pub bind: SocketAddr,
    /// The seconds of silence after which an executor is considered lost and its work is given to others.
    pub executor_timeout_s: u64,
}

/// The options of an executor.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// The address at which others fetch its results.
    pub bind: SocketAddr,
    /// The host name under which others reach this machine; `None` for the address it is bound to.
    pub host: Option<String>,
    /// The scheduler's host and port.
    pub scheduler: (String, u16),
    /// The number of query parts to run at once; 0 for one per core.
    pub cores: usize,
    /// The bytes that all of them may take before they spill to disk.
    pub memory_bytes: Option<u64>,
    /// The folder for results until they are fetched.
    pub work_folder: PathBuf,
}

/// Runs a scheduler until SIGINT or SIGTERM.
///
/// # Errors
/// If it cannot listen on the address.
pub fn run_scheduler(options: &SchedulerOptions) -> Result<(), Error> {
    let timeout = options.executor_timeout_s;
    let config = SchedulerConfig {
        bind_host: options.bind.ip().to_string(),
        bind_port: options.bind.port(),
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        executor_timeout_seconds: timeout,
        expire_dead_executor_interval_seconds: timeout.div_ceil(4),
        no_executors_grace_period_seconds: timeout,
        grpc_server_max_decoding_message_size: MESSAGE_BYTES,
        grpc_server_max_encoding_message_size: MESSAGE_BYTES,
        override_config_producer: Some(configuration()),
        override_session_builder: Some(Arc::new(session)),
        override_logical_codec: Some(Arc::new(LakeCodec::default())),
        ..SchedulerConfig::default()
    };
    runtime()?.block_on(async {
        let cluster = BallistaCluster::new_from_config(&config).await.map_err(|error| failed(&error))?;
        let stopped = async {
            let _ = tokio::signal::ctrl_c().await;
        };
        tokio::select! {
            served = start_server(cluster, options.bind, Arc::new(config)) => served.map_err(|error| failed(&error)),
            () = stopped => Ok(()),
            () = terminated() => Ok(()),
        }
    })
}

/// Runs an executor until SIGINT or SIGTERM, and finishes its current work first.
///
/// # Errors
/// If it cannot listen, or cannot reach its scheduler within half a minute.
pub fn run_executor(options: &ExecutorOptions) -> Result<(), Error> {
    let state = session((configuration())()).map_err(Error::from)?;
    let folder = options.work_folder.display().to_string();
    let temporary = folder.clone();
    let produce = move |_: &SessionConfig| {
        RuntimeEnvBuilder::new()
            .with_temp_file_path(temporary.clone())
            .with_object_store_registry(Arc::new(Stores::default()))
            .build_arc()
    };
    let bound = options.bind.ip().to_string();
    let config = ExecutorProcessConfig {
        bind_host: bound.clone(),
        external_host: Some(options.host.clone().unwrap_or(bound)),
        port: options.bind.port(),
        scheduler_host: options.scheduler.0.clone(),
        scheduler_port: options.scheduler.1,
        scheduler_connect_timeout_seconds: CONNECT_SECONDS,
        vcores: options.cores,
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir: Some(folder),
        memory_pool_size: options.memory_bytes,
        grpc_max_decoding_message_size: MESSAGE_BYTES,
        grpc_max_encoding_message_size: MESSAGE_BYTES,
        override_config_producer: Some(configuration()),
        override_function_registry: Some(Arc::new(BallistaFunctionRegistry::from(&state))),
        override_runtime_producer: Some(Arc::new(produce)),
        override_logical_codec: Some(Arc::new(LakeCodec::default())),
        ..ExecutorProcessConfig::default()
    };
    runtime()?.block_on(start_executor_process(Arc::new(config))).map_err(|error| failed(&error))
}

/// The time for which an executor looks for its scheduler.
const CONNECT_SECONDS: u16 = 30;

fn configuration() -> ConfigProducer {
    Arc::new(|| {
        SessionConfig::new_with_ballista()
            .with_ballista_grpc_client_max_message_size(MESSAGE_BYTES as usize)
            .with_ballista_adaptive_query_planner(false)
    })
}

/// The engine of the cluster's programs, with our functions.
fn session(config: SessionConfig) -> datafusion::common::Result<SessionState> {
    let mut state = default_session_builder(config)?;
    for function in functions::all() {
        state.register_udf(Arc::new(function))?;
    }
    Ok(state)
}

async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => drop(terminate.recv().await),
        Err(_) => std::future::pending().await,
    }
}

fn failed(error: &BallistaError) -> Error {
    Error::storage(&"cluster", error)
}
