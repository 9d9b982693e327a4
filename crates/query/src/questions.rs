//! The built-in queries, as SQL. User input appears in them only as SQL literals.

use crate::choice::SampleChoice;
use crate::literal::text;

impl SampleChoice {
    /// SQL for the rows to add up.
    fn rows(&self) -> String {
        self.addend.rows(&self.condition())
    }

    /// SQL for whether a stack is in focus.
    fn focused(&self) -> String {
        let focus = self.focus.as_ref();
        focus.map_or_else(|| "true".to_owned(), |focus| format!("contains_function(stack, {})", text(focus)))
    }

    /// SQL for the stacks and the number of each: the data of a flame graph.
    #[must_use]
    pub fn stacks(&self) -> String {
        let (rows, focused, value) = (self.rows(), self.focused(), self.addend.whole("value"));
        format!(
            "SELECT stack, frames, {value} AS value FROM \
             (SELECT stack_id, sum(value) AS value FROM ({rows}) GROUP BY stack_id) \
             LEFT JOIN stacks USING (stack_id) WHERE {focused}"
        )
    }

    /// SQL for the self and total numbers of functions.
    fn functions(&self) -> String {
        let (rows, focused) = (self.rows(), self.focused());
        format!(
            "SELECT function, sum(CASE WHEN function = leaf THEN value ELSE 0 END) AS self, sum(value) AS total FROM \
             (SELECT unnest(frames_of(stack)) AS function, leaf(stack) AS leaf, value FROM \
             (SELECT stack_id, sum(value) AS value FROM ({rows}) GROUP BY stack_id) \
             JOIN stacks USING (stack_id) WHERE {focused}) GROUP BY function"
        )
    }
}
/// SQL for the functions that cost most: `function`, `self`, `total`, and both in percent of everything chosen.
#[must_use]
pub fn top(choice: &SampleChoice, limit: Option<usize>) -> String {
    let (functions, rows) = (choice.functions(), choice.rows());
    let [of_self, of_total] = ["self", "total"].map(|sum| choice.addend.whole(sum));
    let limit = limit_to(limit);
    format!(
        "WITH functions AS ({functions}), whole AS (SELECT sum(value) AS value FROM ({rows})) \
         SELECT function, {of_self} AS self, {of_total} AS total, \
         round(100.0 * self / whole.value, 2) AS self_percent, \
         round(100.0 * total / whole.value, 2) AS total_percent FROM functions CROSS JOIN whole \
         ORDER BY self DESC, total DESC, function{limit}"
    )
}

/// SQL for the change in each function's share, in percentage points; the largest change first.
#[must_use]
pub fn diff(before: &SampleChoice, after: &SampleChoice, limit: Option<usize>) -> String {
    let side = |choice: &SampleChoice| {
        let (functions, rows) = (choice.functions(), choice.rows());
        format!(
            "(SELECT function, 100.0 * self / whole.value AS self, 100.0 * total / whole.value AS total FROM \
             ({functions}) CROSS JOIN (SELECT sum(value) AS value FROM ({rows})) AS whole)"
        )
    };
    let (before, after) = (side(before), side(after));
    let limit = limit_to(limit);
    format!(
        "SELECT coalesce(before.function, after.function) AS function, \
         round(coalesce(before.self, 0), 2) AS self_before, round(coalesce(after.self, 0), 2) AS self_after, \
         round(coalesce(after.self, 0) - coalesce(before.self, 0), 2) AS self_change, \
         round(coalesce(before.total, 0), 2) AS total_before, round(coalesce(after.total, 0), 2) AS total_after, \
         round(coalesce(after.total, 0) - coalesce(before.total, 0), 2) AS total_change \
         FROM {before} AS before FULL JOIN {after} AS after ON before.function = after.function \
         ORDER BY abs(coalesce(after.self, 0) - coalesce(before.self, 0)) DESC, \
         abs(coalesce(after.total, 0) - coalesce(before.total, 0)) DESC, 1{limit}"
    )
}

/// SQL for the cost of a function over time: one row per step that has samples, with the function's shares in percent of all
/// samples. The sum over all samples is called `samples`, or `value` if it is something else. With a focus, `self` and
/// `total` are those of the function on the focused stacks.
#[must_use]
pub fn trend(function: &str, step_us: i64, choice: &SampleChoice) -> String {
    let (rows, focused, function) = (choice.rows(), choice.focused(), text(function));
    let sum =
        |is_counted: &str| format!("coalesce(sum(CASE WHEN {is_counted} AND {focused} THEN value END), 0)");
    let of_self = sum(&format!("leaf(stack) = {function}"));
    let of_total = sum(&format!("array_has(stack, {function})"));
    let [whole, whole_self, whole_total] =
        ["sum(value)", &of_self, &of_total].map(|sum| choice.addend.whole(sum));
    let name = if choice.addend.value_type().is_samples() { "samples" } else { "value" };
    format!(
        "SELECT step AS time, {whole} AS {name}, {whole_self} AS self, {whole_total} AS total, \
         round(100.0 * {of_self} / sum(value), 2) AS self_percent, \
         round(100.0 * {of_total} / sum(value), 2) AS total_percent \
         FROM (SELECT date_bin(INTERVAL '{step_us} microseconds', time) AS step, stack_id, sum(value) AS value \
         FROM ({rows}) GROUP BY 1, 2) LEFT JOIN stacks USING (stack_id) GROUP BY step ORDER BY step"
    )
}

/// SQL for the id of a stack that contains the function; no row if there is none.
#[must_use]
pub fn stack_with(function: &str) -> String {
    format!("SELECT stack_id FROM stacks WHERE array_has(stack, {}) LIMIT 1", text(function))
}

fn limit_to(rows: Option<usize>) -> String {
    rows.map_or_else(String::new, |rows| format!(" LIMIT {rows}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_input_stays_a_literal() {
        let choice = SampleChoice { service: Some("x' OR '1'='1".to_owned()), ..SampleChoice::default() };
        assert!(choice.stacks().contains("service = 'x'' OR ''1''=''1'"));
    }
}
