//! Finds functions by their address in a process.

use borehole_model::Tables;
use borehole_process::{ForeignMemory, MemoryPiece};
use hashbrown::{HashMap, HashSet};

use crate::attach::Php;
use crate::error::Error;
use crate::function::{CachedFunction, FunctionCache, FunctionIdentity, KnownAddress, MOST_FUNCTIONS};
use crate::layout::fixed;
use crate::remote;
use crate::watch::Watches;

pub(crate) enum FunctionLookup {
    /// The function with this number.
    Found(usize),
    /// Unknown now; it is read together with the frames from the next try on.
    Again,
    /// There is none.
    Nowhere,
}

#[derive(Debug)]
pub(crate) struct Lookup {
    php: Php,
    pub(crate) functions: FunctionCache,
    /// The memory to read together with the frames.
    pub(crate) watches: Watches,
    /// The functions that are called without a frame, by number.
    frameless: HashMap<u32, u64>,
    /// The functions that were seen executing none of their instructions.
    compiled: HashSet<u64>,
    /// The last function for which this was seen once.
    doubted: Option<u64>,
}

impl Lookup {
    pub(crate) fn new(php: &Php) -> Self {
        Self {
            php: php.clone(),
            functions: FunctionCache::default(),
            watches: Watches::default(),
            frameless: HashMap::new(),
            compiled: HashSet::new(),
            doubted: None,
        }
    }

    pub(crate) fn stays(&self, address: u64) -> bool {
        matches!(self.functions.at(address), Some(KnownAddress::Stays(_)))
    }

    /// Whether the function at `address`, which executes none of its instructions, is compiled: code called by compiled code
    /// does not store its position. The first time, the answer is no, because the function may be wrong instead.
    pub(crate) fn is_compiled(&mut self, address: u64) -> bool {
        if self.doubted.replace(address) == Some(address) && self.compiled.len() < MOST_FUNCTIONS {
            self.compiled.insert(address);
        }
        self.compiled.contains(&address)
    }

    pub(crate) fn forget_request(&mut self) {
        self.compiled.clear();
        self.functions.forget_request(&self.php);
    }

    pub(crate) fn grow_older(&mut self) {
        self.watches.grow_older();
        if self.functions.are_too_many() {
            self.functions.clear();
        }
        if self.frameless.len() > MOST_FUNCTIONS {
            self.frameless.clear();
        }
    }

    /// Whether the functions at `addresses` that stay for the length of a request are still there; another request may have put
    /// others in their place. Reads them in one call.
    pub(crate) fn are_of_this_request(
        &self,
        memory: &impl ForeignMemory,
        addresses: impl Iterator<Item = u64>,
        tables: &Tables,
    ) -> Result<bool, Error> {
        let ends_with_request = |header: &FunctionIdentity| header.is_user && !self.php.is_shared(header.ops);
        let known = addresses.filter_map(|address| match self.functions.at(address)? {
            KnownAddress::Stays(number) => Some((address, &self.functions.all[number])),
            KnownAddress::ComesAndGoes => None,
        });
        let mut known: Vec<_> = known.filter(|(_, function)| ends_with_request(&function.header)).collect();
        known.sort_unstable_by_key(|&(address, _)| address);
        known.dedup_by_key(|&mut (address, _)| address);
        let places: Vec<_> =
            known.iter().flat_map(|(address, function)| function.places(*address, tables)).collect();
        let mut parts: Vec<Vec<u8>> = places.iter().map(|&(_, length)| vec![0; length]).collect();
        let pieces = places.iter().zip(&mut parts).filter(|(_, part)| !part.is_empty());
        let mut pieces: Vec<_> = pieces.map(|(&(address, _), into)| MemoryPiece { address, into }).collect();
        let wanted: usize = pieces.iter().map(|piece| piece.into.len()).sum();
        let is_whole = memory.read_pieces(&mut pieces)? == wanted;
        let are_there = known.iter().zip(parts.chunks_exact(3)).all(|((_, function), parts)| {
            function.is_at([&parts[0], &parts[1], &parts[2]], &self.php.layout, tables)
        });
        Ok(is_whole && are_there)
    }

    pub(crate) fn find(
        &mut self,
        memory: &impl ForeignMemory,
        address: u64,
        tables: &mut Tables,
    ) -> Result<FunctionLookup, Error> {
        match self.functions.at(address) {
            Some(KnownAddress::Stays(number)) => return Ok(FunctionLookup::Found(number)),
            Some(KnownAddress::ComesAndGoes) => return self.watched(memory, address, tables),
            None => {}
        }
        let Some(header) = self.read_header(memory, address)? else { return Ok(FunctionLookup::Nowhere) };
        if header.short_lived {
            self.functions.remember(address, KnownAddress::ComesAndGoes);
            return self.watched(memory, address, tables);
        }
        let Some(number) = self.read_function(memory, header, tables)? else {
            return Ok(FunctionLookup::Nowhere);
        };
        self.functions.remember(address, KnownAddress::Stays(number));
        Ok(FunctionLookup::Found(number))
    }

    /// Reads the function with `header`, and returns its number; `None` if it is invalid or there is no room.
    fn read_function(
        &mut self,
        memory: &impl ForeignMemory,
        header: FunctionIdentity,
        tables: &mut Tables,
    ) -> Result<Option<usize>, Error> {
        if !self.functions.has_room_for(&header) {
            return Ok(None);
        }
        let function = CachedFunction::read(memory, header, tables)?;
        Ok(function.map(|function| self.functions.add(function)))
    }

    fn read_header(
        &self,
        memory: &impl ForeignMemory,
        address: u64,
    ) -> Result<Option<FunctionIdentity>, Error> {
        let mut bytes = [0; fixed::FUNCTION_SIZE];
        let filled = remote::read_some(memory, address, &mut bytes)?;
        Ok(FunctionIdentity::parse(&bytes[..filled], &self.php.layout))
    }

    /// The function at an address that was read, or will be read, together with the frames.
    fn watched(
        &mut self,
        memory: &impl ForeignMemory,
        address: u64,
        tables: &mut Tables,
    ) -> Result<FunctionLookup, Error> {
        let Some(watch) = self.watches.of(address) else {
            return self.unwatched(memory, address, tables);
        };
        let generation = self.functions.generation;
        if let Some(number) = watch.same_as_before(generation) {
            return Ok(FunctionLookup::Found(number));
        }
        let Some(header) = watch.header(&self.php.layout) else { return Ok(FunctionLookup::Nowhere) };
        let wanted = header.ops_range().filter(|&(ops, _)| !self.php.is_shared(ops));
        if !watch.aim_at(wanted) {
            return Ok(FunctionLookup::Again);
        }
        let known = self.functions.find(&header);
        if let Some(number) = known.filter(|&number| self.functions.all[number].begins_with(watch.ops())) {
            watch.remember(generation, number);
            return Ok(FunctionLookup::Found(number));
        }
        // Read now, it may already be something else: the next read together with the frames decides.
        let function = self.read_function(memory, header, tables)?;
        Ok(function.map_or(FunctionLookup::Nowhere, |_| FunctionLookup::Again))
    }

    /// The function at an address that was not read together with the frames. It will be from now on, unless there are too
    /// many.
    fn unwatched(
        &mut self,
        memory: &impl ForeignMemory,
        address: u64,
        tables: &mut Tables,
    ) -> Result<FunctionLookup, Error> {
        let Some(header) = self.read_header(memory, address)? else { return Ok(FunctionLookup::Nowhere) };
        let known = match self.functions.find(&header) {
            Some(number) => Some(number),
            None => self.read_function(memory, header, tables)?,
        };
        let Some(number) = known else { return Ok(FunctionLookup::Nowhere) };
        let wanted = header.ops_range().filter(|&(ops, _)| !self.php.is_shared(ops));
        Ok(if self.watches.add(address, wanted) {
            FunctionLookup::Again
        } else {
            FunctionLookup::Found(number)
        })
    }

    /// The internal function with the number `call` that is called without a frame.
    pub(crate) fn frameless(
        &mut self,
        memory: &impl ForeignMemory,
        call: u32,
        tables: &mut Tables,
    ) -> Result<Option<usize>, Error> {
        let known = self.frameless.get(&call).copied().or_else(|| self.frameless_address(memory, call));
        let address = known.unwrap_or_default();
        let FunctionLookup::Found(number) = self.find(memory, address, tables)? else { return Ok(None) };
        self.frameless.insert(call, address);
        Ok(Some(number))
    }

    fn frameless_address(&self, memory: &impl ForeignMemory, call: u32) -> Option<u64> {
        let functions = memory.read_u64(self.php.frameless_functions).ok()?;
        memory.read_u64(remote::moved(functions, usize::try_from(call).ok()?.checked_mul(8)?)).ok()
    }
}
