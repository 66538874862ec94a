//! The classic BPF program that picks a socket of the group. Attaching one needs no privilege.

use libc::sock_filter;

use crate::config::Steering;

/// Where a program reads facts of the packet instead of its bytes (include/uapi/linux/filter.h). Only such
/// loads are safe here: one past the end of a short datagram would end the program with socket 0.
const FACTS: i32 = libc::SKF_AD_OFF;

/// The program for a group of `sockets`: load a word, modulo their number, return it as the index. An index
/// that does not exist makes the kernel fall back to its hash of the flow. None where that hash is wanted.
pub fn program(steering: Steering, sockets: usize) -> Option<[sock_filter; 3]> {
    let fact = match steering {
        Steering::Spread => libc::SKF_AD_RANDOM,
        Steering::Cpu => libc::SKF_AD_CPU,
        Steering::Flow => return None,
    };
    if sockets < 2 {
        return None;
    }
    let instruction = |code: u32, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    Some([
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, (FACTS + fact) as u32),
        instruction(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, sockets as u32),
        instruction(libc::BPF_RET | libc::BPF_A, 0),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_socket_and_the_kernels_own_hash_need_no_program() {
        assert!(program(Steering::Spread, 1).is_none());
        assert!(program(Steering::Flow, 8).is_none());
        assert_eq!(program(Steering::Spread, 8).unwrap()[1].k, 8);
    }
}
