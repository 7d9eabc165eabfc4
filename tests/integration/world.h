// The surroundings of an integration test: a private nameserver, server processes, and their ends.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance.client.h"
#include "lrpc/nameserver.h"
#include "temporary_directory.h"

namespace testing_lrpc {

/// The signal at which a process of `./do coverage` writes its counts and ends; 0: coverage is not counted.
#ifdef LRPC_COUNTING_ENDS
inline constexpr int kCountingEnds = LRPC_COUNTING_ENDS;
#else
inline constexpr int kCountingEnds = 0;
#endif

/// A child process. The destructor kills it, if it still runs.
class Process {
 public:
  Process() = default;
  /// Starts `arguments[0]`, and waits until it has printed a line on its standard output.
  explicit Process(std::vector<std::string> arguments, const std::vector<int>& keep_fds = {});
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&& other) noexcept {
    if (this != &other) {
      kill_and_wait();
      pid_ = std::exchange(other.pid_, -1);
    }
    return *this;
  }
  ~Process() {
    if constexpr (kCountingEnds != 0) end_counting();
    kill_and_wait();
  }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void send(int signal) const { ::kill(pid_, signal); }
  void kill_and_wait(int signal = SIGKILL);

 private:
  /// Makes the process write its counts. Waits some seconds, since a stopped or stuck process does not.
  void end_counting() const;

  pid_t pid_ = -1;
};

/// A private nameserver in this process, and server processes that export Conformance with it.
class World {
 public:
  /// `options`: all but the socket are used.
  explicit World(lrpc::nameserver::NameserverOptions options = {});
  [[nodiscard]] const std::string& nameserver() const noexcept { return socket_; }
  /// Starts a process that exports the given names. `options`: further arguments of the test server.
  [[nodiscard]] Process start_server(const std::vector<std::string>& names,
                                     const std::vector<std::string>& options = {}) const;
  [[nodiscard]] lrpc::Result<Conformance::Client> import(const std::string& name,
                                                         lrpc::ImportOptions options = {}) const;
  void stop_nameserver() { nameserver_.reset(); }
  /// After stop_nameserver(): starts a new nameserver, which knows no names, on the same socket.
  void start_nameserver();
  [[nodiscard]] lrpc::nameserver::AllocatorStatistics allocator() const { return nameserver_->allocator_statistics(); }

 private:
  TemporaryDirectory directory_;
  std::string socket_;
  lrpc::nameserver::NameserverOptions options_;
  std::unique_ptr<lrpc::nameserver::Nameserver> nameserver_;
};

/// A privately bound test server: its process, and the end over which to import.
struct PrivateServer {
  Process process;
  lrpc::UniqueFd socket;
};
PrivateServer start_private_server(const std::vector<std::string>& options = {});

}  // namespace testing_lrpc
