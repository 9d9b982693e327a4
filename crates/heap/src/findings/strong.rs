//! Finds cycles of strong references. Cycles through structural references of the engine, such as from a closure to its
//! class, are not a problem. Among garbage, all references count, because PHP's collector counted them.

use hashbrown::HashMap;

use crate::names::Strength;
use crate::sink::NodeId;

use super::survey::HeapSurvey;

/// Replaces the lowest number that a node leads back to, once its cycle is known.
const CLOSED: u32 = u32::MAX;

/// The cycles with an object, an array or a PHP reference, each with its nodes in ascending order.
pub(super) fn strong_cycles(survey: &HeapSurvey<'_>) -> Vec<Vec<u32>> {
    let mut cycles = Vec::new();
    for cycle in survey.retention.cycles() {
        let is_strong = |&node: &u32| {
            let mut inner = survey.children(NodeId(node)).filter(|child| child.strength != Strength::Strong);
            inner.all(|child| cycle.nodes.binary_search(&child.node.0).is_err())
        };
        let is_garbage = cycle.nodes.first().is_some_and(|&node| survey.is_garbage(NodeId(node)));
        if is_garbage || cycle.nodes.iter().all(is_strong) {
            cycles.push(cycle.nodes.clone());
        } else {
            cycles.extend(StrongCycles::of(survey, &cycle.nodes));
        }
    }
    cycles
}

/// A node whose references are being followed: its number among the nodes, and its remaining references, the last one first.
struct StrongVisit {
    node: u32,
    left: Vec<u32>,
}

/// Finds the cycles of strong references among some nodes.
struct StrongCycles<'n> {
    nodes: &'n [u32],
    /// The order in which nodes were reached, from 1 on; 0 if not yet.
    order: Vec<u32>,
    lowest: Vec<u32>,
    open: Vec<u32>,
    path: Vec<StrongVisit>,
    next: u32,
    found: Vec<Vec<u32>>,
}

impl<'n> StrongCycles<'n> {
    fn of(survey: &HeapSurvey<'_>, nodes: &'n [u32]) -> Vec<Vec<u32>> {
        let count = nodes.len();
        let (open, path, found) = (Vec::new(), Vec::new(), Vec::new());
        let mut parts =
            Self { nodes, order: vec![0; count], lowest: vec![CLOSED; count], open, path, next: 1, found };
        let places: HashMap<u32, u32> = (0..).zip(nodes).map(|(place, &node)| (node, place)).collect();
        for start in 0..u32::try_from(count).unwrap_or(u32::MAX) {
            if parts.order[start as usize] == 0 {
                parts.enter(survey, &places, start);
                parts.walk(survey, &places);
            }
        }
        parts.found
    }

    fn enter(&mut self, survey: &HeapSurvey<'_>, places: &HashMap<u32, u32>, node: u32) {
        let strong = survey.children(NodeId(self.nodes[node as usize]));
        let strong = strong.filter(|child| child.strength == Strength::Strong);
        let left = strong.filter_map(|child| places.get(&child.node.0).copied()).collect();
        self.order[node as usize] = self.next;
        self.lowest[node as usize] = self.next;
        self.next += 1;
        self.open.push(node);
        self.path.push(StrongVisit { node, left });
    }

    fn walk(&mut self, survey: &HeapSurvey<'_>, places: &HashMap<u32, u32>) {
        while let Some(visit) = self.path.last_mut() {
            let node = visit.node as usize;
            match visit.left.pop() {
                Some(child) if self.order[child as usize] == 0 => self.enter(survey, places, child),
                Some(child) => {
                    if self.lowest[child as usize] != CLOSED {
                        self.lowest[node] = self.lowest[node].min(self.order[child as usize]);
                    }
                }
                None => self.leave(node),
            }
        }
    }

    fn leave(&mut self, node: usize) {
        self.path.pop();
        let lowest = self.lowest[node];
        if let Some(above) = self.path.last() {
            let above = &mut self.lowest[above.node as usize];
            *above = (*above).min(lowest);
        }
        if lowest != self.order[node] {
            return;
        }
        let from = self.open.iter().rposition(|&open| open as usize == node).unwrap_or_default();
        let members = self.open.split_off(from);
        for &member in &members {
            self.lowest[member as usize] = CLOSED;
        }
        if members.len() > 1 {
            let mut cycle: Vec<u32> = members.iter().map(|&member| self.nodes[member as usize]).collect();
            cycle.sort_unstable();
            self.found.push(cycle);
        }
    }
}
