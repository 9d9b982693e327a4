//! Samples running processes: attach, launch, schedule, many at once.
