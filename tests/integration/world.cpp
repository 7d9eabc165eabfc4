#include "world.h"

#include <fcntl.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "ended.h"
#include "eventually.h"

namespace testing_lrpc {
namespace {

/// The children of this process. They are killed if it aborts: they hold its standard error, and the test runner waits
/// until nobody does.
class Living {
 public:
  static Living& all() {
    static Living living;
    return living;
  }
  void add(pid_t child) noexcept { replace(0, child); }
  void remove(pid_t child) noexcept { replace(child, 0); }

 private:
  Living() {
    struct sigaction action {};
    action.sa_handler = [](int) { all().kill_all(); };
    action.sa_flags = static_cast<int>(SA_RESETHAND);  // abort() raises it again, which ends the process
    ::sigaction(SIGABRT, &action, nullptr);
  }
  void replace(pid_t old, pid_t now) noexcept {
    for (auto& child : children_) {
      pid_t expected = old;
      if (child.compare_exchange_strong(expected, now)) return;
    }
  }
  /// Runs in a signal handler. Does nothing in a fork child: the children are its parent's.
  void kill_all() const noexcept {
    if (getpid() != parent_) return;
    for (const auto& child : children_)
      if (const pid_t pid = child.load(); pid > 0) ::kill(pid, SIGKILL);
  }

  const pid_t parent_ = getpid();
  std::array<std::atomic<pid_t>, 256> children_{};  ///< More are not recorded.
};

}  // namespace

Process::Process(std::vector<std::string> arguments, const std::vector<int>& keep_fds) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  for (const int fd : keep_fds)
    posix_spawn_file_actions_adddup2(&actions, fd, fd);  // dup2 onto itself clears close-on-exec
  const int err = posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (err == 0) Living::all().add(pid_);
  close(out[1]);
  char c = 0;
  ssize_t got = err == 0 ? 1 : 0;
  while ((got > 0 && c != '\n') || (got < 0 && errno == EINTR)) got = read(out[0], &c, 1);
  close(out[0]);
  if (got <= 0) {
    int status = 0;
    if (err == 0) Living::all().remove(pid_);
    if (err == 0 && !eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; })) kill_and_wait();
    pid_ = -1;
    const std::string why = err != 0              ? std::strerror(err)
                            : WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                                  : "it ended with " + std::to_string(WEXITSTATUS(status));
    throw std::runtime_error("cannot start " + arguments[0] + ": " + why);
  }
}

void Process::kill_and_wait(int signal) {
  if (pid_ <= 0) return;
  ::kill(pid_, signal);
  Living::all().remove(pid_);  // before waitpid(2): afterwards the number may be another process's
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void Process::end_counting() const {
  if (pid_ <= 0) return;
  send(kCountingEnds);
  for (int i = 0; i < 500 && !has_ended(pid_); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

World::World(lrpc::nameserver::NameserverOptions options)
    : socket_((directory_.path() / "lrpcd.sock").string()), options_(std::move(options)) {
  options_.socket_path = socket_;
  if (options_.bind_timeout == lrpc::nameserver::NameserverOptions().bind_timeout) options_.bind_timeout = kPatience;
  start_nameserver();
}

void World::start_nameserver() {
  auto started = lrpc::nameserver::Nameserver::start(options_);
  if (!started) throw std::runtime_error(started.error().message());
  nameserver_ = *std::move(started);
}

Process World::start_server(const std::vector<std::string>& names, const std::vector<std::string>& options) const {
  std::vector<std::string> arguments{LRPC_TEST_SERVER, "--nameserver", socket_};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), names.begin(), names.end());
  return Process(std::move(arguments));
}

lrpc::Result<Conformance::Client> World::import(const std::string& name, lrpc::ImportOptions options) const {
  options.nameserver = socket_;
  return Conformance::Client::import(name, options);
}

PrivateServer start_private_server(const std::vector<std::string>& options) {
  auto ends = lrpc::shim::make_socket_pair();
  if (!ends) throw std::runtime_error(ends.error().message());
  std::vector<std::string> arguments{LRPC_TEST_SERVER, "--socket", std::to_string(ends->first.get())};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return {Process(std::move(arguments), {ends->first.get()}), std::move(ends->second)};
}

}  // namespace testing_lrpc
