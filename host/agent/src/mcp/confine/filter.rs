//! seccomp: blocks system calls, most of which Landlock does not cover.
//!
//! The list contains the known calls, so newer calls of the kernel are blocked as well.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

/// Conditions for some calls.
#[derive(Debug)]
pub(super) struct FilterRules {
    /// Whether TCP sockets are allowed.
    pub tcp: bool,
    /// Whether Landlock blocks its signals to other processes.
    pub signals_are_scoped: bool,
    /// Process id of the program.
    pub pid: u32,
}

/// The last call that this list covers.
const LAST: u32 = 462;

/// libc does not define it on every processor.
const FCHMODAT2: c_long = 452;
const STATMOUNT: c_long = 457;
const LISTMOUNT: c_long = 458;

/// Calls that are blocked with any arguments.
const REFUSED: &[c_long] = &[
    // Access to other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // Changing the process group, by which it is killed.
    libc::SYS_setsid,
    libc::SYS_setpgid,
    // Connections from others, and connections to local services.
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Queues, semaphores and memory of other programs have ids that can be guessed.
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    // These reveal changes and attributes of files that it cannot read.
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    // Calls that bypass the filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Modes, owners and times, which Landlock does not restrict.
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // Keys of the user.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Namespaces and mounts.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    STATMOUNT,
    LISTMOUNT,
    // The kernel and the machine.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
];

/// The same, for one processor only.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_inotify_init,
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_modify_ldt,
    libc::SYS_kexec_file_load,
];

/// `kexec_file_load`, which libc does not define everywhere.
#[cfg(target_arch = "aarch64")]
const REFUSED_HERE: &[c_long] = &[294];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REFUSED_HERE: &[c_long] = &[];

/// Calls with a process in their first argument. Calls for the process itself, which is 0, are allowed.
const ABOUT_OTHERS: &[c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// The same with the process in the second argument; the first one has its kind. This value means all processes of a user.
const ABOUT_OTHERS_SECOND: [(c_long, u64); 2] = [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

/// Calls that create a file: the indices of the arguments with the flags, if there are any, and with the mode.
const MAKE_FILES: &[(c_long, Option<u8>, u8)] = &[(libc::SYS_openat, Some(2), 3), (libc::SYS_mknodat, None, 2)];

/// The same, for one processor only.
#[cfg(target_arch = "x86_64")]
const MAKE_FILES_HERE: &[(c_long, Option<u8>, u8)] =
    &[(libc::SYS_open, Some(1), 2), (libc::SYS_creat, None, 1), (libc::SYS_mknod, None, 1)];

#[cfg(not(target_arch = "x86_64"))]
const MAKE_FILES_HERE: &[(c_long, Option<u8>, u8)] = &[];

/// Flags with which a call creates a file.
const MAKE_FLAGS: [libc::c_int; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];

/// Modes that give whoever executes a file the rights of its owner or group.
const SET_IDS: [libc::mode_t; 2] = [libc::S_ISUID, libc::S_ISGID];

/// Requests of `fcntl` and `ioctl` that set the receiver of a signal, and the signal.
const SIGNAL_FCNTLS: [libc::c_int; 3] = [libc::F_SETOWN, 10, 15];
const SIGNAL_IOCTLS: [u64; 2] = [0x8901, 0x8902];

/// Calls that send a signal.
const SIGNALS: &[c_long] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// Flags of `clone` that create namespaces, and the one that makes the new process a child of kiso.
const CLONE_FLAGS: [libc::c_int; 8] = [
    libc::CLONE_PARENT,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Requests of `ioctl`: keys typed into a terminal, and attributes of files.
const REQUESTS: [u64; 4] = [0x5412, 0x541c, 0x4008_6602, 0x401c_5820];

/// Kinds of sockets, without flags.
const KINDS: std::ops::Range<u64> = 0..16;
const KIND_BITS: u64 = 0xf;

/// Blocks the calls for this process, its program and child processes.
pub(super) fn enforce(rules: &FilterRules) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("seccomp cannot confine it: {error}");
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(refused(rules), SeccompAction::Allow, refuse, arch()?);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(|error| failed(&error))?;
    apply_filter(&unknown()).map_err(|error| failed(&error))?;
    apply_filter(&program).map_err(|error| failed(&error))
}

/// Checks that this kernel supports the filter. The error names what is missing.
pub(super) fn support() -> Result<(), String> {
    arch()?;
    let available = std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    match available.split_whitespace().any(|action| action == "errno") {
        true => Ok(()),
        false => Err("the kernel has no filters of seccomp".to_owned()),
    }
}

fn arch() -> Result<TargetArch, String> {
    TargetArch::try_from(ARCH).map_err(|_| format!("there is no list of system calls for {ARCH}"))
}

/// Answers calls that are newer than the list like a kernel without them, so that programs use alternatives. The same applies to
/// `clone3` and `openat2`, whose arguments cannot be inspected. Numbers of other calling conventions, such as x32, are larger
/// than all of these.
fn unknown() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const IS_GREATER: u16 = 0x25;
    const IS_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let [clone3, openat2] = [libc::SYS_clone3, libc::SYS_openat2].map(|call| u32::try_from(call).unwrap_or(u32::MAX));
    let no_such_call = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD, 0, 0, 0),
        step(IS_GREATER, 3, 0, LAST),
        step(IS_EQUAL, 2, 0, clone3),
        step(IS_EQUAL, 1, 0, openat2),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, 0, no_such_call),
    ]
}

/// Conditions that must all be true: an argument, and the value to compare it with.
type Case<'a> = &'a [(u8, SeccompCmpOp, u64)];

#[expect(clippy::expect_used, reason = "it is one of six; it has conditions")]
fn refused(rules: &FilterRules) -> BTreeMap<i64, Vec<SeccompRule>> {
    let mut refused = BTreeMap::new();
    let mut always = |calls: &[c_long]| refused.extend(calls.iter().map(|call| (*call, Vec::new())));
    always(REFUSED);
    always(REFUSED_HERE);
    if !rules.signals_are_scoped {
        always(SIGNALS);
    }
    if !rules.tcp {
        always(&[libc::SYS_socket, libc::SYS_connect]);
    }
    let mut case = |call: c_long, case: Case<'_>| {
        let condition = |(argument, op, value): &(u8, SeccompCmpOp, u64)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, op.clone(), *value).expect("it is one of six")
        };
        let rule = SeccompRule::new(case.iter().map(condition).collect()).expect("it has conditions");
        refused.entry(call).or_insert_with(Vec::new).push(rule);
    };
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let stream = u64::from(libc::SOCK_STREAM.unsigned_abs());
    for kind in KINDS.filter(|kind| *kind != stream) {
        case(libc::SYS_socketpair, &[(1, MaskedEq(KIND_BITS), kind)]);
        if rules.tcp {
            case(libc::SYS_socket, &[(1, MaskedEq(KIND_BITS), kind)]);
        }
    }
    let number = |value: libc::c_int| u64::from(value.unsigned_abs());
    // A socket pair cannot be connected elsewhere, and many programs use one to wake themselves.
    case(libc::SYS_socketpair, &[(0, Ne, number(libc::AF_UNIX))]);
    if rules.tcp {
        case(libc::SYS_socket, &[(0, Ne, number(libc::AF_INET)), (0, Ne, number(libc::AF_INET6))]);
        case(libc::SYS_socket, &[(2, Ne, 0), (2, Ne, number(libc::IPPROTO_TCP))]);
    }
    // This connects without a check by Landlock.
    let fast = number(libc::MSG_FASTOPEN);
    for (call, argument) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        case(call, &[(argument, MaskedEq(fast), fast)]);
    }
    for flag in CLONE_FLAGS.map(number) {
        case(libc::SYS_clone, &[(0, MaskedEq(flag), flag)]);
    }
    for request in REQUESTS {
        case(libc::SYS_ioctl, &[(1, Eq, request)]);
    }
    for call in ABOUT_OTHERS {
        case(*call, &[(0, Ne, 0)]);
    }
    for (call, user) in ABOUT_OTHERS_SECOND {
        case(call, &[(1, Ne, 0)]);
        case(call, &[(0, Eq, user)]);
    }
    for (call, flags, mode) in MAKE_FILES.iter().chain(MAKE_FILES_HERE) {
        for id in SET_IDS.map(u64::from) {
            let set = (*mode, MaskedEq(id), id);
            match flags {
                // Without these flags, the mode argument is an arbitrary register value.
                Some(flags) => {
                    for make in MAKE_FLAGS.map(number) {
                        case(*call, &[(*flags, MaskedEq(make), make), set.clone()]);
                    }
                }
                None => case(*call, &[set]),
            }
        }
    }
    // It must end with kiso, and nobody else may trace it.
    for option in [libc::PR_SET_PDEATHSIG, libc::PR_SET_PTRACER] {
        case(libc::SYS_prctl, &[(0, Eq, number(option))]);
    }
    if !rules.signals_are_scoped {
        for request in SIGNAL_FCNTLS.map(number) {
            case(libc::SYS_fcntl, &[(1, Eq, request)]);
        }
        for request in SIGNAL_IOCTLS {
            case(libc::SYS_ioctl, &[(1, Eq, request)]);
        }
        // Signals to itself are allowed, as in abort().
        case(libc::SYS_tgkill, &[(0, Ne, u64::from(rules.pid))]);
    }
    refused
}
