//! What an answer means for a batch: one table, no state.

use tonic::Code;

/// What becomes of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Acknowledged.
    Delivered,
    /// Try again, on any stream, after a pause.
    Retry,
    /// As [`Self::Retry`], but the batch itself may be at fault: one that fails so again and again while others
    /// pass is halved, down to the event, which is rejected.
    Suspect,
    /// As [`Self::Retry`], but a person has to act before it helps: hold the data and say so loudly.
    Hold,
    /// Too large for the receiver: halve it. A single event that is too large is rejected.
    Split,
    /// A sink refused something in it for good. Its good events may be delivered, so sending it again would
    /// duplicate them.
    Rejected,
}

/// The verdict on a gRPC status (grpc.io, "Status codes"; what Vector's source means by them).
///
/// Vector's own sink gives up on nine of these. A wrong certificate or a missing permission is no reason to
/// lose data, so here only `DATA_LOSS` ends a batch by itself.
pub fn verdict(code: Code) -> Verdict {
    match code {
        Code::Ok => Verdict::Delivered,
        Code::DataLoss => Verdict::Rejected,
        Code::OutOfRange | Code::ResourceExhausted => Verdict::Split,
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented | Code::NotFound => {
            Verdict::Hold
        }
        Code::Cancelled | Code::Internal | Code::Unknown => Verdict::Suspect,
        Code::InvalidArgument
        | Code::DeadlineExceeded
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::Unavailable => Verdict::Retry,
    }
}

/// A status as gRPC writes it, such as `DATA_LOSS`.
pub fn status_name(code: Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_says_the_same() {
        let document = include_str!("../../docs/delivery.md");
        for code in (0..17).map(Code::from) {
            let row = format!("| {} | {:?} |", status_name(code), verdict(code));
            assert!(document.contains(&row), "docs/delivery.md lacks the row {row}");
        }
    }

    #[test]
    fn only_an_acknowledgement_delivers_and_only_data_loss_rejects() {
        let with =
            |wanted| (0..17).map(Code::from).filter(|code| verdict(*code) == wanted).collect::<Vec<_>>();
        assert_eq!(with(Verdict::Delivered), [Code::Ok]);
        assert_eq!(with(Verdict::Rejected), [Code::DataLoss]);
        assert_eq!(with(Verdict::Split), [Code::ResourceExhausted, Code::OutOfRange]);
        assert_eq!(
            with(Verdict::Hold),
            [Code::NotFound, Code::PermissionDenied, Code::Unimplemented, Code::Unauthenticated]
        );
        assert_eq!(with(Verdict::Suspect), [Code::Cancelled, Code::Unknown, Code::Internal]);
        assert_eq!(with(Verdict::Retry).len(), 6);
    }
}
