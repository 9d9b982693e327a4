//! Views: SQL over the tables that most queries start from.

/// A view with a name.
pub(crate) struct View {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) sql: &'static str,
}

/// All views.
pub(crate) const VIEWS: &[View] = &[
    View {
        name: "frames",
        about: "The functions of stacks: a row for each function that a stack has, once, with whether it is the leaf",
        sql: "SELECT stack_id, function, function = leaf AS is_leaf FROM \
              (SELECT stack_id, unnest(frames_of(stack)) AS function, leaf(stack) AS leaf FROM stacks)",
    },
    View {
        name: "functions",
        about: "Samples by service, hour, host, mode and function: `self` where the function was executing, `total` where \
                it was on the stack",
        sql: "SELECT service, hour, host, mode, function, \
              sum(CASE WHEN function = leaf THEN value ELSE 0 END) AS self, sum(value) AS total FROM \
              (SELECT service, hour, host, mode, value, unnest(frames_of(stack)) AS function, leaf(stack) AS leaf FROM \
              (SELECT service, date_trunc('hour', time) AS hour, host, coalesce(mode, 'wall') AS mode, stack_id, \
              sum(value) AS value FROM samples \
              GROUP BY service, date_trunc('hour', time), host, coalesce(mode, 'wall'), stack_id) \
              JOIN stacks USING (stack_id)) GROUP BY service, hour, host, mode, function",
    },
    View {
        name: "profiles",
        about: "Samples with their stacks: for questions about few samples; about many, add up by `stack_id` first",
        sql: "SELECT samples.*, stacks.stack, stacks.frames FROM samples LEFT JOIN stacks USING (stack_id)",
    },
];
