//! Questions with a name, as SQL. What comes from the user is a literal of SQL in them, whatever is in it.

/// Which samples a question is about.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Those of one service.
    pub service: Option<String>,
    /// Those of one machine.
    pub host: Option<String>,
    /// Those from here on, in microseconds since 1970 (UTC).
    pub since_us: Option<i64>,
    /// Those before here.
    pub until_us: Option<i64>,
    /// Those that have all these labels.
    pub labels: Vec<(String, String)>,
    /// Those of stacks in which some function matches this regular expression.
    pub focus: Option<String>,
}

impl Choice {
    /// What is true of the rows of `samples`, as a condition of SQL.
    fn condition(&self) -> String {
        let mut all = vec!["true".to_owned()];
        let mut equal = |column: &str, value: &Option<String>| {
            all.extend(value.iter().map(|value| format!("{column} = {}", text(value))));
        };
        equal("service", &self.service);
        equal("host", &self.host);
        all.extend(self.since_us.map(|since| format!("time >= {}", time(since))));
        all.extend(self.until_us.map(|until| format!("time < {}", time(until))));
        let label =
            |(key, value): &(String, String)| format!("label(labels, {}) = {}", text(key), text(value));
        all.extend(self.labels.iter().map(label));
        all.join(" AND ")
    }

    fn focused(&self) -> String {
        let focus = self.focus.as_ref();
        focus.map_or_else(|| "true".to_owned(), |focus| format!("contains_function(stack, {})", text(focus)))
    }

    /// The stacks and how many samples each has: what a flame graph shows.
    #[must_use]
    pub fn stacks(&self) -> String {
        let (condition, focused) = (self.condition(), self.focused());
        format!(
            "SELECT stack, frames, value FROM \
             (SELECT stack_id, sum(value) AS value FROM samples WHERE {condition} GROUP BY stack_id) \
             LEFT JOIN stacks USING (stack_id) WHERE {focused}"
        )
    }

    /// Functions with how many samples were in them and in what they called.
    fn functions(&self) -> String {
        let (condition, focused) = (self.condition(), self.focused());
        format!(
            "SELECT function, sum(CASE WHEN function = leaf THEN value ELSE 0 END) AS self, sum(value) AS total FROM \
             (SELECT unnest(frames_of(stack)) AS function, leaf(stack) AS leaf, value FROM \
             (SELECT stack_id, sum(value) AS value FROM samples WHERE {condition} GROUP BY stack_id) \
             JOIN stacks USING (stack_id) WHERE {focused}) GROUP BY function"
        )
    }
}

/// The functions that cost most: `function`, `self`, `total`, and both in per cent of all samples.
#[must_use]
pub fn top(choice: &Choice, limit: Option<usize>) -> String {
    let (functions, condition) = (choice.functions(), choice.condition());
    let limit = limit.map_or_else(String::new, |limit| format!(" LIMIT {limit}"));
    format!(
        "WITH functions AS ({functions}), whole AS (SELECT sum(value) AS value FROM samples WHERE {condition}) \
         SELECT function, self, total, round(100.0 * self / whole.value, 2) AS self_percent, \
         round(100.0 * total / whole.value, 2) AS total_percent FROM functions CROSS JOIN whole \
         ORDER BY self DESC, total DESC, function{limit}"
    )
}

/// How much the share of each function has changed, in percentage points; the largest change first.
#[must_use]
pub fn diff(before: &Choice, after: &Choice, limit: Option<usize>) -> String {
    let side = |choice: &Choice| {
        let (functions, condition) = (choice.functions(), choice.condition());
        format!(
            "(SELECT function, 100.0 * self / whole.value AS self, 100.0 * total / whole.value AS total FROM \
             ({functions}) CROSS JOIN (SELECT sum(value) AS value FROM samples WHERE {condition}) AS whole)"
        )
    };
    let (before, after) = (side(before), side(after));
    let limit = limit.map_or_else(String::new, |limit| format!(" LIMIT {limit}"));
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

/// What a function costs over time: a row a step of time that has samples, with the shares of the function in per cent of all of
/// them. Where stacks are focused on, `self` and `total` are those of the function on them.
#[must_use]
pub fn trend(function: &str, step_us: i64, choice: &Choice) -> String {
    let (condition, focused, function) = (choice.condition(), choice.focused(), text(function));
    let sum =
        |is_counted: &str| format!("coalesce(sum(CASE WHEN {is_counted} AND {focused} THEN value END), 0)");
    let of_self = sum(&format!("leaf(stack) = {function}"));
    let of_total = sum(&format!("array_has(stack, {function})"));
    format!(
        "SELECT step AS time, sum(value) AS samples, {of_self} AS self, {of_total} AS total, \
         round(100.0 * {of_self} / sum(value), 2) AS self_percent, \
         round(100.0 * {of_total} / sum(value), 2) AS total_percent \
         FROM (SELECT date_bin(INTERVAL '{step_us} microseconds', time) AS step, stack_id, sum(value) AS value \
         FROM samples WHERE {condition} GROUP BY 1, 2) LEFT JOIN stacks USING (stack_id) GROUP BY step ORDER BY step"
    )
}

/// A stack that has the function on it; no row where no stack has.
#[must_use]
pub fn stack_with(function: &str) -> String {
    format!("SELECT stack_id FROM stacks WHERE array_has(stack, {}) LIMIT 1", text(function))
}

/// A text as a literal of SQL.
fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A time as a literal of SQL.
fn time(time_us: i64) -> String {
    format!("arrow_cast({time_us}, 'Timestamp(Microsecond, Some(\"{}\"))')", crate::tables::UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_say_stays_a_literal() {
        let choice = Choice { service: Some("x' OR '1'='1".to_owned()), ..Choice::default() };
        assert!(choice.stacks().contains("service = 'x'' OR ''1''=''1'"));
    }
}
