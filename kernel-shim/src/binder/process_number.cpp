// Which number a process has in the PID namespace of the calling process.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <span>
#include <string_view>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/lack.h"
#include "lrpc/detail/shim/system/pidfd.h"

namespace lrpc::shim {
namespace {

/// A process has a number in each PID namespace from the outermost one to its own; they nest 32 deep
/// (pid_namespaces(7)).
constexpr std::size_t kMostNumbers = 33;

/// The numbers of a pidfd's process, from its number in the namespace of /proc to the one in its own (proc(5), Linux
/// 5.5).
struct Numbers {
  std::array<pid_t, kMostNumbers> all{};
  std::size_t count = 0;
  /// By which /proc knows the process. 0: /proc is not there or does not see it, or the process has been reaped.
  [[nodiscard]] pid_t first() const noexcept { return all[0]; }
};

/// None if /proc does not tell. An error: something lacks, which says nothing about the process.
Result<Numbers> numbers_of(int pidfd) {
  std::array<char, 48> path{};
  std::snprintf(path.data(), path.size(), "/proc/thread-self/fdinfo/%d", pidfd);
  const UniqueFd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text{};
  const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : -1;
  if (size < 0 && is_lack(errno)) return system_error(path.data(), errno);
  const std::string_view told(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  constexpr std::string_view kField = "\nNSpid:";
  const std::size_t field = told.find(kField);
  Numbers found;
  if (field == std::string_view::npos) return found;
  const char* const end = told.data() + told.size();
  const char* at = told.data() + field + kField.size();
  while (at < end && *at == '\t' && found.count < found.all.size()) {
    pid_t number = 0;
    const auto [next, error] = std::from_chars(at + 1, end, number);
    if (error != std::errc() || number <= 0) break;
    found.all[found.count++] = number;
    at = next;
  }
  return found;
}

/// 0: the process has no number here, or /proc does not tell. /proc may be that of an outer namespace (unshare(1)
/// without --mount-proc). So each number that it tells is tried: it is the one here if pidfd_open(2) finds the same
/// process by it.
Result<pid_t> number_here(int pidfd) {
  const auto told = numbers_of(pidfd);
  if (!told) return told.error();
  for (const pid_t number : std::span(told->all).first(told->count)) {
    const UniqueFd candidate = pidfd_of(number);
    if (!candidate && is_lack(errno)) return system_error("pidfd_open", errno);
    if (!candidate) continue;
    const auto found = numbers_of(candidate.get());
    if (!found) return found.error();
    if (found->first() != told->first()) continue;
    // Last: if the process still has its number, no other process has had that number in between.
    const auto still = numbers_of(pidfd);
    if (!still) return still.error();
    if (still->first() == told->first()) return number;
  }
  return 0;
}

}  // namespace

Result<pid_t> number_of_introduced(int nameserver, pid_t told, int pidfd) {
  const auto who = peer_credentials(nameserver);
  // 0: the nameserver does not see the process. This process may, if the nameserver's namespace is below both.
  if (who && who->pid > 0 && told > 0) return told;
  return number_here(pidfd);
}

}  // namespace lrpc::shim
