//! A process under a seccomp profile that forbids one thing (seccomp(2)).
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{sock_filter, sock_fprog};

/// Has the child refused, with EPERM, any setsockopt of `SO_ATTACH_REUSEPORT_CBPF`.
pub fn forbid_steering(command: &mut Command) {
    // Offsets in struct seccomp_data (include/uapi/linux/seccomp.h): 0 = the call's number, 32 = its third argument.
    let instruction = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let (load, equal, result) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    let filter = [
        instruction(load, 0, 0, 0),
        instruction(equal, 0, 3, libc::SYS_setsockopt as u32),
        instruction(load, 0, 0, 32),
        instruction(equal, 0, 1, libc::SO_ATTACH_REUSEPORT_CBPF as u32),
        instruction(result, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        instruction(result, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let install = move || {
        let program = sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: with these arguments prctl only marks this process.
        let marked = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        // SAFETY: prctl copies the program, which is alive for the call.
        let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
        if marked == 0 && set == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec the closure only makes two system calls; it allocates and locks nothing.
    unsafe { command.pre_exec(install) };
}
