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
    is_numbered: bool,
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
        let Sent { table, root, base, files, stacks, is_numbered } =
            serde_json::from_slice(bytes).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let known = LakeTable::of_name(&table)
            .ok_or_else(|| DataFusionError::Plan(format!("unknown table {table}")))?;
        let root = ObjectStoreUrl::parse(root)?;
        let files = Arc::new(files);
        Ok(Arc::new(TableFiles { table: known, root, base, files, stacks, is_numbered, is_earlier: false }))
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        node: Arc<dyn TableProvider>,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(sent) = node.downcast_ref::<TableFiles>() else {
            return self.0.try_encode_table_provider(name, node, bytes);
        };
        // Readers of a file do not compare its checksum.
        let file = |file: &DataFile| DataFile { sha256: String::new(), ..file.clone() };
        let sent = Sent {
            table: sent.table.name().to_owned(),
            root: sent.root.as_str().to_owned(),
            base: sent.base.clone(),
            files: sent.files.iter().map(file).collect(),
            stacks: sent.stacks,
            is_numbered: sent.is_numbered,
        };
        serde_json::to_writer(bytes, &sent).map_err(|error| DataFusionError::External(Box::new(error)))
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
