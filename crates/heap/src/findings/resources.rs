//! Findings about connections held by a cycle, which stay open until PHP's cycle collector runs.

use hashbrown::HashMap;

use crate::names::NodeType;
use crate::sink::{NodeId, StringId};

use super::amounts::{ByteSum, count, size};
use super::cycles::Cycles;
use super::finding::{Confidence, FindingKind, FindingPlace, FindingSeverity, HeapFinding};
use super::survey::HeapSurvey;

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
struct HeldConnections {
    /// Connections in garbage, and their memory including the own blocks of their cycles.
    garbage: ByteSum,
    /// Connections that something reachable holds through a cycle.
    reachable: ByteSum,
    example: Option<(NodeId, usize)>,
}

pub(super) fn find(survey: &HeapSurvey<'_>, cycles: &Cycles) -> Vec<HeapFinding> {
    let connections = connections(survey);
    if connections.is_empty() || cycles.all.is_empty() {
        return Vec::new();
    }
    let mut held: HashMap<String, HeldConnections> = HashMap::new();
    for (&node, &number) in &holders(survey, cycles, &connections) {
        let entry = held.entry(connections[&node].clone()).or_default();
        let cycle = cycles.all[number].iter().map(|&node| survey.shallow(NodeId(node)));
        let bytes = cycle.fold(survey.retention.retained(node), u64::saturating_add);
        let sum = if survey.is_garbage(node) { &mut entry.garbage } else { &mut entry.reachable };
        sum.add(bytes);
        entry.example = Some(entry.example.map_or((node, number), |known| known.min((node, number))));
    }
    let mut held: Vec<(String, HeldConnections)> = held.into_iter().collect();
    held.sort_by(|left, right| left.0.cmp(&right.0));
    held.iter().filter_map(|(class, held)| finding(survey, cycles, class, held)).collect()
}

/// The objects that are connections, with their classes.
fn connections(survey: &HeapSurvey<'_>) -> HashMap<NodeId, String> {
    let known = connection_classes(survey);
    let is_connection = |class: &str| known.iter().any(|known| known == class);
    if known.is_empty() {
        return HashMap::new();
    }
    let objects = survey.census.objects().map(|(node, class)| (node, survey.text(class)));
    objects.filter(|(_, class)| is_connection(class)).collect()
}

/// The classes whose objects are connections, among those with objects: known classes, and classes that extend one.
fn connection_classes(survey: &HeapSurvey<'_>) -> Vec<String> {
    let methods = methods_by_class(survey);
    let bases: Vec<&HashMap<StringId, bool>> =
        CLASSES.iter().filter_map(|class| methods.get(class.to_ascii_lowercase().as_bytes())).collect();
    let extends = |name: &[u8]| {
        let own = methods.get(&name.to_ascii_lowercase());
        own.is_some_and(|own| bases.iter().any(|base| is_extended(base, own)))
    };
    let classes = survey.totals.classes.iter().map(|class| &class.name[..]);
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
fn methods_by_class(survey: &HeapSurvey<'_>) -> HashMap<Vec<u8>, HashMap<StringId, bool>> {
    let graph = survey.graph();
    let roots = survey.heap.references(None).map(|root| root.to);
    let tables = roots.filter(|&root| graph.node_type(root) == NodeType::DEFINED_CLASSES);
    let mut found = HashMap::new();
    for class in tables.flat_map(|table| survey.children(table)) {
        let methods = survey.child(class.node, survey.words.methods);
        let methods = methods.into_iter().flat_map(|methods| survey.children(methods));
        let is_own = |node| graph.node_type(node) == NodeType::INTERNAL_FUNCTION_DEFINITION;
        let methods: HashMap<StringId, bool> =
            methods.map(|method| (method.link, is_own(method.node))).collect();
        found.insert(graph.string(class.link).to_vec(), methods);
    }
    found
}

/// The index of the cycle that holds each connection.
fn holders(
    survey: &HeapSurvey<'_>,
    cycles: &Cycles,
    connections: &HashMap<NodeId, String>,
) -> HashMap<NodeId, usize> {
    let mut holders = HashMap::new();
    let mut members: HashMap<u32, usize> = HashMap::new();
    for (number, cycle) in cycles.all.iter().enumerate() {
        for &node in cycle {
            members.insert(node, number);
            let held = survey.children(NodeId(node)).filter(|child| connections.contains_key(&child.node));
            for child in held {
                holders.entry(child.node).or_insert(number);
            }
        }
    }
    for &node in connections.keys() {
        let upwards = std::iter::successors(Some(node), |&node| survey.retention.dominator(node));
        let cycle = upwards.take(STEPS).find_map(|node| members.get(&node.0));
        if let Some(&number) = cycle {
            holders.entry(node).or_insert(number);
        }
    }
    holders
}

fn finding(
    survey: &HeapSurvey<'_>,
    cycles: &Cycles,
    class: &str,
    held: &HeldConnections,
) -> Option<HeapFinding> {
    let (node, number) = held.example?;
    let all = held.garbage.with(held.reachable);
    // A service container holds its one connection through a cycle, which is intended.
    let severity = match (held.garbage.count, held.reachable.count) {
        (1.., _) => FindingSeverity::High,
        (0, 2..) => FindingSeverity::Medium,
        _ => FindingSeverity::Low,
    };
    let (holder, place) = holder(survey, &cycles.all[number], node);
    let text = match held.garbage.count {
        0 => format!("cycles hold {} {class}: {holder}", count(all.count)),
        _ => format!(
            "{} open {class} are held only by cycles ({} in total): {holder}",
            count(held.garbage.count),
            size(held.garbage.bytes)
        ),
    };
    let finding = HeapFinding::new(FindingKind::ResourceLeakRisk, severity, text)
        .fact("class_name", class)
        .fact("count", all.count)
        .fact("awaiting_collection", held.garbage.count)
        .fact("holder", holder.as_str())
        .fact("path", place.path.as_str())
        .likely(
            Confidence::High,
            "Once dropped, they stay open until PHP's cycle collector runs. The server may run out of connections first.",
        )
        .check("Break the cycle: use a WeakReference, or unset one reference when you are done.")
        .check("Or close the connection when it is no longer needed: $connection = null in its last holder.")
        .impact(all.bytes)
        .at(Some(place));
    Some(finding)
}

/// The reference by which a cycle holds a connection.
fn holder(survey: &HeapSurvey<'_>, cycle: &[u32], connection: NodeId) -> (String, FindingPlace) {
    for &parent in cycle {
        let parent = NodeId(parent);
        if let Some(child) = survey.children(parent).find(|child| child.node == connection) {
            let owner = survey.owner_by(parent, child.link, parent);
            return (survey.label(owner), survey.place(connection));
        }
    }
    (survey.label(survey.owner(connection)), survey.place(connection))
}
