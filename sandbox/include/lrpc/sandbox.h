// A process shuts itself in: a server domain, or lrpcd and lrpc-netd themselves. It keeps what it has (descriptors,
// memory, bindings), and can get hold of little else. docs/SANDBOX.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::sandbox {

/// Groups of system calls. What computing needs is always allowed: memory that is never executable, time, randomness,
/// futexes, the process's own signals, its exit.
enum class Group : std::uint8_t {
  descriptors,     ///< To use what is open: read, write, poll, epoll; eventfd, pipe; to read a file's metadata.
  messages,        ///< To send, receive and accept on open sockets, with descriptors; new socket pairs, but none of
                   ///< datagrams: such a socket reaches every Unix datagram socket of the system by its path.
  connect,         ///< To make and connect Unix stream and packet sockets: to reach a nameserver that comes back.
  shared_memory,   ///< memfd_create and sealing, for regions.
  peers,           ///< pidfd_open, to learn that a peer has died.
  threads,         ///< New threads (never processes), their names and scheduling.
  trap_listeners,  ///< To serve sealed client domains (docs/TRAP.md).
  read_files,      ///< To open files for reading. Where Landlock holds, those of `read_only` and `read_write`.
  write_files,     ///< To open, make, rename and remove files. Where Landlock holds, those of `read_write`. Never
                   ///< their modes, owners and times: Landlock does not tell files apart there.
  remove_files,    ///< To remove files. Where Landlock holds, those in `removable_in` and `read_write`.
  rings,           ///< To use open io_uring rings, and never a new one. Only a ring's own restrictions hold there: one
                   ///< that may send can connect a TCP socket to any port (MSG_FASTOPEN).
  datagrams,       ///< UDP sockets.
  unix_datagrams,  ///< Unix datagram sockets: syslog(3), sd_notify(3). To any path.
  streams,         ///< TCP sockets, and no other kind of streams. Where Landlock has TCP, to the ports of `tcp_connect`
                   ///< and `tcp_bind`; one that listens without having been bound gets a port that the kernel picks.
};

/// The groups that libserver and libclient need for all they do: export, export again, import, bind, call and be called
/// through every gate, callbacks, sealed clients.
std::vector<Group> server_domain();

struct Options {
  std::vector<Group> groups = server_domain();
  std::vector<std::string> allow{};  ///< Further system calls by name, whatever their arguments.
  /// Files, and directories with all that is below them. A path that does not exist now stays forbidden, even if it
  /// exists later. The permission belongs to the file, not to its name: a file that replaces it is forbidden. To allow
  /// that, name the directory.
  std::vector<std::string> read_only{};
  std::vector<std::string> read_write{};
  std::vector<std::string> removable_in{};  ///< Directories: the files in them may be removed, nothing else.
  std::vector<std::uint16_t> tcp_connect{};
  std::vector<std::uint16_t> tcp_bind{};
  /// Whether to use Landlock. It holds for the calling thread and the threads that it starts later, so the process must
  /// have one thread.
  bool landlock = true;
  /// A set of CAP_* bits: the process keeps these of its capabilities, and loses the others for good. Unset: keeps all.
  /// If set, the process must have one thread, as with Landlock: capabilities belong to threads.
  std::optional<std::uint64_t> keep_capabilities{};
  /// A refused system call ends the process (SIGSYS) instead of failing with EPERM.
  bool kill = false;
  /// A part that this kernel cannot have is an error, not a line in the report. Newer parts of Landlock are demanded
  /// only where nothing else forbids the same: TCP's ports (Linux 6.7) with Group::streams. Without that group the
  /// filter forbids all TCP, and it always forbids signals to other processes (Landlock: 6.12).
  bool required = false;
};

/// One part of the sandbox.
struct Part {
  bool holds = false;
  std::string text;  ///< What is in force, or why it is not.
};

struct Report {
  Part privileges;    ///< no_new_privs: executing a program gives no more rights. Capabilities that it lost.
  Part memory;        ///< Not dumpable: processes of the same user cannot trace it or read it through /proc.
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

/// Shuts the calling process in, for good. Call it when everything that it uses is open and, with Landlock, before it
/// starts another thread: before the first export or import. Open descriptors stay usable.
///
/// It does not prevent: connecting to Unix sockets by path (today's kernels cannot tell them apart), reading the
/// metadata of files, and anything that peers do for the process. A build with a sanitizer has neither filter nor
/// Landlock, because the sanitizer's runtime opens files and traces; the report says so.
///
/// If nothing tells whether there is another thread, the report says that Landlock and the loss of capabilities do not
/// hold: they do for the calling thread.
///
/// Errors: invalid_argument (another thread, or an unknown system call; nothing was done), not_supported (with
/// `required`: nothing tells whether there is another thread, and nothing was done; or a part is not available, and
/// others may be in force already), system_error. Blocks for about 10 ms.
Result<Report> enter(const Options& options = {});

/// Gives up, for good, every capability whose bit is not in `keep`; exec cannot bring them back. It concerns the
/// calling thread: call it before another one is started. Errors: system_error.
Status drop_capabilities(std::uint64_t keep);

/// The newest Landlock ABI of this kernel, 0: none.
[[nodiscard]] int landlock_abi() noexcept;

}  // namespace lrpc::sandbox
