// A process shuts itself in: a server domain, and lrpcd and lrpc-netd themselves. What it has is left to it (descriptors,
// memory, bindings); what it could still get hold of is little. docs/SANDBOX.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lrpc/shim/result.h"

namespace lrpc::sandbox {

/// System calls that go together. Computing is always there: memory that is never executable, time, randomness, futexes,
/// the process's own signals, its end.
enum class Group : std::uint8_t {
  descriptors,     ///< To use what is open: read, write, poll, epoll; eventfd, pipe; to look at a file's metadata.
  messages,        ///< To send, receive and accept on sockets that are there, with descriptors; socket pairs: bells.
                   ///< Never of datagrams: such a socket reaches every datagram socket of the system by its path.
  connect,         ///< New Unix sockets of connections, to connect them: the nameserver's comes back.
  shared_memory,   ///< memfd_create, sealing: regions.
  peers,           ///< pidfd_open: to learn of a peer's end.
  threads,         ///< New threads (never processes), their names and scheduling.
  trap_listeners,  ///< To serve sealed client domains (docs/TRAP.md).
  read_files,      ///< To open files for reading. Where Landlock holds, those of `read_only` and `read_write`.
  write_files,     ///< To open, make, rename and remove files. Where Landlock holds, those of `read_write`. Never
                   ///< their modes, owners and times: Landlock does not tell files apart there.
  remove_files,    ///< To remove files. Where Landlock holds, those in `removable_in` and `read_write`.
  rings,           ///< io_uring rings that are there; never a new one. Their own restrictions hold, nothing else: one
                   ///< that may send can connect a TCP socket to any port (MSG_FASTOPEN).
  datagrams,       ///< UDP sockets.
  unix_datagrams,  ///< Unix datagram sockets: syslog(3), sd_notify(3). To any path.
  streams,         ///< TCP sockets, and no other kind of streams. Where Landlock has TCP, to the ports of `tcp_connect`
                   ///< and `tcp_bind`; one that listens without having been bound gets some port of the kernel's.
};

/// What libserver and libclient need for everything they do: export, register anew, import, bind, call and be called
/// through every gate, callbacks, sealed clients.
std::vector<Group> server_domain();

struct Options {
  std::vector<Group> groups = server_domain();
  std::vector<std::string> allow{};  ///< Further system calls by name, whatever their arguments.
  /// Files and directories with all that is below. One that is not there stays out of reach, also when it comes later.
  /// A file is known by what it is, not by its name: what is moved into its place is out of reach; name the directory.
  std::vector<std::string> read_only{};
  std::vector<std::string> read_write{};
  std::vector<std::string> removable_in{};  ///< Directories: the files in them may be removed, nothing else.
  std::vector<std::uint16_t> tcp_connect{};
  std::vector<std::uint16_t> tcp_bind{};
  /// Landlock. It holds for the calling thread and those that it starts later, so it needs a process with one thread.
  bool landlock = true;
  /// A set of CAP_* bits: of the capabilities that the process has, only these stay, for good. Unset: all stay.
  std::optional<std::uint64_t> keep_capabilities{};
  /// A refused system call ends the process (SIGSYS) instead of failing with EPERM.
  bool kill = false;
  /// Something that cannot be had is an error, instead of a line in the report. What only newer kernels' Landlock can is
  /// demanded where it is all that forbids it: TCP's ports (Linux 6.7) with Group::streams. Without that the filter
  /// allows no TCP at all, nor ever signals to others (6.12).
  bool required = false;
};

/// One thing that was to be achieved.
struct Part {
  bool holds = false;
  std::string text;  ///< What holds, or why it does not.
};

struct Report {
  Part privileges;    ///< no_new_privs: no program has more rights by being executed. Capabilities that had to go.
  Part memory;        ///< Not dumpable: processes of the same user cannot trace it, or read it through /proc.
  Part files;         ///< Landlock.
  Part tcp;           ///< Landlock, ABI 4.
  Part others;        ///< Landlock, ABI 6: no signals to, no abstract sockets of, processes outside.
  Part system_calls;  ///< The seccomp filter, on every thread.

  /// All that Options::required asks for, with Landlock and without Group::streams.
  [[nodiscard]] bool complete() const noexcept {
    return privileges.holds && memory.holds && files.holds && system_calls.holds;
  }
  /// One line for a log.
  [[nodiscard]] std::string text() const;
};

/// Shuts the calling process in, for good. Call it when what is to be used is open and, with Landlock, before any other
/// thread is started: before the first export or import. Descriptors that are open stay usable.
///
/// What it leaves: connecting to Unix sockets by path (neither mechanism of today's kernels can tell them apart), the
/// metadata of files, and whatever peers do for it. In a build with a sanitizer, whose runtime opens files and traces,
/// there are no filter and no Landlock: the report says so.
///
/// Errors: invalid_argument (a thread beside this one, an unknown system call; nothing was done), not_supported (with
/// `required`: a part that cannot be had; others may hold already), system_error. Blocks for about 10 ms.
Result<Report> enter(const Options& options = {});

/// Gives up every capability whose bit is not in `keep`, for good, and with them those that exec would bring. Of the
/// calling thread: before any other is started. Errors: system_error.
Status drop_capabilities(std::uint64_t keep);

/// The newest Landlock ABI of this kernel, 0: none.
[[nodiscard]] int landlock_abi() noexcept;

}  // namespace lrpc::sandbox
