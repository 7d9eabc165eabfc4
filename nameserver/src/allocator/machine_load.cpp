#include "machine_load.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <utility>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::nameserver {
namespace {

/// Two decimals, as the kernel prints them.
std::optional<double> parse_seconds(std::string_view& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// Reads the two cheapest files that tell the load: /proc/uptime (time that processors were idle, in hundredths of
/// seconds) and /proc/loadavg (threads that want to run).
class ProcLoad {
 public:
  ProcLoad(UniqueFd uptime, UniqueFd loadavg) noexcept : uptime_(std::move(uptime)), loadavg_(std::move(loadavg)) {}

  std::optional<MachineLoad> look() {
    std::array<char, 128> buffer;
    const auto now = parse_uptime(read(uptime_.get(), buffer));
    const auto running = parse_running(read(loadavg_.get(), buffer));
    const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
    if (!now || !running || processors <= 0) return std::nullopt;
    MachineLoad load;
    load.processors = static_cast<unsigned>(processors);
    // The process that reads the file is running: this one.
    load.running = *running > 0 ? *running - 1.0 : 0.0;
    if (before_ && now->up > before_->up) {
      const double idle = (now->idle - before_->idle) / (now->up - before_->up);
      load.idle = std::clamp(idle, 0.0, static_cast<double>(processors));
    }
    before_ = now;
    return load;
  }

 private:
  static std::string_view read(int fd, std::array<char, 128>& buffer) noexcept {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), 0);
    return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }

  UniqueFd uptime_;
  UniqueFd loadavg_;
  std::optional<IdleTime> before_;
};

}  // namespace

std::optional<IdleTime> parse_uptime(std::string_view text) {
  const auto up = parse_seconds(text);
  if (!up || text.empty() || text.front() != ' ') return std::nullopt;
  text.remove_prefix(1);
  const auto idle = parse_seconds(text);
  if (!idle) return std::nullopt;
  return IdleTime{*up, *idle};
}

std::optional<unsigned> parse_running(std::string_view loadavg) {
  // "0.20 0.18 0.12 3/80 11206": the fourth field, before the slash.
  for (int field = 0; field < 3; ++field) {
    const std::size_t space = loadavg.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    loadavg.remove_prefix(space + 1);
  }
  unsigned running = 0;
  const auto [end, error] = std::from_chars(loadavg.data(), loadavg.data() + loadavg.size(), running);
  if (error != std::errc() || end == loadavg.data() + loadavg.size() || *end != '/') return std::nullopt;
  return running;
}

Result<MachineLoadSource> proc_machine_load() {
  UniqueFd uptime(::open("/proc/uptime", O_RDONLY | O_CLOEXEC));
  if (!uptime) return Error{Errc::not_supported, system_error("/proc/uptime", errno).text};
  UniqueFd loadavg(::open("/proc/loadavg", O_RDONLY | O_CLOEXEC));
  if (!loadavg) return Error{Errc::not_supported, system_error("/proc/loadavg", errno).text};
  auto load = std::make_shared<ProcLoad>(std::move(uptime), std::move(loadavg));
  if (!load->look()) return Error{Errc::not_supported, "/proc/uptime or /proc/loadavg do not look as they should"};
  return MachineLoadSource([load] { return load->look(); });
}

}  // namespace lrpc::nameserver
