//! The paths of all nodes, written into a table.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{DIALECT, Sqlite, refused};
use crate::error::Error;
use crate::paths::Paths;
use crate::schema::{NODE_PATHS, NODE_PATHS_INDEX};

/// Whether there is a table of paths.
pub(super) fn exist(connection: &Connection) -> Result<bool, Error> {
    let statement = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'node_paths'";
    let found = connection.query_row(statement, [], |_| Ok(())).optional().map_err(refused)?;
    Ok(found.is_some())
}

impl Sqlite {
    /// The paths of a run.
    ///
    /// # Errors
    /// When there is no such run, or the database cannot be read.
    pub fn paths(&self, run: i64) -> Result<Paths, Error> {
        let statement = "SELECT child_node_id, parent_node_id, link_name FROM context_edges \
                         WHERE run_id = ?1 AND is_tree = 1 ORDER BY id";
        let mut paths = Paths::new(self.run(Some(run))?);
        let mut statement = self.connection.prepare(statement).map_err(refused)?;
        let mut rows = statement.query([run]).map_err(refused)?;
        while let Some(row) = rows.next().map_err(refused)? {
            let link = row.get_ref(2).map_err(refused)?;
            let link = String::from_utf8_lossy(link.as_bytes().unwrap_or_default());
            paths.push(row.get(0).map_err(refused)?, row.get(1).map_err(refused)?, &link);
        }
        Ok(paths)
    }

    /// Writes paths into the table `node_paths`, in place of those that it has of the run. Those of other runs stay.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn write_paths(&mut self, paths: &Paths) -> Result<(), Error> {
        let transaction = self.connection.transaction().map_err(refused)?;
        transaction.execute_batch(&DIALECT.create_table(&NODE_PATHS)).map_err(refused)?;
        transaction.execute("DELETE FROM node_paths WHERE run_id = ?1", [paths.run]).map_err(refused)?;
        {
            let insert = "INSERT INTO node_paths (run_id, node_id, path, depth) VALUES (?1, ?2, ?3, ?4)";
            let mut insert = transaction.prepare(insert).map_err(refused)?;
            paths.visit(&mut |node, path, depth| {
                insert.execute(params![paths.run, node, path, depth.cast_signed()]).map_err(refused).map(drop)
            })?;
        }
        transaction.execute_batch(&DIALECT.create_index(&NODE_PATHS_INDEX)).map_err(refused)?;
        transaction.commit().map_err(refused)
    }
}
