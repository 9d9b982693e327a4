//! Immediate dominators, by the algorithm of Lengauer and Tarjan ("A Fast Algorithm for Finding Dominators in a
//! Flowgraph", 1979) with simple path compression. For any graph, its time is bounded by the number of references times
//! the logarithm of their ratio to nodes.

/// The end of a list of vertices.
const END: u32 = u32::MAX;

/// The immediate dominator of each vertex; 0 for vertex 0 and for vertices that only vertex 0 dominates.
///
/// Vertices are numbered in the order of a depth-first walk from vertex 0. `parents` is the vertex from which the walk
/// reached each one; `crossings` are all other references, as target and source.
pub(super) fn immediate(parents: Vec<u32>, mut crossings: Vec<(u32, u32)>) -> Vec<u32> {
    crossings.sort_unstable();
    let count = u32::try_from(parents.len()).unwrap_or(u32::MAX);
    // Until a vertex's dominator is known, its entry is the next one in its list.
    let mut dominators = vec![0; parents.len()];
    let mut waiting = vec![END; parents.len()];
    let mut forest = Forest::new(parents);
    for vertex in (1..count).rev() {
        let parent = forest.ancestors[vertex as usize];
        let lowest = forest.lowest(vertex, parent, &mut crossings);
        forest.link(vertex, lowest);
        if lowest == parent {
            dominators[vertex as usize] = parent;
        } else {
            dominators[vertex as usize] = std::mem::replace(&mut waiting[lowest as usize], vertex);
        }
        let mut next = std::mem::replace(&mut waiting[parent as usize], END);
        while next != END {
            let found = forest.best(next);
            let dominator = if forest.semi(found) < forest.semi(next) { found } else { parent };
            next = std::mem::replace(&mut dominators[next as usize], dominator);
        }
    }
    for vertex in 1..dominators.len() {
        if dominators[vertex] != forest.semi[vertex] {
            dominators[vertex] = dominators[dominators[vertex] as usize];
        }
    }
    dominators
}

/// The processed part of the walk's tree: the vertices from `linked` on, each below its parent.
struct Forest {
    /// The parent; after path compression, some vertex above it.
    ancestors: Vec<u32>,
    /// The semidominator of each vertex: the smallest vertex from which a path leads to it through larger ones only.
    semi: Vec<u32>,
    /// Of the vertices from each one up to below its ancestor, the one with the smallest semidominator.
    best: Vec<u32>,
    linked: u32,
    path: Vec<u32>,
}

impl Forest {
    fn new(parents: Vec<u32>) -> Self {
        let own: Vec<u32> = (0..u32::try_from(parents.len()).unwrap_or(u32::MAX)).collect();
        Self { linked: u32::MAX, semi: own.clone(), best: own, ancestors: parents, path: Vec::new() }
    }

    fn semi(&self, vertex: u32) -> u32 {
        self.semi[vertex as usize]
    }

    fn link(&mut self, vertex: u32, semi: u32) {
        self.semi[vertex as usize] = semi;
        self.linked = vertex;
    }

    /// The semidominator of a vertex, from its crossings, which are at the end of the list.
    fn lowest(&mut self, vertex: u32, parent: u32, crossings: &mut Vec<(u32, u32)>) -> u32 {
        let mut lowest = parent;
        while let Some((_, from)) = crossings.pop_if(|(to, _)| *to == vertex) {
            let best = self.best(from);
            lowest = lowest.min(self.semi(best));
        }
        lowest
    }

    /// Of the vertices from `vertex` up to below the root of its tree, the one with the smallest semidominator.
    fn best(&mut self, vertex: u32) -> u32 {
        if vertex < self.linked {
            return vertex;
        }
        let mut top = vertex;
        while self.ancestors[top as usize] >= self.linked {
            self.path.push(top);
            top = self.ancestors[top as usize];
        }
        while let Some(below) = self.path.pop() {
            let (of_top, of_below) = (self.best[top as usize], self.best[below as usize]);
            if self.semi(of_top) < self.semi(of_below) {
                self.best[below as usize] = of_top;
            }
            self.ancestors[below as usize] = self.ancestors[top as usize];
            top = below;
        }
        self.best[vertex as usize]
    }
}
