//! Findings about connections held by a cycle, which stay open until PHP's cycle collector runs.

use hashbrown::HashMap;

use crate::graph::Graph;
use crate::names::NodeType;
use crate::sink::{NodeId, StringId};

use super::Sum;
use super::amounts::{count, size};
use super::census::Thing;
use super::context::Context;
use super::cycles::Cycles;
use super::finding::{Confidence, Finding, Kind, Place, Severity};

/// PHP's classes whose objects hold a scarce resource outside of PHP.
const CLASSES: [&str; 20] = [
    "PDO",
    "PDOStatement",
    "mysqli",
    "mysqli_stmt",
    "mysqli_result",
    "SQLite3",
    "SQLite3Stmt",
    "SQLite3Result",
    "PgSql\\Connection",
    "PgSql\\Result",
    "Redis",
    "RedisCluster",
    "Memcached",
    "MongoDB\\Driver\\Manager",
    "AMQPConnection",
    "LDAP\\Connection",
    "FTP\\Connection",
    "CurlHandle",
    "CurlMultiHandle",
    "Socket",
];

/// The maximum number of steps up to search for a cycle that holds a connection.
const STEPS: usize = 64;

/// The connections of a class that cycles hold.
#[derive(Default)]
struct Held {
    /// Connections in garbage, and their memory including the own blocks of their cycles.
    garbage: Sum,
    /// Connections that something reachable holds through a cycle.
    reachable: Sum,
    example: Option<(NodeId, usize)>,
}

pub(super) fn find<G: Graph + ?Sized>(context: &Context<'_, '_, G>, cycles: &Cycles) -> Vec<Finding> {
    let connections = connections(context);
    if connections.is_empty() || cycles.all.is_empty() {
        return Vec::new();
    }
    let mut held: HashMap<String, Held> = HashMap::new();
    for (&node, &number) in &holders(context, cycles, &connections) {
        let entry = held.entry(connections[&node].clone()).or_default();
        let cycle = cycles.all[number].iter().map(|&node| context.own(NodeId(node)));
        let bytes = cycle.fold(context.retention.retained(node), u64::saturating_add);
        let sum = if context.is_garbage(node) { &mut entry.garbage } else { &mut entry.reachable };
        sum.add(bytes);
        entry.example = Some(entry.example.map_or((node, number), |known| known.min((node, number))));
    }
    let mut held: Vec<(String, Held)> = held.into_iter().collect();
    held.sort_by(|left, right| left.0.cmp(&right.0));
    held.iter().filter_map(|(class, held)| finding(context, cycles, class, held)).collect()
}

/// The objects that are connections, with their classes.
fn connections<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> HashMap<NodeId, String> {
    let known = connection_classes(context);
    let is_connection = |class: &str| known.iter().any(|known| known == class);
    if known.is_empty() {
        return HashMap::new();
    }
    let objects = context.census.all().filter_map(|(node, thing)| match thing {
        Thing::Object(class) => Some((node, context.text(class))),
        _ => None,
    });
    objects.filter(|(_, class)| is_connection(class)).collect()
}

/// The classes whose objects are connections, among those with objects: known classes, and classes that extend one.
fn connection_classes<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<String> {
    let methods = methods_by_class(context);
    let bases: Vec<&HashMap<StringId, bool>> =
        CLASSES.iter().filter_map(|class| methods.get(class.to_ascii_lowercase().as_bytes())).collect();
    let extends = |name: &[u8]| {
        let own = methods.get(&name.to_ascii_lowercase());
        own.is_some_and(|own| bases.iter().any(|base| is_extended(base, own)))
    };
    let classes = context.totals.classes.iter().map(|class| &class.name[..]);
    let is_connection = |name: &&[u8]| CLASSES.iter().any(|class| class.as_bytes() == *name) || extends(name);
    classes.filter(is_connection).map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Whether a class has all methods of another class, and inherits one of them unchanged.
fn is_extended(base: &HashMap<StringId, bool>, class: &HashMap<StringId, bool>) -> bool {
    let is_there = |method: &StringId| class.contains_key(method);
    let is_kept = |method: &StringId| class.get(method) == Some(&true);
    !base.is_empty() && base.keys().all(is_there) && base.keys().any(is_kept)
}

/// The methods of each class, keyed by its name in lower case, and whether each method is internal to PHP.
fn methods_by_class<G: Graph + ?Sized>(
    context: &Context<'_, '_, G>,
) -> HashMap<Vec<u8>, HashMap<StringId, bool>> {
    let graph = context.graph();
    let roots = context.heap.references(None).map(|root| root.to);
    let tables = roots.filter(|&root| graph.node_type(root) == NodeType::DEFINED_CLASSES);
    let mut found = HashMap::new();
    for class in tables.flat_map(|table| context.children(table)) {
        let methods = context.child(class.node, context.words.methods);
        let methods = methods.into_iter().flat_map(|methods| context.children(methods));
        let is_own = |node| graph.node_type(node) == NodeType::INTERNAL_FUNCTION_DEFINITION;
        let methods: HashMap<StringId, bool> =
            methods.map(|method| (method.link, is_own(method.node))).collect();
        found.insert(graph.string(class.link).to_vec(), methods);
    }
    found
}

/// The index of the cycle that holds each connection.
fn holders<G: Graph + ?Sized>(
    context: &Context<'_, '_, G>,
    cycles: &Cycles,
    connections: &HashMap<NodeId, String>,
) -> HashMap<NodeId, usize> {
    let mut holders = HashMap::new();
    let mut members: HashMap<u32, usize> = HashMap::new();
    for (number, cycle) in cycles.all.iter().enumerate() {
        for &node in cycle {
            members.insert(node, number);
            let held = context.children(NodeId(node)).filter(|child| connections.contains_key(&child.node));
            for child in held {
                holders.entry(child.node).or_insert(number);
            }
        }
    }
    for &node in connections.keys() {
        let upwards = std::iter::successors(Some(node), |&node| context.retention.dominator(node));
        let cycle = upwards.take(STEPS).find_map(|node| members.get(&node.0));
        if let Some(&number) = cycle {
            holders.entry(node).or_insert(number);
        }
    }
    holders
}

fn finding<G: Graph + ?Sized>(
    context: &Context<'_, '_, G>,
    cycles: &Cycles,
    class: &str,
    held: &Held,
) -> Option<Finding> {
    let (node, number) = held.example?;
    let all = held.garbage.with(held.reachable);
    // A service container holds its one connection through a cycle, which is intended.
    let severity = match (held.garbage.count, held.reachable.count) {
        (1.., _) => Severity::High,
        (0, 2..) => Severity::Medium,
        _ => Severity::Low,
    };
    let (holder, place) = holder(context, &cycles.all[number], node);
    let text = match held.garbage.count {
        0 => format!("{} {class} held by cycles: {holder}", count(all.count)),
        _ => format!(
            "{} {class} are open and held by nothing but cycles ({} with them): {holder}",
            count(held.garbage.count),
            size(held.garbage.bytes)
        ),
    };
    let finding = Finding::new(Kind::ResourceLeakRisk, severity, text)
        .fact("class_name", class)
        .fact("count", all.count)
        .fact("awaiting_collection", held.garbage.count)
        .fact("holder", holder.as_str())
        .fact("path", place.path.as_str())
        .likely(
            Confidence::High,
            "when they are let go of, they stay open until PHP looks for cycles: the other side runs out of connections first",
        )
        .check("Break the cycle: with a WeakReference, or by letting go of one reference in the end")
        .check("Or close the connection where it is no longer needed: $connection = null in its last holder")
        .impact(all.bytes)
        .at(Some(place));
    Some(finding)
}

/// The reference by which a cycle holds a connection.
fn holder<G: Graph + ?Sized>(
    context: &Context<'_, '_, G>,
    cycle: &[u32],
    connection: NodeId,
) -> (String, Place) {
    for &parent in cycle {
        let parent = NodeId(parent);
        if let Some(child) = context.children(parent).find(|child| child.node == connection) {
            let owner = context.owner_by(parent, child.link, parent);
            return (context.label(owner), context.place(connection));
        }
    }
    (context.label(context.owner(connection)), context.place(connection))
}
