//! Variables of modules, and the names of threads in the module `threading`.

use std::collections::HashMap;

use borehole_process::{ForeignMemory, moved};

use crate::attach::Python;
use crate::containers::{attribute, dict, dict_value, number};
use crate::error::Error;
use crate::objects;
use crate::threads::{PythonThread, ThreadList};

impl Python {
    /// The variable of a module, in the interpreter whose state is at `interpreter`; `None` if there is no such module or
    /// variable yet.
    pub(crate) fn module_variable(
        &self,
        memory: &impl ForeignMemory,
        interpreter: u64,
        module: &str,
        variable: &str,
    ) -> Result<Option<u64>, Error> {
        let (layout, place) = (&self.layout.object, moved(interpreter, self.layout.interpreter.modules));
        let Some(modules) = number(memory, place)? else { return Ok(None) };
        let Some(module) = dict_value(memory, layout, modules, module.as_bytes())? else { return Ok(None) };
        // `PyModuleObject.md_dict`.
        let Some(variables) = number(memory, moved(module, layout.header))? else { return Ok(None) };
        Ok(dict_value(memory, layout, variables, variable.as_bytes())?)
    }
}

/// The names that programs give to their threads, in the module `threading`.
#[derive(Debug, Default)]
pub struct ThreadNames {
    /// The dict of threads of each interpreter.
    active: HashMap<u64, u64>,
}

impl ThreadNames {
    /// The names of the listed threads that have one.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn read(
        &mut self,
        python: &Python,
        memory: &impl ForeignMemory,
        list: &ThreadList,
    ) -> Result<Vec<(PythonThread, Vec<u8>)>, Error> {
        let mut interpreters: Vec<u64> = list.threads.iter().map(|thread| thread.interpreter_state).collect();
        interpreters.sort_unstable();
        interpreters.dedup();
        let mut names = HashMap::new();
        for interpreter in interpreters {
            for (ident, name) in self.of_interpreter(python, memory, interpreter)? {
                names.insert((interpreter, ident), name);
            }
        }
        let name_of = |thread: &PythonThread| {
            let name = names.get(&(thread.interpreter_state, thread.library_id))?;
            Some((*thread, name.clone()))
        };
        Ok(list.threads.iter().filter_map(name_of).collect())
    }

    /// The names by `threading.get_ident()`.
    fn of_interpreter(
        &mut self,
        python: &Python,
        memory: &impl ForeignMemory,
        interpreter: u64,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let layout = &python.layout.object;
        let active = match self.active.get(&interpreter) {
            Some(&active) => Some(active),
            None => python.module_variable(memory, interpreter, "threading", "_active")?,
        };
        let Some(active) = active else { return Ok(Vec::new()) };
        self.active.insert(interpreter, active);
        let Some(threads) = dict(memory, layout, active)? else {
            self.active.remove(&interpreter);
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        for [ident, thread] in threads {
            let ident = objects::integer(memory, layout, ident)?.and_then(|ident| u64::try_from(ident).ok());
            let name = attribute(memory, layout, thread, b"_name")?;
            let Some((ident, name)) = ident.zip(name) else { continue };
            if let Some(name) = objects::read_text(memory, layout, name)? {
                names.push((ident, name));
            }
        }
        Ok(names)
    }
}
