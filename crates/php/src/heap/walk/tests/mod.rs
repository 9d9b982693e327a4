mod callables;
mod damage;
mod facts;
mod graph;
mod reli;
mod shape;
mod states;
