#include "process_info.h"

#include <arpa/inet.h>
#include <linux/capability.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lrpc/detail/shim/binder/ask_nameserver.h"

namespace lrpc::storm {
namespace {

namespace fs = std::filesystem;

std::string proc(pid_t pid, const char* file) { return "/proc/" + std::to_string(pid) + "/" + file; }

std::optional<std::uint64_t> entries(const std::string& directory) {
  std::error_code error;
  std::uint64_t count = 0;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) ++count;
  return error ? std::nullopt : std::optional(count);
}

/// Threads that are E-stacks, recognised by their name.
std::uint64_t estacks_of(pid_t pid) {
  std::error_code error;
  std::uint64_t count = 0;
  for (fs::directory_iterator at(proc(pid, "task"), error), end; !error && at != end; at.increment(error)) {
    std::ifstream file(at->path() / "comm");
    std::string name;
    count += std::getline(file, name) && name == "lrpc-estack";
  }
  return count;
}

void copy_lines(std::ofstream& to, const std::string& from) {
  std::ifstream file(from);
  for (std::string line; std::getline(file, line);) to << "    " << line << '\n';
}

}  // namespace

ProcessCounts counts_of(pid_t pid) {
  ProcessCounts counts;
  counts.descriptors = entries(proc(pid, "fd"));
  counts.threads = entries(proc(pid, "task")).value_or(0);
  counts.estacks = estacks_of(pid);
  if (std::ifstream maps(proc(pid, "maps")); maps) {
    std::uint64_t count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find("/memfd:lrpc") != std::string::npos;
    counts.mappings = count;
  }
  std::ifstream status(proc(pid, "status"));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) counts.resident_kib = std::strtoull(line.c_str() + 8, nullptr, 10);
  }
  return counts;
}

bool may_look_into_all() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("CapEff:")) continue;
    return (std::strtoull(line.c_str() + 7, nullptr, 16) >> CAP_SYS_PTRACE & 1) != 0;
  }
  return false;
}

Result<std::vector<std::string>> names_at(const std::string& nameserver) {
  auto socket = shim::connect_nameserver(nameserver);
  if (!socket) return socket.error();
  std::vector<std::string> names;
  for (bool more = true; more;) {
    const shim::ListRequest next{names.empty() ? "" : names.back()};
    const auto page = shim::ask_nameserver<shim::Listed>(socket->get(), next, std::chrono::milliseconds(2000));
    if (!page) return page.error();
    for (const auto& one : page->names) names.push_back(one.name);
    more = page->more && !page->names.empty();
  }
  std::ranges::sort(names);
  return names;
}

std::uint64_t sockets_at(const std::string& path) {
  std::ifstream file("/proc/net/unix");
  std::uint64_t count = 0;
  for (std::string line; std::getline(file, line);) count += line.ends_with(" " + path);
  return count;
}

std::uint64_t udp_sockets_at(const std::string& address) {
  in_addr binary{};
  if (inet_pton(AF_INET, address.c_str(), &binary) != 1) return 0;
  char bound[16];  // as the kernel prints it: the address's bytes in memory, read as one word
  std::snprintf(bound, sizeof bound, ": %08X:", static_cast<unsigned>(binary.s_addr));
  std::ifstream file("/proc/net/udp");
  std::uint64_t count = 0;
  for (std::string line; std::getline(file, line);) count += line.find(bound) != std::string::npos;
  return count;
}

void dump_process(pid_t pid, const std::string& file) {
  std::ofstream to(file);
  std::error_code error;
  for (fs::directory_iterator at(proc(pid, "task"), error), end; !error && at != end; at.increment(error)) {
    to << "thread " << at->path().filename().string() << '\n';
    for (const char* what : {"comm", "wchan", "syscall", "stack"}) {
      to << "  " << what << '\n';
      copy_lines(to, (at->path() / what).string());
      to << '\n';
    }
    copy_lines(to, (at->path() / "status").string());
  }
  to.close();
  std::ostringstream command;
  command << "command -v gdb >/dev/null && timeout 30 gdb -p " << pid << " -batch -ex 'thread apply all bt' >>'" << file
          << "' 2>&1 </dev/null";
  if (std::system(command.str().c_str()) != 0) return;  // NOLINT: nothing in the command comes from outside
}

}  // namespace lrpc::storm
