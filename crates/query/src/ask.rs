//! SQL queries and their answers.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::prelude::{DataFrame, SQLOptions, SessionContext};
use futures::StreamExt as _;

use crate::journal::LakeState;
use crate::value::{LakeValue, value_at};
use crate::views::VIEWS;
use crate::{Error, Lake};

/// One state of a lake that can be queried. Later additions are not visible in it.
pub struct LakeSession<'l> {
    pub(crate) lake: &'l Lake,
    pub(crate) context: SessionContext,
    pub(crate) state: Arc<LakeState>,
    /// The address of the cluster that runs the queries; `None` for this process.
    pub(crate) cluster: Option<String>,
}

impl Lake {
    /// Opens the current state of the lake.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn session(&self) -> Result<LakeSession<'_>, Error> {
        let state = self.state()?;
        self.session_in(self.context_of(&state, None)?, state)
    }

    /// Opens a state in an engine that already knows the tables.
    pub(crate) fn session_in(
        &self,
        context: SessionContext,
        state: Arc<LakeState>,
    ) -> Result<LakeSession<'_>, Error> {
        for view in VIEWS {
            self.block_on(context.sql(&format!("CREATE VIEW {} AS {}", view.name, view.sql)))?;
        }
        Ok(LakeSession { lake: self, context, state, cluster: None })
    }
}

impl LakeSession<'_> {
    /// Runs `sql`, a single read-only statement.
    ///
    /// # Errors
    /// If it is not such a statement, or names something that does not exist.
    pub fn ask(&self, sql: &str) -> Result<LakeAnswer<'_>, Error> {
        let options =
            SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        let asked = async {
            let frame = self.context.sql_with_options(sql, options).await?;
            let schema = Arc::clone(frame.schema().inner());
            let again = self.cluster.as_ref().map(|_| frame.clone());
            let stream = frame.execute_stream().await;
            Ok::<_, Error>((schema, again, stream.map_err(|error| failed(self.cluster.as_deref(), error))?))
        };
        let (schema, again, stream) = self.lake.block_on(asked)?;
        Ok(LakeAnswer { lake: self.lake, schema, stream, again, cluster: self.cluster.clone() })
    }
}

/// The rows of an answer, as they arrive.
pub struct LakeAnswer<'l> {
    lake: &'l Lake,
    pub(crate) schema: SchemaRef,
    stream: SendableRecordBatchStream,
    /// The query, while it can be retried because no row has been returned yet.
    again: Option<DataFrame>,
    cluster: Option<String>,
}

/// The error of a failed query, with the cluster it ran on.
fn failed(cluster: Option<&str>, error: DataFusionError) -> Error {
    match cluster {
        Some(address) => Error::cluster(address, error.into()),
        None => error.into(),
    }
}

impl LakeAnswer<'_> {
    /// The names of the columns.
    #[must_use]
    pub fn columns(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The next rows; `None` after the last.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        let cluster = self.cluster.as_deref();
        let mut next = self.lake.block_on(self.stream.next());
        let again = self.again.take();
        if let (Some(Err(_)), Some(question)) = (&next, again) {
            let stream = self.lake.block_on(question.execute_stream());
            self.stream = stream.map_err(|error| failed(cluster, error))?;
            next = self.lake.block_on(self.stream.next());
        }
        next.transpose().map_err(|error| failed(cluster, error))
    }

    /// The next rows, each with one value per column; `None` after the last.
    ///
    /// # Errors
    /// If the query or the storage fails on the way.
    pub fn next_rows(&mut self) -> Result<Option<Vec<Vec<LakeValue>>>, Error> {
        let Some(batch) = self.next_batch()? else { return Ok(None) };
        let row = |row| batch.columns().iter().map(|column| value_at(column, row)).collect();
        Ok(Some((0..batch.num_rows()).map(row).collect()))
    }

    /// The next rows, each as a JSON object with one member per column; `None` after the last. Columns that share a name
    /// become one member.
    ///
    /// # Errors
    /// Like [`LakeAnswer::next_rows`].
    pub fn next_objects(&mut self) -> Result<Option<Vec<String>>, Error> {
        let Some(rows) = self.next_rows()? else { return Ok(None) };
        let object = |row: Vec<LakeValue>| {
            let columns = self.columns().into_iter().map(str::to_owned);
            let members = columns.zip(row.iter().map(LakeValue::to_json));
            serde_json::Value::Object(members.collect()).to_string()
        };
        Ok(Some(rows.into_iter().map(object).collect()))
    }
}
