//! Writes the paths of all nodes into a table.

use super::Database;
use crate::backend::{Fill, ResultField};
use crate::dialect::SqlDialect;
use crate::error::Error;
use crate::paths::NodePaths;
use crate::queries::Parameters;
use crate::rows::CellValue;
use crate::schema::{
    CONTEXT_EDGES, NODE_PARENTS, NODE_PARENTS_INDEX, NODE_PATHS, NODE_PATHS_INDEX, SchemaIndex, SchemaTable,
};

impl Database {
    /// Reads the tree of a run to build its paths.
    ///
    /// # Errors
    /// If there is no such run, or the database cannot be read.
    pub fn paths(&mut self, run: i64) -> Result<NodePaths, Error> {
        let dialect = self.dialect();
        let statement = format!(
            "SELECT child_node_id, parent_node_id, link_name FROM context_edges \
             WHERE {} AND is_tree = 1{}",
            dialect.rows_of_run("context_edges"),
            self.written_order(&CONTEXT_EDGES)?
        );
        let mut paths = NodePaths::new(self.run(Some(run))?);
        let (statement, numbers) = dialect.bind(&statement, Parameters::of_run(run));
        self.backend.select(&statement, &numbers, &mut |fields| {
            let [child, parent, link] = fields else { return Ok(()) };
            // A parent that is not a number is not a node, and its children are not roots.
            let is_number = matches!(parent, ResultField::Null | ResultField::Integer(_));
            if let Some(child) = child.integer().filter(|_| is_number) {
                paths.push(child, parent.integer(), &link.borrowed());
            }
            Ok(())
        })?;
        paths.sort();
        Ok(paths)
    }

    /// Writes paths into the table `node_paths`, replacing those of the run. Other runs are unchanged.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn write_paths(&mut self, paths: &NodePaths) -> Result<(), Error> {
        let run = CellValue::Integer(paths.run);
        self.replace(paths.run, &NODE_PATHS, &NODE_PATHS_INDEX, &mut |sink| {
            paths.visit(&mut |node, path, depth| {
                let depth = CellValue::Integer(depth.cast_signed());
                sink.row(&[run.clone(), CellValue::Integer(node), CellValue::Text(path.into()), depth])
            })
        })
    }

    /// Writes the compact form of paths into the table `node_parents`, replacing those of the run. Other runs are
    /// unchanged. The view `v_parent_paths` computes the paths from it.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn write_parents(&mut self, paths: &NodePaths) -> Result<(), Error> {
        let run = CellValue::Integer(paths.run);
        self.replace(paths.run, &NODE_PARENTS, &NODE_PARENTS_INDEX, &mut |sink| {
            paths.visit_steps(&mut |node, parent, link, depth| {
                let depth = CellValue::Integer(depth.cast_signed());
                sink.row(&[
                    run.clone(),
                    CellValue::Integer(node),
                    parent.map_or(CellValue::Null, CellValue::Integer),
                    CellValue::Text(link.into()),
                    depth,
                ])
            })
        })?;
        let existing = self.existing()?;
        let missing = self.dialect().parent_paths().into_iter().filter(|(name, _)| !existing.contains(*name));
        let statements: Vec<_> = missing.map(|(_, statement)| statement).collect();
        self.execute(&statements)
    }

    /// Replaces the rows that `table` has for `run` by the rows from `fill`.
    fn replace(
        &mut self,
        run: i64,
        table: &'static SchemaTable,
        index: &SchemaIndex,
        fill: &mut Fill<'_>,
    ) -> Result<(), Error> {
        if !self.dialect().commits_what_it_makes() {
            return self.change(|database| {
                // Another writer may write the same rows or create the table.
                database.backend.take_turn()?;
                database.fill(run, table, fill)?;
                database.make_index(index)
            });
        }
        self.in_turn(|database| {
            database.backend.execute(&database.dialect().create_table(table))?;
            database.change(|database| database.fill(run, table, fill))?;
            database.make_index(index)
        })
    }

    fn fill(&mut self, run: i64, table: &'static SchemaTable, fill: &mut Fill<'_>) -> Result<(), Error> {
        self.make_room(run, table)?;
        self.backend.load(&mut |sink| {
            sink.begin(table)?;
            fill(sink)
        })
    }

    /// Creates the table if it is missing, and deletes its rows of `run`.
    fn make_room(&mut self, run: i64, table: &SchemaTable) -> Result<(), Error> {
        let dialect = self.dialect();
        // An empty table without an index is by far the fastest to fill.
        if dialect == SqlDialect::Sqlite && self.run_ids()? == [run] {
            self.backend.execute(&format!("DROP TABLE IF EXISTS {}", table.name))?;
        }
        if !dialect.commits_what_it_makes() {
            self.backend.execute(&dialect.create_table(table))?;
        }
        self.backend.execute(&format!("DELETE FROM {} WHERE run_id = {run}", table.name))
    }

    fn make_index(&mut self, index: &SchemaIndex) -> Result<(), Error> {
        if self.existing()?.contains(index.name) {
            return Ok(());
        }
        self.backend.execute(&self.dialect().create_index(index))
    }
}
