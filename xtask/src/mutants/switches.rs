/// The switches of the changes that are compiled in: at most one is on.
#[doc(hidden)]
#[allow(warnings, clippy::all)]
mod __switches {
    use std::io::Write as _;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::{env, fs};

    /// The number of the switch that is on, and the file that gets the number of each switch that is asked for.
    static GIVEN: LazyLock<(Option<usize>, Option<fs::File>)> = LazyLock::new(|| {
        let number = env::var("BOREHOLE_SWITCH").ok().and_then(|number| number.parse().ok());
        let open = |path| fs::OpenOptions::new().create(true).append(true).open(path).ok();
        (number, env::var_os("BOREHOLE_SWITCHES_REACHED").and_then(open))
    });

    /// One more than the highest number.
    const COUNT: usize = 0;

    static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

    pub(crate) fn on(number: usize) -> bool {
        let (on, reached) = &*GIVEN;
        if let Some(mut file) = reached.as_ref()
            && !REACHED[number].swap(true, Ordering::Relaxed)
        {
            let _ = file.write_all(format!("{number}\n").as_bytes());
        }
        *on == Some(number)
    }
}
