//! The storage that an executor reads: each store is opened when a query first names it.

use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use object_store::ObjectStore;
use url::Url;

use crate::place::open_store;

/// Stores by address. Credentials come from the environment of the executor.
#[derive(Debug, Default)]
pub(super) struct Stores(DefaultObjectStoreRegistry);

impl ObjectStoreRegistry for Stores {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.0.register_store(url, store)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.0.get_store(url).or_else(|_| {
            let (store, _) = open_store(url).map_err(|error| DataFusionError::External(Box::new(error)))?;
            self.0.register_store(url, Arc::clone(&store));
            Ok(store)
        })
    }
}
