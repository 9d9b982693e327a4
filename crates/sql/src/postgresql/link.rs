//! Connections to PostgreSQL with time limits.
//!
//! A server may work on a statement for long without a word. After the time limit, a second connection finds out whether
//! it still answers.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_postgres::{Client, Config, Connection, NoTls, Socket};

use super::refused;
use crate::error::{Error, ErrorKind};
use crate::time_limits::silent;

/// The way to connect.
pub(super) struct Route {
    pub(super) config: Config,
    pub(super) encryption: RouteEncryption,
}

/// The encryption of connections.
pub(super) enum RouteEncryption {
    None,
    #[cfg(feature = "tls")]
    Tls(tokio_postgres_rustls::MakeRustlsConnect),
}

/// The part of a connection that sends and receives; it ends with the connection.
type Driver = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

/// A connection.
pub(super) struct Link {
    pub(super) client: Client,
    waiter: Waiter,
}

/// Waits for the answers of a connection.
pub(super) struct Waiter {
    runtime: Runtime,
    /// `None` once the connection has ended.
    driver: Option<Driver>,
    route: Route,
    /// The number of the server's process.
    process: i32,
    limit: Duration,
}

/// A reason for no connection.
pub(super) enum NotLinked {
    /// The time limit is over.
    TooSlow,
    Refused(tokio_postgres::Error),
    /// This program cannot wait for anything.
    Local(std::io::Error),
}

impl Route {
    async fn connect(&self) -> Result<(Client, Driver), tokio_postgres::Error> {
        match &self.encryption {
            RouteEncryption::None => self.config.connect(NoTls).await.map(parts),
            #[cfg(feature = "tls")]
            RouteEncryption::Tls(tls) => self.config.connect(tls.clone()).await.map(parts),
        }
    }

    /// The number of hosts to try.
    fn hosts(&self) -> u32 {
        let hosts = self.config.get_hosts().len().max(self.config.get_hostaddrs().len());
        u32::try_from(hosts).unwrap_or(u32::MAX).max(1)
    }
}

fn parts<T>((client, connection): (Client, Connection<Socket, T>)) -> (Client, Driver)
where
    Connection<Socket, T>: Future<Output = Result<(), tokio_postgres::Error>> + Send + 'static,
{
    (client, Box::pin(connection))
}

impl Link {
    /// Connects within `most` to each host, if there is such a limit; `limit` is the one for answers.
    pub(super) fn new(route: Route, most: Option<Duration>, limit: Duration) -> Result<Self, NotLinked> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(NotLinked::Local)?;
        let linked = runtime.block_on(async {
            match most {
                Some(most) => timeout(most.saturating_mul(route.hosts()), route.connect()).await,
                None => Ok(route.connect().await),
            }
        });
        let linked = linked.map_err(|_| NotLinked::TooSlow).and_then(|done| done.map_err(NotLinked::Refused));
        let (client, driver) = match linked {
            Ok(linked) => linked,
            Err(error) => {
                // The resolution of a name may not have ended.
                runtime.shutdown_background();
                return Err(error);
            }
        };
        let waiter = Waiter { runtime, driver: Some(driver), route, process: 0, limit };
        let mut link = Self { client, waiter };
        let process = link.wait("the number of its process", async |client: &Client| {
            client.query_one("SELECT pg_backend_pid()", &[]).await
        });
        link.waiter.process = process.ok().and_then(|row| row.try_get(0).ok()).unwrap_or_default();
        Ok(link)
    }

    /// Waits for what `work` asks the server for.
    pub(super) fn wait<'c, T>(
        &'c mut self,
        waited_for: &str,
        work: impl AsyncFnOnce(&'c Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Error> {
        self.waiter.wait(waited_for, work(&self.client))
    }

    /// The client, and what waits for its answers.
    pub(super) const fn parts(&mut self) -> (&Client, &mut Waiter) {
        (&self.client, &mut self.waiter)
    }
}

impl Waiter {
    /// Waits for `work`, as long as the server answers at all.
    pub(super) fn wait<T>(
        &mut self,
        waited_for: &str,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        let (driver, route, process, limit) = (&mut self.driver, &self.route, self.process, self.limit);
        self.runtime.block_on(async {
            let mut work = pin!(driven(driver, work));
            loop {
                if let Ok(done) = timeout(limit, work.as_mut()).await {
                    return done.map_err(refused);
                }
                match timeout(limit, works(route, process)).await {
                    Ok(true) => {}
                    Ok(false) => {
                        let message = "lost connection to the server: it has ended the connection";
                        return Err(Error::new(ErrorKind::Connection, message));
                    }
                    Err(_) => return Err(silent(limit, waited_for)),
                }
            }
        })
    }
}

/// Sends and receives for `work` until it is done. The end of the connection is the error that the server gave for it.
async fn driven<T>(
    driver: &mut Option<Driver>,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, tokio_postgres::Error> {
    let mut work = pin!(work);
    poll_fn(|context| {
        if let Some(Poll::Ready(ended)) = driver.as_mut().map(|driver| driver.as_mut().poll(context)) {
            *driver = None;
            if let Err(error) = ended {
                return Poll::Ready(Err(error));
            }
        }
        work.as_mut().poll(context)
    })
    .await
}

/// Whether the server still works for the connection with the number `process`. A refusal is an answer too.
async fn works(route: &Route, process: i32) -> bool {
    let Ok((client, driver)) = route.connect().await else { return true };
    let statement = "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = $1";
    let found = driven(&mut Some(driver), client.query_one(statement, &[&process])).await;
    found.ok().and_then(|row| row.try_get::<_, i64>(0).ok()) != Some(0)
}
