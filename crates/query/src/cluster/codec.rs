//! Serialization of lake tables for a scheduler.

use std::sync::Arc;

use ballista_core::serde::BallistaLogicalExtensionCodec;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, Result, TableReference};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::execution::TaskContext;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Extension, LogicalPlan};
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use serde::{Deserialize, Serialize};

use crate::journal::DataFile;
use crate::scan::TableFiles;
use crate::tables::LakeTable;

/// The maximum size of a message between client, scheduler and executors: it names all files of a table.
pub(super) const MESSAGE_BYTES: u32 = 256 << 20;

/// Encodes the messages of Ballista, including tables of lakes.
#[derive(Debug, Default)]
pub(super) struct LakeCodec(BallistaLogicalExtensionCodec);

/// A table as it is sent to a scheduler.
#[derive(Serialize, Deserialize)]
struct Sent {
    table: String,
    root: String,
    base: String,
    files: Vec<DataFile>,
    stacks: u64,
}

impl LogicalExtensionCodec for LakeCodec {
    fn try_decode(&self, bytes: &[u8], inputs: &[LogicalPlan], context: &TaskContext) -> Result<Extension> {
        self.0.try_decode(bytes, inputs, context)
    }

    fn try_encode(&self, node: &Extension, bytes: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode(node, bytes)
    }

    fn try_decode_table_provider(
        &self,
        bytes: &[u8],
        _name: &TableReference,
        _schema: SchemaRef,
        _context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        let Sent { table, root, base, files, stacks } =
            serde_json::from_slice(bytes).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let known = LakeTable::of_name(&table)
            .ok_or_else(|| DataFusionError::Plan(format!("unknown table {table}")))?;
        let root = ObjectStoreUrl::parse(root)?;
        Ok(Arc::new(TableFiles { table: known, root, base, files: Arc::new(files), stacks }))
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        node: Arc<dyn TableProvider>,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(TableFiles { table, root, base, files, stacks }) = node.downcast_ref::<TableFiles>() else {
            return self.0.try_encode_table_provider(name, node, bytes);
        };
        // Readers of a file do not compare its checksum.
        let files = files.iter().map(|file| DataFile { sha256: String::new(), ..file.clone() }).collect();
        let (table, root, base) = (table.name().to_owned(), root.as_str().to_owned(), base.clone());
        serde_json::to_writer(bytes, &Sent { table, root, base, files, stacks: *stacks })
            .map_err(|error| DataFusionError::External(Box::new(error)))
    }

    fn try_decode_file_format(
        &self,
        bytes: &[u8],
        context: &TaskContext,
    ) -> Result<Arc<dyn FileFormatFactory>> {
        self.0.try_decode_file_format(bytes, context)
    }

    fn try_encode_file_format(&self, bytes: &mut Vec<u8>, node: Arc<dyn FileFormatFactory>) -> Result<()> {
        self.0.try_encode_file_format(bytes, node)
    }
}
