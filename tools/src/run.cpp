#include <fmt/format.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <map>
#include <mutex>

#include "commands.h"
#include "lrpc/sealed.h"

namespace lrpc::tools {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constinit std::atomic<SealedDomain*> running = nullptr;

/// What somebody sends to us is meant for the program. What a terminal sends it has got itself.
void forward(int number, siginfo_t* info, void* /*context*/) {
  SealedDomain* const domain = running.load();
  if (domain != nullptr && info->si_code <= 0) domain->signal(number);
}

void forward_signals() {
  struct sigaction action {};
  action.sa_sigaction = &forward;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (const int number : kForwarded) sigaction(number, &action, nullptr);
}

/// Says each refused system call once when it is first refused, and at the end how often it was after that.
class Report {
 public:
  void refused(const Refusal& refusal) {
    std::lock_guard lock(mutex_);
    if (counts_[refusal.name]++ == 0) fmt::print(stderr, "lrpc: refused: {} (process {})\n", refusal.name, refusal.pid);
  }
  void finish() {
    std::lock_guard lock(mutex_);
    for (const auto& [name, count] : counts_) {
      if (count > 1) fmt::print(stderr, "lrpc: refused: {}, {} times in all\n", name, count);
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace

int run_sealed(const RunOptions& options) {
  Report report;
  SealedOptions sealed;
  sealed.name = options.name;
  sealed.nameserver = options.nameserver;
  sealed.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_seconds * 1000));
  sealed.allow = options.allow;
  sealed.kill_on_refusal = options.kill;
  sealed.on_refused = [&report](const Refusal& refusal) { report.refused(refusal); };
  auto domain = SealedDomain::start(options.command, std::move(sealed));
  if (!domain) return complain(domain.error(), kNotStarted);
  running = &*domain;
  forward_signals();
  const int status = domain->wait();
  running = nullptr;
  report.finish();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) {
    fmt::print(stderr, "lrpc: killed: a system call of another architecture, which has no name here\n");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace lrpc::tools
