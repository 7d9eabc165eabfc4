#include "offline.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "core/process_usage.h"

namespace lrpc::bench {
namespace {

namespace fs = std::filesystem;

std::string switch_of(int processor) { return fmt::format("/sys/devices/system/cpu/cpu{}/online", processor); }

Status turn(int processor, bool on) {
  const std::string path = switch_of(processor);
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), on ? "1" : "0", 1) != 1) return system_error(path, errno);
  return {};
}

/// Whether this process is in a version-1 cpuset other than the root: such a cpuset loses a processor for good when
/// that goes offline.
bool in_forgetful_cpuset() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);)
    if (const auto at = line.find(":cpuset:"); at != std::string::npos) return line.substr(at) != ":cpuset:/";
  return false;
}

/// A program with a thread that may run on this processor only.
std::optional<std::string> bound_to(int processor) {
  std::error_code ignored;
  for (const auto& process : fs::directory_iterator("/proc", ignored)) {
    std::error_code no_program;  // kernel threads have none
    (void)fs::read_symlink(process.path() / "exe", no_program);
    if (no_program) continue;
    for (const auto& task : fs::directory_iterator(process.path() / "task", ignored)) {
      const std::string status = proc_contents(task.path() / "status");
      if (proc_field(status, "Cpus_allowed_list") == fmt::format("{}", processor))
        return fmt::format("{} ({})", proc_field(status, "Name"), process.path().filename().string());
    }
  }
  return std::nullopt;
}

}  // namespace

Result<OfflineProcessor> OfflineProcessor::prepare(int processor) {
  if (const std::string path = switch_of(processor); ::access(path.c_str(), W_OK) != 0)
    return Error{errno == ENOENT ? Errc::not_supported : Errc::not_permitted, system_error(path, errno).message()};
  if (in_forgetful_cpuset())
    return Error{Errc::not_supported, fmt::format("this cpuset would lose processor {} for good", processor)};
  if (const auto bound = bound_to(processor))
    return Error{Errc::not_supported,
                 fmt::format("{} is bound to processor {}, and might not be any more", *bound, processor)};
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("pipe2", errno);
  UniqueFd read_end(ends[0]);
  UniqueFd held(ends[1]);
  auto guardian = Child::spawn("bench-guardian", own_seat(), [&] {
    ::prctl(PR_SET_PDEATHSIG, 0);  // the guardian must outlive the bench
    ::setsid();
    held.reset();
    for (char nothing = 0; ::read(read_end.get(), &nothing, 1) < 0 && errno == EINTR;) {
    }
    return turn(processor, true) ? 0 : 1;
  });
  if (!guardian) return guardian.error();
  return OfflineProcessor(processor, std::move(held), std::move(*guardian));
}

OfflineProcessor::OfflineProcessor(OfflineProcessor&& other) noexcept
    : processor_(other.processor_),
      taken_(std::exchange(other.taken_, false)),
      held_(std::move(other.held_)),
      guardian_(std::move(other.guardian_)) {}

OfflineProcessor::~OfflineProcessor() { (void)bring_back(); }

Status OfflineProcessor::take() {
  taken_ = true;
  return turn(processor_, false);
}

Status OfflineProcessor::bring_back() {
  if (!taken_) return {};
  Status back = turn(processor_, true);
  taken_ = !back;
  return back;
}

}  // namespace lrpc::bench
