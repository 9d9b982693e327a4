//! Questions in SQL, and their answers.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::prelude::{DataFrame, SQLOptions, SessionContext};
use futures::StreamExt as _;

use crate::journal::State;
use crate::value::{Value, value_at};
use crate::views::VIEWS;
use crate::{Error, Lake};

/// One state of a lake, ready to be asked. What is added after it was made is not seen.
pub struct Session<'l> {
    pub(crate) lake: &'l Lake,
    pub(crate) context: SessionContext,
    pub(crate) state: State,
    /// The address of the cluster that answers, parts of which may be lost on the way; `None` where this process does.
    pub(crate) cluster: Option<String>,
}

impl Lake {
    /// The lake as it is now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn session(&self) -> Result<Session<'_>, Error> {
        let state = self.state()?;
        self.session_in(self.context_of(&state, None)?, state)
    }

    /// The same, by an engine that knows the tables already.
    pub(crate) fn session_in(&self, context: SessionContext, state: State) -> Result<Session<'_>, Error> {
        for view in VIEWS {
            self.block_on(context.sql(&format!("CREATE VIEW {} AS {}", view.name, view.sql)))?;
        }
        Ok(Session { lake: self, context, state, cluster: None })
    }
}

impl Session<'_> {
    /// Asks `sql`, one statement that only reads.
    ///
    /// # Errors
    /// When it is no such statement, or names what there is not.
    pub fn ask(&self, sql: &str) -> Result<Answer<'_>, Error> {
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
        Ok(Answer { lake: self.lake, schema, stream, again, cluster: self.cluster.clone() })
    }
}

/// The rows of an answer, as they come.
pub struct Answer<'l> {
    lake: &'l Lake,
    schema: SchemaRef,
    stream: SendableRecordBatchStream,
    /// The question, while it can be asked once more: nothing of the answer was given out.
    again: Option<DataFrame>,
    cluster: Option<String>,
}

/// What went wrong while a question was answered, and where.
fn failed(cluster: Option<&str>, error: DataFusionError) -> Error {
    match cluster {
        Some(address) => Error::cluster(address, error.into()),
        None => error.into(),
    }
}

impl Answer<'_> {
    /// What the columns are called.
    #[must_use]
    pub fn columns(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    pub(crate) const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next rows; `None` behind the last.
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

    /// The next rows, each with a value a column; `None` behind the last.
    ///
    /// # Errors
    /// When the question fails on the way, or the storage does.
    pub fn next_rows(&mut self) -> Result<Option<Vec<Vec<Value>>>, Error> {
        let Some(batch) = self.next_batch()? else { return Ok(None) };
        let row = |row| batch.columns().iter().map(|column| value_at(column, row)).collect();
        Ok(Some((0..batch.num_rows()).map(row).collect()))
    }

    /// The next rows, each as an object of JSON with a member a column; `None` behind the last. Of columns that share a name an
    /// object has one.
    ///
    /// # Errors
    /// As [`Answer::next_rows`].
    pub fn next_objects(&mut self) -> Result<Option<Vec<String>>, Error> {
        let Some(rows) = self.next_rows()? else { return Ok(None) };
        let object = |row: Vec<Value>| {
            let columns = self.columns().into_iter().map(str::to_owned);
            let members = columns.zip(row.iter().map(Value::to_json));
            serde_json::Value::Object(members.collect()).to_string()
        };
        Ok(Some(rows.into_iter().map(object).collect()))
    }
}
