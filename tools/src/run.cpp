#include <sys/wait.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "commands.h"
#include "lrpc/detail/shim/no_limit.h"
#include "refusal_report.h"

namespace lrpc::tools {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constinit std::atomic<SealedDomain*> running = nullptr;

/// Forwards a signal that a process sent (si_code <= 0). A signal from the terminal has reached the program already.
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

/// 10^12 s or more count as no limit.
std::chrono::milliseconds span_of(const std::string& seconds) {
  constexpr double kMost = 1e12;
  double number = 0;
  std::from_chars(seconds.data(), seconds.data() + seconds.size(), number);
  if (seconds == shim::kNoLimitWord || number >= kMost) return kNoLimit;
  return std::chrono::milliseconds(static_cast<std::int64_t>(number * 1000));
}

}  // namespace

int run_sealed(SealedOptions options, const std::string& seconds, const std::vector<std::string>& command) {
  RefusalReport report(tell);
  options.timeout = span_of(seconds);
  options.on_refused = [&](const Refusal& refusal) { report.refused(refusal); };
  auto domain = SealedDomain::start(command, std::move(options));
  if (!domain) return complain(domain.error(), kNotStarted);
  running = &*domain;
  forward_signals();
  const int status = domain->wait();
  running = nullptr;
  try {
    report.finish();
  } catch (const std::bad_alloc&) {  // the exit status is the program's in any case
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
    tell("killed: a system call of another architecture, which has no name here");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace lrpc::tools
