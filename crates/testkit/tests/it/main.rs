//! Holds the corpus against its manifest, replays the seeds of the fuzz targets, and tries out the peers.

mod corpus;
mod peers;
mod seeds;
