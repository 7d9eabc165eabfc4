// Runs a command as a user does: its output, and how it ends.
#pragma once

#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace lrpc::netd::test {

struct Ran {
  int status = -1;
  std::string output;  ///< Both streams.
};

/// A command that runs beside the test. The test kills it or waits for its end.
class Running {
 public:
  explicit Running(const std::string& command)
      : pipe_(::popen(("echo $$; exec " + command + " 2>&1").c_str(), "re")), pid_(std::atoi(next_line().c_str())) {
    output_.clear();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (pipe_ == nullptr) return;
    send(SIGKILL);
    ::pclose(pipe_);
  }
  /// Waits until the output contains `words`. False: the command has ended without them.
  bool says(const std::string& words) {
    while (output_.find(words) == std::string::npos && !next_line().empty()) {
    }
    return output_.find(words) != std::string::npos;
  }
  [[nodiscard]] const std::string& output() const noexcept { return output_; }
  void send(int signal) const {
    if (pid_ > 0) ::kill(pid_, signal);
  }
  /// Waits for the end of the command.
  Ran end() {
    while (!next_line().empty()) {
    }
    const int status = pipe_ == nullptr ? -1 : ::pclose(std::exchange(pipe_, nullptr));
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output_};
  }

 private:
  std::string next_line() {
    std::array<char, 4096> line{};
    if (pipe_ == nullptr || std::fgets(line.data(), line.size(), pipe_) == nullptr) return {};
    output_ += line.data();
    return line.data();
  }
  std::string output_;
  std::FILE* pipe_;
  pid_t pid_;
};

inline Ran run(const std::string& command) {
  Ran ran;
  std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) return ran;
  std::array<char, 4096> buffer;
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    ran.output.append(buffer.data(), got);
  const int status = ::pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

}  // namespace lrpc::netd::test
