use super::*;
use crate::datagram::Timestamp;

fn batch(number: u64, size: usize) -> Batch {
    let mut body = vec![number as u8; size];
    body[..8].copy_from_slice(&number.to_le_bytes());
    let received = Timestamp { seconds: number as i64 - 3, nanos: 7 };
    Batch {
        body: body.into(),
        events: number + 1,
        weight: size,
        received,
        closed: Closed::Bytes,
        ticket: None,
        trouble: None,
        lane: None,
    }
}

fn open(directory: &Path) -> Spool {
    Spool::open(directory, 1 << 30).unwrap()
}

/// The numbers of everything that can still be taken, each checked byte for byte.
fn numbers(spool: &Spool) -> Vec<u64> {
    std::iter::from_fn(|| spool.take())
        .map(|taken| {
            let number = taken.events - 1;
            let expected = batch(number, taken.body.len());
            assert_eq!((&taken.body, taken.received), (&expected.body, expected.received));
            number
        })
        .collect()
}

/// A file of three records of 50 bytes, and what is in it.
fn three_records() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let spool = open(directory.path());
    (0..3).for_each(|number| spool.append(&batch(number, 50)).unwrap());
    drop(spool);
    let file = directory.path().join(format!("{FIRST:020}.spool"));
    let whole = fs::read(&file).unwrap();
    (directory, file, whole)
}

#[test]
fn batches_come_back_in_order_and_files_go_when_all_is_settled() {
    let directory = tempfile::tempdir().unwrap();
    let spool = open(directory.path());
    for number in 0..40 {
        spool.append(&batch(number, 1 << 20)).unwrap();
    }
    let events = (1..=40).sum::<u64>();
    assert_eq!(spool.level().events, events);
    let files = || fs::read_dir(directory.path()).unwrap().count() - 1; // beside the lock
    assert_eq!(files(), 3);
    let taken: Vec<_> = std::iter::from_fn(|| spool.take()).collect();
    assert_eq!((taken.len(), spool.level().events, files()), (40, 0, 3));
    for batch in &taken[..20] {
        spool.settle(batch.ticket.unwrap(), batch.events);
    }
    assert_eq!(files(), 2, "the first file is settled");
    spool.unload();
    assert_eq!(spool.level().events, (17..=40).sum::<u64>() - (17..=20).sum::<u64>());
    drop(spool);
    let again = open(directory.path());
    assert_eq!(numbers(&again), (16..40).collect::<Vec<_>>(), "whole files are sent again");
}

#[test]
fn the_file_that_is_written_to_goes_too() {
    let directory = tempfile::tempdir().unwrap();
    let spool = open(directory.path());
    for number in 0..3 {
        spool.append(&batch(number, 100)).unwrap();
        let taken = spool.take().unwrap();
        spool.settle(taken.ticket.unwrap(), taken.events);
        assert_eq!(spool.level(), Level::default());
    }
    // In halves, as after a split.
    spool.append(&batch(9, 100)).unwrap();
    let taken = spool.take().unwrap();
    spool.settle(taken.ticket.unwrap(), 4);
    assert!(spool.level().bytes > 0);
    spool.settle(taken.ticket.unwrap(), 6);
    assert_eq!(spool.level(), Level::default());
}

#[test]
fn the_limit_holds_and_room_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let spool = Spool::open(directory.path(), 3_000).unwrap();
    spool.append(&batch(0, 1_000)).unwrap();
    spool.append(&batch(1, 1_000)).unwrap();
    assert!(matches!(spool.append(&batch(2, 1_000)), Err(Refused::Full)));
    for _ in 0..2 {
        let taken = spool.take().unwrap();
        spool.settle(taken.ticket.unwrap(), taken.events);
    }
    spool.append(&batch(2, 1_000)).unwrap();
    assert_eq!(numbers(&spool), [2]);
}

#[test]
fn a_second_process_is_refused_and_a_file_in_the_way_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(directory.path());
    assert!(matches!(Spool::open(directory.path(), 1), Err(OpenError::Taken(_))));
    drop(first);
    open(directory.path());
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = Spool::open(&file, 1).unwrap_err().to_string();
    assert!(error.contains("data_dir"), "{error}");
}

#[test]
fn a_torn_end_loses_no_record_before_it() {
    let (directory, file, whole) = three_records();
    for length in 0..whole.len() {
        fs::write(&file, &whole[..length]).unwrap();
        let spool = open(directory.path());
        let records = length / (HEADER + 50);
        assert_eq!(numbers(&spool), (0..records as u64).collect::<Vec<_>>(), "{length}");
        assert_eq!(spool.damaged(), 0, "a torn end was never counted as there");
    }
}

#[test]
fn a_damaged_byte_anywhere_costs_its_record_only() {
    let (directory, file, whole) = three_records();
    for at in 0..whole.len() {
        for flip in [0x01, 0x80, 0xFF] {
            let mut damaged = whole.clone();
            damaged[at] ^= flip;
            fs::write(&file, &damaged).unwrap();
            let spool = open(directory.path());
            let recovered = spool.recovered();
            let hit = (at / (HEADER + 50)) as u64;
            let left: Vec<_> = (0..3).filter(|number| *number != hit).collect();
            let found = numbers(&spool);
            assert_eq!(found, left, "byte {at}");
            let events: u64 = found.iter().map(|number| number + 1).sum();
            assert_eq!(recovered, events + spool.damaged(), "the books of byte {at}");
        }
    }
}

#[test]
fn a_directory_that_is_removed_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spool");
    let spool = open(&path);
    fs::remove_dir_all(&path).unwrap();
    spool.append(&batch(1, 100)).unwrap();
    assert_eq!(numbers(&spool), [1]);
    assert!(path.exists());
}
