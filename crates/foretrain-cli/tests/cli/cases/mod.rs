//! Troubles that users of profilers reported, end to end: the smallest input that shows one, and
//! what the command has to say.

mod collectives;
mod communication;
mod damage;
mod fleet;
mod graphs;
mod launches;
mod layouts;
mod ranks;
mod scaling;
