// What /proc and the nameserver say about processes of the storm.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::storm {

/// Zero threads or no memory: there was nothing to look at.
struct ProcessCounts {
  std::optional<std::uint64_t> descriptors;  ///< Nothing where we may not look.
  std::uint64_t threads = 0;
  std::uint64_t estacks = 0;              ///< Of these.
  std::optional<std::uint64_t> mappings;  ///< Of lrpc's memfds: regions, allocator pages.
  std::uint64_t resident_kib = 0;         ///< Without the ledger and other shared files.
};
[[nodiscard]] ProcessCounts counts_of(pid_t pid);
/// Whether we may look into processes that do not let themselves be looked at, as lrpcd: CAP_SYS_PTRACE.
[[nodiscard]] bool may_look_into_all();

/// Names that the nameserver knows, sorted. Blocks for its answer, at most 2 s.
[[nodiscard]] Result<std::vector<std::string>> names_at(const std::string& nameserver);
/// Sockets of the system that are bound to that path: the listening one, and one for each connection. 0: we cannot
/// look.
[[nodiscard]] std::uint64_t sockets_at(const std::string& path);
/// UDP sockets of the system that are bound to that IPv4 address.
[[nodiscard]] std::uint64_t udp_sockets_at(const std::string& address);

/// Writes all that can be known about a process that hangs to `file`: where each thread sleeps, a backtrace if there is
/// a debugger. Blocks for that, at most 30 s.
void dump_process(pid_t pid, const std::string& file);

}  // namespace lrpc::storm
