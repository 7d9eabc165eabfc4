// A process sandboxes itself: a server domain, lrpcd or lrpc-netd. It keeps its open descriptors, memory and bindings,
// and can acquire little else. docs/SANDBOX.md.
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
  messages,        ///< To send and receive (descriptors, too) and accept on open sockets; to make socket pairs, but not
                   ///< of datagrams, which can be sent to the path of any Unix datagram socket.
  connect,         ///< To make and connect Unix stream and packet sockets, for example to a restarted nameserver.
  shared_memory,   ///< memfd_create and sealing, for regions.
  peers,           ///< pidfd_open, to learn that a peer has died.
  threads,         ///< New threads (never processes), their names and scheduling.
  trap_listeners,  ///< To serve sealed client domains (docs/TRAP.md).
  read_files,      ///< To open files for reading. If Landlock is in force, only those in `read_only` and `read_write`.
  write_files,     ///< To open, make, rename and remove files. If Landlock is in force, only those in `read_write`.
                   ///< Never to change modes, owners or times: Landlock cannot limit that to certain files.
  remove_files,    ///< To remove files. If Landlock is in force, only those in `removable_in` and `read_write`.
  rings,           ///< To use open io_uring rings, not to make new ones. Only a ring's own restrictions limit what it
                   ///< does: one that may send can connect a TCP socket to any port (MSG_FASTOPEN).
  datagrams,       ///< UDP sockets.
  unix_datagrams,  ///< Unix datagram sockets: syslog(3), sd_notify(3). To any path.
  streams,         ///< TCP sockets, and no other kind of streams. If Landlock restricts TCP, only to the ports of
                   ///< `tcp_connect` and `tcp_bind`; but to listen unbound takes a port that the kernel picks.
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
  /// If set, a part that this kernel does not support is an error instead of a line in the report. Newer parts of
  /// Landlock are required only if the filter does not forbid the same: TCP ports (Linux 6.7) with Group::streams.
  /// Without that group the filter forbids all TCP; it always forbids signals to other processes (Landlock: Linux
  /// 6.12).
  bool required = false;
};

/// One part of the sandbox.
struct Part {
  bool holds = false;
  std::string text;  ///< What is in force, or why it is not.
};

struct Report {
  Part privileges;    ///< no_new_privs (exec gives no further rights), and which capabilities were dropped.
  Part memory;        ///< Not dumpable: processes of the same user cannot trace it or read it through /proc.
  Part files;         ///< Landlock.
  Part tcp;           ///< Landlock, ABI 4.
  Part others;        ///< Landlock, ABI 6: no signals to outside processes, no connections to their abstract sockets.
  Part system_calls;  ///< The seccomp filter, on every thread.

  /// Whether all parts hold that Options::required demands, given Landlock and no Group::streams.
  [[nodiscard]] bool complete() const noexcept {
    return privileges.holds && memory.holds && files.holds && system_calls.holds;
  }
  /// One line for a log.
  [[nodiscard]] std::string text() const;
};

/// Sandboxes the calling process permanently. Call it when everything that the process uses is open and, with Landlock
/// or keep_capabilities, before it starts another thread: before the first export or import. Open descriptors stay
/// usable.
///
/// It does not prevent: connecting to Unix sockets by path (current kernels cannot restrict that), reading the metadata
/// of files, and anything that peers do for the process. A build with a sanitizer has neither filter nor Landlock,
/// because the sanitizer's runtime opens files and traces; the report says so.
///
/// If it cannot be found out whether there are other threads, the report says that Landlock and the loss of
/// capabilities do not hold, although they do for the calling thread.
///
/// Errors: invalid_argument (other threads, or an unknown system call; nothing was done), not_supported (only with
/// `required`: it cannot be found out whether there are other threads, and nothing was done; or a part is not
/// available, and others may be in force already), system_error. Blocks for about 10 ms.
Result<Report> enter(const Options& options = {});

/// Drops permanently every capability whose bit is not in `keep`; exec cannot restore them. Applies to the calling
/// thread: call it before another one is started. Errors: system_error.
Status drop_capabilities(std::uint64_t keep);

/// The newest Landlock ABI of this kernel; 0 if it has none.
[[nodiscard]] int landlock_abi() noexcept;

}  // namespace lrpc::sandbox
