//! A folder that grows for days.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use borehole_testkit::Scratch;
use serde_json::Value;

use crate::client::Served;

/// Minutes of ten days, each of which leaves a file.
const TEN_DAYS: u64 = 10 * 24 * 60;

/// Leaves the files of some minutes, each in the folder of its day.
fn record(scratch: &Scratch, minutes: std::ops::Range<u64>) {
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_760_000_000);
    for minute in minutes {
        let day = scratch.path(&format!("day-{:02}", minute / 1440));
        fs::create_dir_all(&day).unwrap();
        let path = day.join(format!("{:04}.folded", minute % 1440));
        fs::write(&path, format!("main;minute_{minute} 5\nmain;rest 1\n")).unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(start + Duration::from_secs(60 * minute))
            .unwrap();
    }
}

/// Asks for the list until it is of a state.
fn listed(served: &Served, is_it: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..600 {
        let list = served.json("/api/v1/inputs");
        if is_it(&list) {
            return list;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the list has never been so");
}

fn count(list: &Value) -> usize {
    list["inputs"].as_array().unwrap().len()
}

#[test]
fn ten_days_of_files_are_listed_and_beyond_the_limit_the_newest_stay() {
    let scratch = Scratch::new();
    record(&scratch, 0..TEN_DAYS);
    let served = Served::paths([scratch.folder().to_owned()]);
    let list = served.json("/api/v1/inputs");
    assert_eq!((count(&list), &list["left_out"]), (14_400, &0.into()));
    let last = |minute: u64| {
        let id = listed(&served, |list| {
            list.to_string().contains(&format!("day-{:02}/{:04}", minute / 1440, minute % 1440))
        });
        let inputs = id["inputs"].as_array().unwrap();
        let named = format!("day-{:02}/{:04}.folded", minute / 1440, minute % 1440);
        let found = inputs.iter().find(|input| input["path"].as_str().unwrap().ends_with(&named)).unwrap();
        let top = served.json(&format!("/api/v1/inputs/{}/top?limit=1", found["id"].as_str().unwrap()));
        top["rows"][0][5].as_str().unwrap().to_owned()
    };
    assert_eq!(last(TEN_DAYS - 1), format!("minute_{}", TEN_DAYS - 1));

    // Four more days are more than are listed: the oldest files go, and the answer says how many.
    let all = TEN_DAYS + 4 * 1440;
    record(&scratch, TEN_DAYS..all);
    let list = listed(&served, |list| list["left_out"] == 160);
    assert_eq!(count(&list), 20_000);
    let paths: Vec<_> =
        list["inputs"].as_array().unwrap().iter().map(|input| input["path"].as_str().unwrap()).collect();
    let has = |path: &str| paths.iter().any(|listed| listed.ends_with(path));
    assert!(!has("day-00/0159.folded") && has("day-00/0160.folded"));
    assert_eq!(last(all - 1), format!("minute_{}", all - 1));
}
