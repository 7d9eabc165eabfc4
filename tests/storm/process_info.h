// What /proc and the nameserver report about processes of the storm.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::storm {

/// Zero threads or no memory: the process could not be inspected.
struct ProcessCounts {
  std::optional<std::uint64_t> descriptors;  ///< Nothing if this process may not read them.
  std::uint64_t threads = 0;
  std::uint64_t estacks = 0;              ///< Of these.
  std::optional<std::uint64_t> mappings;  ///< Of lrpc's memfds: regions, allocator pages.
  std::uint64_t resident_kib = 0;         ///< Without the ledger and other shared files.
};
[[nodiscard]] ProcessCounts counts_of(pid_t pid);
/// Whether this process has CAP_SYS_PTRACE, and so may inspect processes that hide their files, such as lrpcd.
[[nodiscard]] bool may_look_into_all();

/// The names that the nameserver knows, sorted. Blocks for its answers, at most 2 s for each page of names.
[[nodiscard]] Result<std::vector<std::string>> names_at(const std::string& nameserver);
/// Sockets of the system that are bound to that path: the listening one, and one for each connection. 0: they cannot be
/// counted.
[[nodiscard]] std::uint64_t sockets_at(const std::string& path);
/// UDP sockets of the system that are bound to that IPv4 address.
[[nodiscard]] std::uint64_t udp_sockets_at(const std::string& address);

/// Writes to `file` what can be found out about a process that hangs: where each thread sleeps, and backtraces if gdb
/// is installed. Blocks for gdb, at most 30 s.
void dump_process(pid_t pid, const std::string& file);

}  // namespace lrpc::storm
