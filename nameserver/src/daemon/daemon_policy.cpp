#include "daemon_policy.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <sstream>
#include <utility>

namespace lrpc::nameserver {
namespace {

std::string has_been_read(const FilePolicy& policy) {
  return "read the policy " + policy.path() + ": " + std::to_string(policy.rules().size()) + " rules";
}

/// SIGHUP arrives as readability of the result.
UniqueFd take_hangup() {
  sigset_t reading;
  ::sigemptyset(&reading);
  ::sigaddset(&reading, SIGHUP);
  ::sigprocmask(SIG_BLOCK, &reading, nullptr);
  return UniqueFd(::signalfd(-1, &reading, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

Result<DaemonPolicy> DaemonPolicy::open(const std::string& path, bool must_exist, ExportRule rule) {
  DaemonPolicy made;
  made.policy_ = default_policy(rule);
  if (path.empty()) return made;
  made.reload_->rule = rule;
  made.reload_->signal = take_hangup();
  if (!made.reload_->signal) return system_error("signalfd", errno);
  if (must_exist || ::access(path.c_str(), F_OK) == 0 || errno != ENOENT) {
    auto source = load_policy_source(path);
    if (!source) return source.error();
    auto policy = FilePolicy::compile(*std::move(source), rule);
    if (!policy) return policy.error();
    made.read_ = has_been_read(**policy);
    made.policy_ = *std::move(policy);
  }
  auto reader = PolicyReader::start(path);
  if (!reader) return reader.error();
  made.reload_->reader.emplace(*std::move(reader));
  return made;
}

void DaemonPolicy::apply_to(NameserverOptions& options) {
  options.policy = policy_;
  reload_->log = options.log;
  if (!read_.empty()) options.log(LogLevel::info, read_);
  if (!reload_->reader) return;
  Reload* const reload = reload_.get();
  options.extra_watches.push_back({reload->signal.get(), [reload] { return reload->on_signal(); }});
  options.extra_watches.push_back({reload->reader->fd(), [reload] { return reload->on_answer(); }});
}

bool DaemonPolicy::Reload::on_signal() {
  signalfd_siginfo received{};
  while (::read(signal.get(), &received, sizeof received) == sizeof received) continue;
  if (auto asked = reader->ask(); !asked) stays(asked.error());
  return true;
}

bool DaemonPolicy::Reload::on_answer() try {
  // Take all answers that have come: those that take() has buffered do not make the socket readable.
  for (;;) {
    auto answer = reader->take();
    if (answer && !*answer) return true;
    if (!install(answer ? Result<PolicySource>(**std::move(answer)) : answer.error())) return false;
  }
} catch (const std::bad_alloc&) {
  log(LogLevel::warning, "the policy stays as it is: there is no memory for another; send SIGHUP again");
  return true;
}

bool DaemonPolicy::Reload::install(Result<PolicySource> source) {
  const bool gone = source.code() == Errc::peer_gone;
  auto policy =
      source ? FilePolicy::compile(*std::move(source), rule) : Result<std::shared_ptr<FilePolicy>>(source.error());
  if (policy) {
    log(LogLevel::info, has_been_read(**policy));
    nameserver->set_policy(*std::move(policy));
    return true;
  }
  stays(policy.error());
  return !gone;
}

void DaemonPolicy::Reload::stays(const Error& why) const {
  log(LogLevel::warning, "the policy stays as it is:");
  std::istringstream errors(why.message());
  for (std::string one; std::getline(errors, one);) log(LogLevel::warning, one);
}

}  // namespace lrpc::nameserver
