//! The paths of all nodes, written into a table.

use super::Database;
use crate::Parameters;
use crate::error::Error;
use crate::paths::Paths;
use crate::rows::Cell;
use crate::schema::{NODE_PATHS, NODE_PATHS_INDEX};

impl Database {
    /// The paths of a run.
    ///
    /// # Errors
    /// When there is no such run, or the database cannot be read.
    pub fn paths(&mut self, run: i64) -> Result<Paths, Error> {
        let statement = "SELECT child_node_id, parent_node_id, link_name FROM context_edges \
                         WHERE run_id = :run AND is_tree = 1 ORDER BY id";
        let mut paths = Paths::new(self.run(Some(run))?);
        let (statement, numbers) = self.dialect().bind(statement, Parameters::of_run(run));
        self.backend.select(&statement, &numbers, &mut |fields| {
            let [child, parent, link] = fields else { return Ok(()) };
            let node = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
            if let Some(child) = node(child.integer()) {
                paths.push(child, node(parent.integer()), &link.text());
            }
            Ok(())
        })?;
        Ok(paths)
    }

    /// Writes paths into the table `node_paths`, in place of those that it has of the run. Those of other runs stay.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn write_paths(&mut self, paths: &Paths) -> Result<(), Error> {
        let dialect = self.dialect();
        let run = paths.run;
        let create = [dialect.create_table(&NODE_PATHS)];
        let commits = dialect.commits_what_it_makes();
        if commits {
            self.execute(&create)?;
        }
        self.change(|database| {
            if !commits {
                database.execute(&create)?;
            }
            database.backend.execute(&format!("DELETE FROM node_paths WHERE run_id = {run}"))?;
            database.backend.load(&mut |sink| {
                sink.begin(&NODE_PATHS)?;
                paths.visit(&mut |node, path, depth| {
                    let depth = Cell::Integer(depth.cast_signed());
                    sink.row(&[Cell::Integer(run), node.into(), Cell::Text(path.into()), depth])
                })
            })?;
            if commits { Ok(()) } else { database.make_paths_index() }
        })?;
        if commits { self.make_paths_index() } else { Ok(()) }
    }

    fn make_paths_index(&mut self) -> Result<(), Error> {
        if self.existing()?.contains(NODE_PATHS_INDEX.name) {
            return Ok(());
        }
        self.backend.execute(&self.dialect().create_index(&NODE_PATHS_INDEX))
    }
}
