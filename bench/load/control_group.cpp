#include "control_group.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

namespace lrpc::bench {
namespace {

constexpr std::string_view kPrefix = "lrpc-bench-";
constexpr long kPeriodUs = 100'000;

struct Hierarchy {
  std::string root;
  bool version_2 = false;
};

Result<Hierarchy> find_hierarchy() {
  for (const char* root : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"})
    if (::access(fmt::format("{}/cpu.shares", root).c_str(), F_OK) == 0 ||
        ::access(fmt::format("{}/cgroup.procs", root).c_str(), F_OK) == 0)
      return Hierarchy{root, false};
  std::ifstream file("/sys/fs/cgroup/cgroup.controllers");
  for (std::string controller; file >> controller;)
    if (controller == "cpu") return Hierarchy{"/sys/fs/cgroup", true};
  return Error{Errc::not_supported, "there is no control group hierarchy for processor time under /sys/fs/cgroup"};
}

Error cannot(const std::string& what, int error) {
  const Errc code = error == EPERM || error == EACCES || error == EROFS ? Errc::not_permitted
                    : error == ENOENT                                   ? Errc::not_supported
                                                                        : Errc::system_error;
  return {code, system_error(what, error).message()};
}

Status write_to(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) return cannot(fmt::format("write {} to {}", text, path), errno);
  return {};
}

}  // namespace

Result<ControlGroup> ControlGroup::create(const std::string& name, double weight) {
  auto hierarchy = find_hierarchy();
  if (!hierarchy) return hierarchy.error();
  // In version 2 a child has the controller's files only if its parent enables the controller for its children.
  if (hierarchy->version_2) (void)write_to(hierarchy->root + "/cgroup.subtree_control", "+cpu");
  const std::string path = fmt::format("{}/{}{}-{}", hierarchy->root, kPrefix, ::getpid(), name);
  if (::mkdir(path.c_str(), 0755) != 0) return cannot("mkdir " + path, errno);
  ControlGroup group(path);
  const double ordinary = hierarchy->version_2 ? 100 : 1024;
  const auto file = hierarchy->version_2 ? path + "/cpu.weight" : path + "/cpu.shares";
  if (auto done = write_to(file, fmt::format("{}", std::lround(ordinary * weight))); !done) return done.error();
  return group;
}

Status ControlGroup::limit(double processors) const {
  const auto quota = std::lround(processors * kPeriodUs);
  if (::access((path_ + "/cpu.max").c_str(), F_OK) == 0)
    return write_to(path_ + "/cpu.max", fmt::format("{} {}", quota, kPeriodUs));
  if (auto done = write_to(path_ + "/cpu.cfs_period_us", fmt::format("{}", kPeriodUs)); !done) return done;
  return write_to(path_ + "/cpu.cfs_quota_us", fmt::format("{}", quota));
}

Status ControlGroup::take(pid_t process) const { return write_to(path_ + "/cgroup.procs", fmt::format("{}", process)); }

ControlGroup::ControlGroup(ControlGroup&& other) noexcept : path_(std::exchange(other.path_, {})) {}
ControlGroup& ControlGroup::operator=(ControlGroup&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

ControlGroup::~ControlGroup() {
  if (path_.empty()) return;
  for (int i = 0; i < 100 && ::rmdir(path_.c_str()) != 0 && errno == EBUSY; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // a reaped process may still be in the group
}

void ControlGroup::sweep() noexcept {
  auto hierarchy = find_hierarchy();
  if (!hierarchy) return;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(hierarchy->root, ignored)) {
    const std::string file = entry.path().filename();
    if (!file.starts_with(kPrefix)) continue;
    pid_t owner = 0;
    std::from_chars(file.data() + kPrefix.size(), file.data() + file.size(), owner);
    if (owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH) ::rmdir(entry.path().c_str());
  }
}

}  // namespace lrpc::bench
