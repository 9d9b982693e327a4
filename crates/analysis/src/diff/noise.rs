//! Tests of whether a difference is more than noise.

/// The estimate of one quantity on one side: an amount divided by a divisor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    /// The sampled amount.
    pub(crate) amount: f64,
    /// The divisor.
    pub(crate) divisor: f64,
    /// The amount that one counted sample (or other unit) stands for.
    pub(crate) weight: f64,
    /// The number of counted units per observation.
    pub(crate) observation: f64,
    /// The sum of squared differences, in samples, of stretches from what each would have if all were alike.
    pub(crate) squares: f64,
    /// The number of stretches. Nothing can be said with one; a side without samples has none.
    pub(crate) stretches: usize,
}

impl Estimate {
    /// The quotient of amount and divisor.
    pub(crate) fn value(&self) -> f64 {
        self.amount / self.divisor
    }

    /// The variance of the quotient, and its degrees of freedom. Never less than that of independent samples at the
    /// common `rate` of both sides.
    // There are never more stretches than a double can count.
    #[expect(clippy::cast_precision_loss)]
    fn variance(&self, rate: f64, is_share: bool) -> (f64, f64) {
        let others = if is_share { (1.0 - rate).max(0.0) } else { 1.0 };
        let independent = rate * self.weight * self.observation * others / self.divisor;
        if self.stretches < 2 {
            return (independent, INFINITE);
        }
        let free = (self.stretches - 1) as f64;
        let per_sample = self.weight / self.divisor;
        let seen = self.squares * (self.stretches as f64 / free) * per_sample * per_sample;
        if seen > independent { (seen, free) } else { (independent, INFINITE) }
    }
}

/// The degrees of freedom of a known variance.
const INFINITE: f64 = 1e9;

/// The result of comparing two estimates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoiseTest {
    /// The chance of a difference of at least this size without a change.
    pub(crate) chance: f64,
    /// The margin of error of the difference, either way, at the given confidence.
    pub(crate) margin: f64,
}

/// Compares two quotients by Welch's test. `z` is the confidence as a number of standard deviations.
pub(crate) fn compare(before: &Estimate, after: &Estimate, is_share: bool, z: f64) -> NoiseTest {
    let Some(Deviation { size, free }) = Deviation::of(before, after, is_share) else {
        return NoiseTest { chance: 1.0, margin: 0.0 };
    };
    // The quantile of Student's distribution, by first-order expansion from that of the normal distribution.
    let quantile = z + (z * z * z + z) / (4.0 * free);
    let t = (after.value() - before.value()) / size;
    NoiseTest { chance: two_sided(t, free), margin: quantile * size }
}

/// The chance only; 1 if it is too large to matter at the given confidence, as it usually is.
pub(crate) fn chance(before: &Estimate, after: &Estimate, is_share: bool, z: f64) -> f64 {
    let difference = after.value() - before.value();
    match Deviation::of(before, after, is_share) {
        Some(Deviation { size, free }) if difference.abs() >= z * size => two_sided(difference / size, free),
        _ => 1.0,
    }
}

/// The standard deviation of a difference, and its degrees of freedom.
struct Deviation {
    size: f64,
    free: f64,
}

impl Deviation {
    /// `None` if nothing varies, or one side is unknown.
    fn of(before: &Estimate, after: &Estimate, is_share: bool) -> Option<Self> {
        if before.stretches == 0 || after.stretches == 0 {
            return None;
        }
        let rate = (before.amount + after.amount) / (before.divisor + after.divisor);
        let (first, first_free) = before.variance(rate, is_share);
        let (second, second_free) = after.variance(rate, is_share);
        let variance = first + second;
        if variance <= 0.0 || variance.is_nan() {
            return None;
        }
        let free = variance * variance / (first * first / first_free + second * second / second_free);
        Some(Self { size: variance.sqrt(), free })
    }
}

/// The chance that a value from Student's distribution with `free` degrees of freedom is at least as far from 0 as `t`.
///
/// Source: D. L. Wallace, "Bounds on normal approximations to Student's and the chi-square distributions", 1959: a
/// normal deviate with the same chance.
fn two_sided(t: f64, free: f64) -> f64 {
    let squared = free * (t * t / free).ln_1p();
    let z = (8.0 * free + 1.0) / (8.0 * free + 3.0) * squared.sqrt();
    beyond(z)
}

/// The chance that a value from the normal distribution is at least as far from 0 as `z`.
pub(crate) fn beyond(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    if x < 2.5 { 1.0 - near(x) } else { far(x) }
}

/// The error function, by its series.
fn near(x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term.abs() > 1e-17 * sum.abs() && n < 200.0 {
        n += 1.0;
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// The complementary error function, by its continued fraction.
fn far(x: f64) -> f64 {
    let mut fraction = x;
    for n in (1..60).rev() {
        fraction = x + f64::from(n) / 2.0 / fraction;
    }
    (-x * x).exp() / fraction / std::f64::consts::PI.sqrt()
}

/// The number of standard deviations beyond which a probability of one minus `confidence` lies, on both sides together.
pub(crate) fn deviations(confidence: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if beyond(middle) > 1.0 - confidence { low = middle } else { high = middle }
    }
    low
}

/// The largest chance that counts as a change, chosen so that the expected part of noise among changes is at most
/// `level`.
///
/// Source: Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", 1995.
pub(crate) fn threshold(mut chances: Vec<f64>, level: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "there are not more chances than a double can count")]
    let place = |number: usize| number as f64;
    let all = place(chances.len());
    // Larger chances are never accepted, whatever their rank, and do not affect the others.
    chances.retain(|&chance| chance <= level);
    chances.sort_unstable_by(f64::total_cmp);
    let ranked = chances.iter().enumerate().rev();
    let mut taken = ranked.filter(|(rank, chance)| **chance <= place(*rank + 1) / all * level);
    taken.next().map_or(-1.0, |(_, &chance)| chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by Python 3.11: `math.erfc(z / math.sqrt(2))`.
    #[test]
    fn tails_of_the_normal_distribution_are_right_far_out() {
        for (z, chance) in [
            (0.0, 1.0),
            (1.0, 0.317_310_507_862_914_15),
            (1.959_963_984_540_054, 0.05),
            (3.0, 0.002_699_796_063_260_189),
            (6.0, 1.973_175_290_075_402_4e-9),
            (20.0, 5.507_248_237_212_66e-89),
        ] {
            assert!((beyond(z) / chance - 1.0).abs() < 1e-9, "{z}: {}", beyond(z));
        }
        assert!((deviations(0.95) - 1.959_963_984_540_054).abs() < 1e-9);
    }

    /// Integrals of the density, by the midpoint rule with two million steps.
    #[test]
    fn tails_of_student_are_near() {
        for (t, free, chance) in
            [(2.0, 15.0, 0.063945007), (4.0, 15.0, 0.001159317), (3.0, 30.0, 0.005389964)]
        {
            let found = two_sided(t, free);
            assert!((found / chance - 1.0).abs() < 0.01, "{t} {free}: {found}");
        }
    }

    /// Independent samples, without more than chance between stretches.
    fn counted(amount: f64) -> Estimate {
        Estimate { amount, divisor: 1000.0, weight: 1.0, observation: 1.0, squares: 0.0, stretches: 1 }
    }

    #[test]
    fn a_chance_is_computed_from_the_given_number_of_deviations_on() {
        // 60 of 1000 more: 260 samples have a deviation of 16.1.
        let (before, after) = (counted(100.0), counted(160.0));
        let deviations = 60.0 / 260.0_f64.sqrt();
        let full = compare(&before, &after, false, 2.0);
        assert!((full.chance / beyond(deviations) - 1.0).abs() < 1e-6, "{full:?}");
        assert!((full.margin - 2.0 * 260.0_f64.sqrt() / 1000.0).abs() < 1e-9, "{full:?}");
        assert_eq!(chance(&before, &after, false, deviations + 0.001), 1.0);
        assert_eq!(chance(&before, &after, false, deviations - 0.001), full.chance);
        assert_eq!(chance(&after, &before, false, deviations - 0.001), full.chance);
    }

    #[test]
    fn a_share_varies_less_than_an_amount_and_nothing_varies_in_one_side_alone() {
        let (before, after) = (counted(900.0), counted(960.0));
        // All but 7 % are of this kind: only the others can be more or fewer.
        let margin = |is_share| compare(&before, &after, is_share, 1.0).margin;
        assert!((margin(true) / margin(false) - 0.07_f64.sqrt()).abs() < 1e-9);
        let none = compare(&Estimate { stretches: 0, ..before }, &after, false, 1.0);
        assert_eq!((none.chance, none.margin), (1.0, 0.0));
    }

    #[test]
    fn stretches_that_differ_more_than_by_chance_widen_the_margin() {
        let wide = |squares, stretches| Estimate { squares, stretches, ..counted(100.0) };
        let margin = |squares, stretches| {
            compare(&wide(squares, stretches), &wide(squares, stretches), false, 1.0).margin
        };
        // Two sides of the same: the variance of one is half of it.
        let independent = (2.0 * 100.0_f64).sqrt() / 1000.0;
        assert!((margin(0.0, 1) - independent).abs() < 1e-9);
        assert!((margin(1e6, 1) - independent).abs() < 1e-9, "one stretch tells nothing");
        // 300 * 4 / 3 = 400 samples squared a side, with 2 * 3 degrees of freedom.
        let seen = 800.0_f64.sqrt() / 1000.0;
        assert!((margin(300.0, 4) - seen * (1.0 + 2.0 / 24.0)).abs() < 1e-9, "{}", margin(300.0, 4));
        assert!((margin(74.0, 4) - independent).abs() < 1e-9, "no more than chance");
    }

    #[test]
    fn the_threshold_grows_with_what_is_found() {
        assert_eq!(threshold(vec![0.04, 0.5, 0.6, 0.7], 0.05), -1.0);
        assert_eq!(threshold(vec![0.01, 0.02, 0.03, 0.04], 0.05), 0.04);
        assert_eq!(threshold(vec![], 0.05), -1.0);
        assert_eq!(threshold(vec![0.001, 0.9, 0.8, 0.02], 0.05), 0.02);
    }
}
