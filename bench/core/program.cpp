#include "program.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "child.h"
#include "lrpc/detail/shim/system/fd.h"

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

int become(const std::vector<std::string>& command, int out, int err) {
  std::vector<char*> arguments;
  for (const auto& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execvp(arguments[0], arguments.data());
  return 127;
}

Result<std::string> run_program(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  // Files instead of pipes: the child can write any amount although nobody reads at the same time.
  const UniqueFd out(::memfd_create("stdout", MFD_CLOEXEC));
  const UniqueFd err(::memfd_create("stderr", MFD_CLOEXEC));
  if (!out || !err) return system_error("memfd_create", errno);
  auto child = Child::spawn("bench-helper", own_seat(), [&] { return become(command, out.get(), err.get()); });
  if (!child) return child.error();
  auto status = child->wait(limit);
  if (!status) return Error{status.code(), command[0] + " " + status.error().message()};
  if (*status != 0)
    return Error{Errc::system_error,
                 fmt::format("{} ended with status {}: {}", command[0], *status, tail_of(contents(err.get())))};
  return contents(out.get());
}

}  // namespace lrpc::bench
