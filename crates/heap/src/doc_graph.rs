//! The graph in the examples of the documentation: an object that holds a string of 4 KiB.

/// The section of examples with one that has `graph`, and the nodes `object` and `string` in it.
macro_rules! graph_example {
    ($code:literal) => {
        concat!(
            "\n# Examples\n\n```\n",
            "# use borehole_heap::{Edge, Graph as _, GraphBuilder, HeapSink as _, LocationType, MemoryLocation, NodeType, Strength};\n",
            "# let mut builder = GraphBuilder::new();\n",
            "# let root = builder.string(b\"cache\");\n",
            "# let text = builder.string(b\"text\");\n",
            "# let class = builder.string(b\"App\\\\Cache\");\n",
            "# let object = builder.node(NodeType::OBJECT);\n",
            "# let string = builder.node(NodeType::STRING);\n",
            "# for (parent, child, link) in [(None, object, root), (Some(object), string, text)] {\n",
            "#     builder.edge(Edge { parent, child, link, is_tree: true, strength: Strength::Strong });\n",
            "# }\n",
            "# let memory = MemoryLocation::new(LocationType::OBJECT, 0x1000, 56);\n",
            "# builder.location(object, &MemoryLocation { class: Some(class), ..memory });\n",
            "# builder.location(string, &MemoryLocation::new(LocationType::STRING, 0x2000, 4096));\n",
            "# let graph = builder.finish()?;\n",
            $code,
            "\n# Ok::<(), Box<dyn std::error::Error>>(())\n```\n",
        )
    };
}
pub(crate) use graph_example;
