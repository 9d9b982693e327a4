//! From the address of a function in a process to what is known of it.

use borehole_model::Tables;
use borehole_process::{Memory, Piece};
use hashbrown::{HashMap, HashSet};

use crate::attach::Php;
use crate::error::Error;
use crate::function::{Function, Functions, Header, Known, MOST_FUNCTIONS};
use crate::layout::fixed;
use crate::remote;
use crate::snapshot::Extra;
use crate::watch::Watches;

/// What became of the search for a function.
pub(crate) enum Sought {
    /// It has this number.
    Found(usize),
    /// It is being read with the frames from now on.
    Again,
    /// There is none.
    Nowhere,
}

/// Finds the functions of one process.
#[derive(Debug)]
pub(crate) struct Lookup {
    php: Php,
    functions: Functions,
    watches: Watches,
    /// The functions that are called without a frame, by their number.
    frameless: HashMap<u32, u64>,
    /// The functions that have been seen to be executing none of their instructions.
    compiled: HashSet<u64>,
    /// The last function of which that was seen once.
    doubted: Option<u64>,
}

impl Lookup {
    pub(crate) fn new(php: &Php) -> Self {
        Self {
            php: php.clone(),
            functions: Functions::default(),
            watches: Watches::default(),
            frameless: HashMap::new(),
            compiled: HashSet::new(),
            doubted: None,
        }
    }

    /// What is to be read together with the frames.
    pub(crate) fn extras(&mut self) -> impl Iterator<Item = &mut Extra> {
        self.watches.extras()
    }

    /// Something of it could not be read.
    pub(crate) fn forget_extras(&mut self) {
        self.watches.clear();
    }

    /// Changes whenever a number may have become another function's.
    pub(crate) fn generation(&self) -> u64 {
        self.functions.generation()
    }

    /// The function of `number`.
    pub(crate) fn function(&mut self, number: usize) -> &mut Function {
        self.functions.get(number)
    }

    /// Whether the function at `address` stays there.
    pub(crate) fn stays(&self, address: u64) -> bool {
        matches!(self.functions.at(address), Some(Known::Stays(_)))
    }

    /// Whether `number` is the code of a file outside of its functions.
    pub(crate) fn is_code_of_file(&mut self, number: usize) -> bool {
        self.functions.get(number).header.is_code_of_file()
    }

    /// Forgets what is at `address`, which turned out to be something else.
    pub(crate) fn forget(&mut self, address: u64) {
        self.functions.forget(address);
    }

    /// Whether the function at `address`, which executes but none of its instructions, is compiled: code that was called by
    /// compiled code does not say where it is. The first time, the function may be what is wrong.
    pub(crate) fn is_compiled(&mut self, address: u64) -> bool {
        if self.doubted.replace(address) == Some(address) && self.compiled.len() < MOST_FUNCTIONS {
            self.compiled.insert(address);
        }
        self.compiled.contains(&address)
    }

    /// Forgets what does not outlive a request.
    pub(crate) fn forget_request(&mut self) {
        self.compiled.clear();
        self.functions.forget_request(&self.php);
    }

    /// Says that a sample is done.
    pub(crate) fn grow_older(&mut self) {
        self.watches.grow_older();
        if self.functions.are_too_many() {
            self.functions.clear();
        }
        if self.frameless.len() > MOST_FUNCTIONS {
            self.frameless.clear();
        }
    }

    /// Whether the functions at `addresses` that stay there as long as a request lasts are there still: another request may
    /// have put others in their place. Reads them in one call.
    pub(crate) fn are_of_this_request(
        &self,
        memory: &impl Memory,
        addresses: impl Iterator<Item = u64>,
        tables: &Tables,
    ) -> Result<bool, Error> {
        let ends_with_request =
            |header: &Header| header.is_user() && !self.php.is_shared(header.ops_address());
        let known = addresses.filter_map(|address| match self.functions.at(address)? {
            Known::Stays(number) => Some((address, self.functions.seen(number))),
            Known::ComesAndGoes => None,
        });
        let mut known: Vec<_> = known.filter(|(_, function)| ends_with_request(&function.header)).collect();
        known.sort_unstable_by_key(|&(address, _)| address);
        known.dedup_by_key(|&mut (address, _)| address);
        let places: Vec<_> =
            known.iter().flat_map(|(address, function)| function.places(*address, tables)).collect();
        let mut parts: Vec<Vec<u8>> = places.iter().map(|&(_, length)| vec![0; length]).collect();
        let pieces = places.iter().zip(&mut parts).filter(|(_, part)| !part.is_empty());
        let mut pieces: Vec<_> = pieces.map(|(&(address, _), into)| Piece { address, into }).collect();
        let wanted: usize = pieces.iter().map(|piece| piece.into.len()).sum();
        let is_whole = memory.read_pieces(&mut pieces)? == wanted;
        let are_there = known.iter().zip(parts.chunks_exact(3)).all(|((_, function), parts)| {
            function.is_at([&parts[0], &parts[1], &parts[2]], &self.php.layout, tables)
        });
        Ok(is_whole && are_there)
    }

    /// The function at `address`.
    pub(crate) fn find(
        &mut self,
        memory: &impl Memory,
        address: u64,
        tables: &mut Tables,
    ) -> Result<Sought, Error> {
        match self.functions.at(address) {
            Some(Known::Stays(number)) => return Ok(Sought::Found(number)),
            Some(Known::ComesAndGoes) => return self.watched(memory, address, tables),
            None => {}
        }
        let Some(header) = self.read_header(memory, address)? else { return Ok(Sought::Nowhere) };
        if header.is_short_lived() {
            self.functions.remember(address, Known::ComesAndGoes);
            return self.watched(memory, address, tables);
        }
        let Some(number) = self.read_function(memory, header, tables)? else { return Ok(Sought::Nowhere) };
        self.functions.remember(address, Known::Stays(number));
        Ok(Sought::Found(number))
    }

    /// Reads the function with `header`, and answers its number; `None` if there is none, or no room for it.
    fn read_function(
        &mut self,
        memory: &impl Memory,
        header: Header,
        tables: &mut Tables,
    ) -> Result<Option<usize>, Error> {
        if !self.functions.has_room_for(&header) {
            return Ok(None);
        }
        let function = Function::read(memory, header, tables)?;
        Ok(function.map(|function| self.functions.add(function)))
    }

    fn read_header(&self, memory: &impl Memory, address: u64) -> Result<Option<Header>, Error> {
        let mut bytes = [0; fixed::FUNCTION_SIZE];
        let filled = remote::read_some(memory, address, &mut bytes)?;
        Ok(Header::parse(&bytes[..filled], &self.php.layout))
    }

    /// The function at an address that was read together with the frames, or will be.
    fn watched(&mut self, memory: &impl Memory, address: u64, tables: &mut Tables) -> Result<Sought, Error> {
        let Some(watch) = self.watches.of(address) else {
            return self.unwatched(memory, address, tables);
        };
        let generation = self.functions.generation();
        if let Some(number) = watch.same_as_before(generation) {
            return Ok(Sought::Found(number));
        }
        let Some(header) = watch.header(&self.php.layout) else { return Ok(Sought::Nowhere) };
        let wanted = header.ops().filter(|&(ops, _)| !self.php.is_shared(ops));
        if !watch.aim_at(wanted) {
            return Ok(Sought::Again);
        }
        let known = self.functions.find(&header);
        if let Some(number) = known.filter(|&number| self.functions.get(number).begins_with(watch.ops())) {
            watch.remember(generation, number);
            return Ok(Sought::Found(number));
        }
        // Read now, it may be something else already: what is read with the frames the next time decides.
        let function = self.read_function(memory, header, tables)?;
        Ok(function.map_or(Sought::Nowhere, |_| Sought::Again))
    }

    /// The function at an address that was not read together with the frames. It will be from now on, unless there are
    /// too many.
    fn unwatched(
        &mut self,
        memory: &impl Memory,
        address: u64,
        tables: &mut Tables,
    ) -> Result<Sought, Error> {
        let Some(header) = self.read_header(memory, address)? else { return Ok(Sought::Nowhere) };
        let known = match self.functions.find(&header) {
            Some(number) => Some(number),
            None => self.read_function(memory, header, tables)?,
        };
        let Some(number) = known else { return Ok(Sought::Nowhere) };
        let wanted = header.ops().filter(|&(ops, _)| !self.php.is_shared(ops));
        Ok(if self.watches.add(address, wanted) { Sought::Again } else { Sought::Found(number) })
    }

    /// The function of PHP that is called without a frame by its number `call`.
    pub(crate) fn frameless(
        &mut self,
        memory: &impl Memory,
        call: u32,
        tables: &mut Tables,
    ) -> Result<Option<usize>, Error> {
        let known = self.frameless.get(&call).copied();
        let address = match known {
            Some(address) => address,
            None => self.frameless_address(memory, call).unwrap_or_default(),
        };
        let Sought::Found(number) = self.find(memory, address, tables)? else { return Ok(None) };
        self.frameless.insert(call, address);
        Ok(Some(number))
    }

    fn frameless_address(&self, memory: &impl Memory, call: u32) -> Option<u64> {
        let functions = memory.read_u64(self.php.frameless_functions).ok()?;
        memory.read_u64(remote::moved(functions, usize::try_from(call).ok()?.checked_mul(8)?)).ok()
    }
}
