//! Views: SQL over the tables that most queries start from.

pub(crate) struct SqlView {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) sql: &'static str,
}

pub(crate) const VIEWS: &[SqlView] = &[
    SqlView {
        name: "frames",
        about: "The distinct functions of each stack, one per row, and whether each is the leaf",
        sql: "SELECT stack_id, function, function = leaf AS is_leaf FROM \
              (SELECT stack_id, unnest(frames_of(stack)) AS function, leaf(stack) AS leaf FROM stacks)",
    },
    SqlView {
        name: "functions",
        about: "Samples by service, hour, host, mode and function: `self` counts those with the function as leaf, `total` \
                those with it anywhere on the stack",
        sql: "SELECT service, hour, host, mode, function, \
              sum(CASE WHEN function = leaf THEN value ELSE 0 END) AS self, sum(value) AS total FROM \
              (SELECT service, hour, host, mode, value, unnest(frames_of(stack)) AS function, leaf(stack) AS leaf FROM \
              (SELECT service, date_trunc('hour', time) AS hour, host, coalesce(mode, 'wall') AS mode, stack_id, \
              sum(value) AS value FROM samples \
              GROUP BY service, date_trunc('hour', time), host, coalesce(mode, 'wall'), stack_id) \
              JOIN stacks USING (stack_id)) GROUP BY service, hour, host, mode, function",
    },
    SqlView {
        name: "profiles",
        about: "Samples with their stacks, for queries over few samples; for many, add up by `stack_id` first",
        sql: "SELECT samples.*, stacks.stack, stacks.frames FROM samples LEFT JOIN stacks USING (stack_id)",
    },
];
