//! The tables of a graph in memory, as they would lie in its file.

use arrow_array::RecordBatch;
use foretrain_core::{InputError, Result};

use super::write;
use crate::step_graph::StepGraph;

impl StepGraph {
    /// The node table of the [file](mod@crate::file), one row per node, as one Arrow batch. Names and
    /// words are dictionaries.
    ///
    /// # Errors
    /// If the names exceed 2 GiB of text.
    pub fn node_table(&self) -> Result<RecordBatch> {
        write::check_names(self)?;
        write::node_batch(self).map_err(|error| in_memory(&error))
    }

    /// The edge table of the [file](mod@crate::file), one row per edge, as one Arrow batch.
    ///
    /// # Errors
    /// None that is known: graphs in memory have columns of one length.
    pub fn edge_table(&self) -> Result<RecordBatch> {
        write::edge_batch(self).map_err(|error| in_memory(&error))
    }
}

fn in_memory(error: &arrow_schema::ArrowError) -> InputError {
    InputError::new(format!("cannot make a table of the graph: {error}"))
}

#[cfg(test)]
mod tests {
    use foretrain_core::Nanos;

    use super::*;
    use crate::{Edge, EdgeKind, Node, NodeKind, QueueKind};

    #[test]
    fn tables_have_the_rows_of_the_graph() {
        let mut graph = StepGraph::new();
        let queue = graph.add_queue("stream 7", QueueKind::Stream);
        let name = graph.names.intern("gemm");
        let node = Node::new(NodeKind::Kernel, name, queue, Nanos::from_micros(3));
        let (a, b) = (graph.add_node(node), graph.add_node(node));
        graph.add_edge(Edge::new(a, b, EdgeKind::StreamOrder));
        graph.node_attributes.set_i64("tokens", 1, 4096);
        let (nodes, edges) = (graph.node_table().unwrap(), graph.edge_table().unwrap());
        assert_eq!((nodes.num_rows(), edges.num_rows()), (2, 1));
        assert!(nodes.column_by_name("attr:tokens").is_some_and(|column| column.is_null(0)));
        assert!(edges.column_by_name("lag_ns").is_some());
        let empty = StepGraph::new();
        assert_eq!(empty.node_table().unwrap().num_rows(), 0);
    }
}
