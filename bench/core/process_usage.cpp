#include "process_usage.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace lrpc::bench {
namespace {

std::uint64_t leading_number(std::string_view text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::string proc_contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string_view proc_field(std::string_view text, std::string_view key) noexcept {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key) && line.substr(key.size()).starts_with(':')) {
      const std::string_view field = line.substr(key.size() + 1);
      return field.substr(std::min(field.find_first_not_of(" \t"), field.size()));
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return {};
}

std::uint64_t proc_number(std::string_view text, std::string_view key) noexcept {
  return leading_number(proc_field(text, key));
}

std::uint64_t stat_clock_ticks(std::string_view line) noexcept {
  const std::size_t end_of_name = line.rfind(')');  // the name may contain anything, parentheses too
  if (end_of_name == std::string_view::npos) return 0;
  line.remove_prefix(end_of_name + 1);
  std::uint64_t sum = 0;
  constexpr int kUtime = 11;  // counted from the state, the first field after the name
  for (int field = 0; field <= kUtime + 1; ++field) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (field >= kUtime) sum += leading_number(line);
    line.remove_prefix(std::min(line.find(' '), line.size()));
  }
  return sum;
}

Result<CpuUsage> cpu_usage(pid_t process) {
  CpuUsage usage;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), error)) {
    const std::string path = task.path();
    usage.clock_ticks += stat_clock_ticks(proc_contents(path + "/stat"));
    usage.ns += leading_number(proc_contents(path + "/schedstat"));
    const std::string status = proc_contents(path + "/status");
    usage.voluntary += proc_number(status, "voluntary_ctxt_switches");
    usage.involuntary += proc_number(status, "nonvoluntary_ctxt_switches");
    ++usage.threads;
  }
  if (error) return system_error(fmt::format("/proc/{}/task", process), error.value());
  return usage;
}

CpuUsage operator-(const CpuUsage& later, const CpuUsage& earlier) noexcept {
  const auto more = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };  // a thread may have ended
  return {more(later.clock_ticks, earlier.clock_ticks), more(later.ns, earlier.ns),
          more(later.voluntary, earlier.voluntary), more(later.involuntary, earlier.involuntary), later.threads};
}

Result<MemoryUsage> memory_usage(pid_t process) {
  const std::string rollup = proc_contents(fmt::format("/proc/{}/smaps_rollup", process));
  if (rollup.empty()) return Error{Errc::not_supported, "no /proc/PID/smaps_rollup"};
  const auto kib = [](std::string_view text, std::string_view key) {
    return static_cast<double>(proc_number(text, key));
  };
  return MemoryUsage{kib(rollup, "Pss"), kib(proc_contents(fmt::format("/proc/{}/status", process)), "VmPTE")};
}

KernelMemory kernel_memory() {
  const std::string text = proc_contents("/proc/meminfo");
  return {static_cast<double>(proc_number(text, "SUnreclaim")), static_cast<double>(proc_number(text, "KernelStack"))};
}

}  // namespace lrpc::bench
