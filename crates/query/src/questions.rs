//! The built-in queries, as SQL. User input appears in them only as SQL literals.

use crate::choice::SampleChoice;
use crate::keys::SampleKey;
use crate::literal::text;

impl SampleChoice {
    /// SQL for the rows to add up.
    pub(crate) fn rows(&self) -> String {
        self.addend.rows(&self.condition(), "")
    }

    /// SQL for the rows to add up, with the values of keys as the columns of [`columns_of`].
    pub(crate) fn rows_by(&self, keys: &[SampleKey]) -> String {
        let column = |(place, key): (usize, &SampleKey)| format!(", {} AS key{place}", key.sql());
        self.addend.rows(&self.condition(), &keys.iter().enumerate().map(column).collect::<String>())
    }

    /// SQL for whether a stack is in focus.
    pub(crate) fn focused(&self) -> String {
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

    /// SQL for the stacks by the values of keys, which are their labels, and the number of each.
    #[must_use]
    pub fn stacks_by(&self, keys: &[SampleKey]) -> String {
        if keys.is_empty() {
            return self.stacks();
        }
        let (rows, focused, value) = (self.rows_by(keys), self.focused(), self.addend.whole("value"));
        let columns = columns_of(keys);
        let entry = |(place, title): (usize, String)| format!("{}: key{place}", text(&title));
        let entries = titles(keys).enumerate().map(entry).collect::<Vec<_>>().join(", ");
        format!(
            "SELECT stack, frames, {value} AS value, MAP {{{entries}}} AS labels FROM \
             (SELECT stack_id, {columns}, sum(value) AS value FROM ({rows}) GROUP BY stack_id, {columns}) \
             LEFT JOIN stacks USING (stack_id) WHERE {focused} ORDER BY {columns}, value DESC"
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

/// SQL for the sums by the values of keys, the largest first: the values, each in a column named like its key, the `value`, and
/// its share of everything chosen in percent. With a focus, `focused` is the sum of the focused stacks, and the share is that of
/// `focused` in `value`.
#[must_use]
pub fn groups(choice: &SampleChoice, keys: &[SampleKey], limit: Option<usize>) -> String {
    let (rows, columns, limit) = (choice.rows_by(keys), columns_of(keys), limit_to(limit));
    let named = named_columns(keys);
    let value = choice.addend.whole("value");
    let Some(_) = choice.focus else {
        return format!(
            "SELECT {named}, {value} AS value, round(100.0 * value / sum(value) OVER (), 2) AS percent FROM \
             (SELECT {columns}, sum(value) AS value FROM ({rows}) GROUP BY {columns}) \
             ORDER BY value DESC, {columns}{limit}"
        );
    };
    let (is_focused, focused) = (choice.focused(), choice.addend.whole("focused"));
    format!(
        "SELECT {named}, {value} AS value, {focused} AS focused, round(100.0 * focused / value, 2) AS percent FROM \
         (SELECT {columns}, sum(value) AS value, \
         coalesce(sum(CASE WHEN {is_focused} THEN value END), 0) AS focused FROM \
         (SELECT stack_id, {columns}, sum(value) AS value FROM ({rows}) GROUP BY stack_id, {columns}) \
         LEFT JOIN stacks USING (stack_id) GROUP BY {columns}) ORDER BY focused DESC, {columns}{limit}"
    )
}

/// The columns of [`SampleChoice::rows_by`] for these keys.
fn columns_of(keys: &[SampleKey]) -> String {
    (0..keys.len()).map(|place| format!("key{place}")).collect::<Vec<_>>().join(", ")
}

/// The columns of keys with the names of the keys.
fn named_columns(keys: &[SampleKey]) -> String {
    let named = |(place, title): (usize, String)| format!("key{place} AS \"{}\"", title.replace('"', "\"\""));
    titles(keys).enumerate().map(named).collect::<Vec<_>>().join(", ")
}

/// The other columns of answers by keys.
const ANSWERS: [&str; 9] =
    ["time", "value", "samples", "focused", "percent", "self", "total", "self_percent", "total_percent"];

/// The names of keys in an answer: a label that shares its name with another column is called `label:KEY`.
fn titles(keys: &[SampleKey]) -> impl Iterator<Item = String> {
    keys.iter().enumerate().map(|(place, key)| {
        let name = key.name();
        let is_taken = ANSWERS.contains(&name) || keys[..place].iter().any(|before| before.name() == name);
        if is_taken { format!("label:{name}") } else { name.to_owned() }
    })
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

/// SQL for the cost of a function over time: one row per step that has samples, with the function's shares in percent of all
/// samples. The sum over all samples is called `samples`, or `value` if it is something else. With a focus, `self` and
/// `total` are those of the function on the focused stacks. With keys, there is one row per step and their values.
#[must_use]
pub fn trend(function: &str, step_us: i64, choice: &SampleChoice, keys: &[SampleKey]) -> String {
    let (rows, focused, function) = (choice.rows_by(keys), choice.focused(), text(function));
    let with_comma = |columns: String| if columns.is_empty() { columns } else { format!(", {columns}") };
    let (columns, named) = (with_comma(columns_of(keys)), with_comma(named_columns(keys)));
    let sum =
        |is_counted: &str| format!("coalesce(sum(CASE WHEN {is_counted} AND {focused} THEN value END), 0)");
    let of_self = sum(&format!("leaf(stack) = {function}"));
    let of_total = sum(&format!("array_has(stack, {function})"));
    let [whole, whole_self, whole_total] =
        ["sum(value)", &of_self, &of_total].map(|sum| choice.addend.whole(sum));
    let name = if choice.addend.value_type().is_samples() { "samples" } else { "value" };
    format!(
        "SELECT step AS time{named}, {whole} AS {name}, {whole_self} AS self, {whole_total} AS total, \
         round(100.0 * {of_self} / sum(value), 2) AS self_percent, \
         round(100.0 * {of_total} / sum(value), 2) AS total_percent \
         FROM (SELECT date_bin(INTERVAL '{step_us} microseconds', time) AS step, stack_id{columns}, sum(value) AS value \
         FROM ({rows}) GROUP BY step, stack_id{columns}) LEFT JOIN stacks USING (stack_id) \
         GROUP BY step{columns} ORDER BY step{columns}"
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
