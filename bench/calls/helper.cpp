#include "helper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "core/child.h"
#include "lrpc/shim/system/fd.h"

namespace lrpc::bench {
namespace {

std::string contents(int fd) {
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, ::lseek(fd, 0, SEEK_END))), '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return text;
}

std::string tail_of(std::string text) {
  constexpr std::size_t kTail = 300;
  while (text.ends_with('\n')) text.pop_back();
  return text.size() <= kTail ? text : "..." + text.substr(text.size() - kTail);
}

}  // namespace

Result<std::string> helper_path(std::string_view program) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return system_error("readlink /proc/self/exe", error.value());
  const auto path = self.parent_path() / program;
  if (::access(path.c_str(), X_OK) != 0) return system_error("cannot run " + path.string(), errno);
  return path.string();
}

bool found_in_path(std::string_view program) {
  const char* const path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (::access((std::filesystem::path(directory) / program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

Result<std::string> run_program(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  // Files, not pipes: the child can write as much as it likes without anybody reading along.
  const UniqueFd out(::memfd_create("stdout", MFD_CLOEXEC));
  const UniqueFd err(::memfd_create("stderr", MFD_CLOEXEC));
  if (!out || !err) return system_error("memfd_create", errno);
  auto child = Child::spawn("bench-helper", own_seat(), [&] {
    std::vector<char*> arguments;
    for (const auto& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    ::dup2(out.get(), STDOUT_FILENO);
    ::dup2(err.get(), STDERR_FILENO);
    ::execvp(arguments[0], arguments.data());
    return 127;
  });
  if (!child) return child.error();
  auto status = child->wait(limit);
  if (!status) return Error{status.code(), command[0] + " " + status.error().message()};
  if (*status != 0) {
    return Error{Errc::system_error,
                 fmt::format("{} ended with status {}: {}", command[0], *status, tail_of(contents(err.get())))};
  }
  return contents(out.get());
}

Result<std::string> run_under_callgrind(std::string_view helper, const std::vector<std::string>& options,
                                        const std::vector<std::string>& arguments, const PrivateDirectory& directory) {
  const std::string out = directory.file("callgrind.out");
  std::error_code ignored;
  std::filesystem::remove(out, ignored);
  const auto path = helper_path(helper);
  if (!path) return path.error();
  std::vector<std::string> command{"valgrind", "--quiet", "--tool=callgrind", "--callgrind-out-file=" + out};
  command.insert(command.end(), options.begin(), options.end());
  command.push_back(*path);
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (auto ran = run_program(command, std::chrono::seconds(120)); !ran) return ran.error();
  return out;
}

}  // namespace lrpc::bench
