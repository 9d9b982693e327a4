//! Compares the corpus with its manifest, replays the seeds of the fuzz targets, and tests the peers.

mod corpus;
mod peers;
mod seeds;
