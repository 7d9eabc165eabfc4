// Runs lrpcd as a process.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::nameserver::test {

/// A daemon that was started, and its output.
class Daemon {
 public:
  explicit Daemon(std::vector<std::string> arguments, bool with_ready_fd = true) {
    int out[2];
    int ready[2];
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    output_ = UniqueFd(out[0]);
    ready_ = UniqueFd(ready[0]);
    if (with_ready_fd)
      arguments.insert(arguments.end(), {"--ready-fd", std::to_string(ready[1]), "--bind-timeout-ms", "240000"});
    arguments.insert(arguments.begin(), "lrpcd");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out[1], 1);
      ::dup2(out[1], 2);
      ::fcntl(ready[1], F_SETFD, 0);
      std::vector<char*> argv;
      for (auto& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      ::execv(LRPCD_PATH, argv.data());
      ::_exit(127);
    }
    ::close(out[1]);
    ::close(ready[1]);
  }
  ~Daemon() {
    if (pid_ > 0) end(SIGKILL);
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// True once it has reported that it listens; false if it ended before.
  bool ready() {
    char byte = 0;
    return ::read(ready_.get(), &byte, 1) == 1;
  }
  /// Waits until it has printed `text`, since its start or since forget(). False if it ends before.
  bool says(const std::string& text) {
    while (output.find(text) == std::string::npos) {
      char buffer[4096];
      const ssize_t got = ::read(output_.get(), buffer, sizeof buffer);
      if (got <= 0) return false;
      output.append(buffer, static_cast<std::size_t>(got));
    }
    return true;
  }
  void forget() { output.clear(); }
  void signal(int number) const { ::kill(pid_, number); }
  /// Sends `signal` (0: none), waits for the end, and returns the exit status; minus the signal if one ended it.
  int end(int signal) {
    if (signal != 0) ::kill(pid_, signal);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(output_.get(), buffer, sizeof buffer)) > 0;) {
      output.append(buffer, static_cast<std::size_t>(got));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

  std::string output;  ///< Both streams: all after end(), otherwise what says() has read.

 private:
  pid_t pid_ = 0;
  UniqueFd output_;
  UniqueFd ready_;
};

}  // namespace lrpc::nameserver::test
